import type { FastifyInstance, RouteOptions } from 'fastify'

import type { Role } from '#lib/values/roles.js'

/** The part of JSON Schema that the routes use. */
export interface Schema {
  type?: string | string[]
  format?: string
  contentMediaType?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  enum?: unknown[]
  const?: unknown
  items?: Schema
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
}

/** An operation as declared by its route. */
export interface Operation {
  /** Its method and path: `PUT /events/:id`. */
  name: string
  method: string
  path: string
  /** The roles that may use it; empty for any user, `undefined` for anyone. */
  roles: readonly Role[] | undefined
  body: Schema | undefined
  query: Schema | undefined
  /** Schemas of the responses, by status. */
  responses: Record<string, Schema>
}

/** Collects the operations of a service. Returns a function for when it is ready: plugins extend the schemas. */
export function readOperations (app: FastifyInstance) {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => {
    // Routes that are hidden from the API description declare no responses.
    if (!route.schema?.hide && !['HEAD', 'OPTIONS'].includes(String(route.method))) routes.push(route)
  })
  return () => routes.map(toOperation)
}

function toOperation ({ method, url: path, schema = {}, onRequest }: RouteOptions): Operation {
  const guard = [onRequest].flat().find((hook): hook is typeof hook & { roles: readonly Role[] } =>
    hook !== undefined && 'roles' in hook)
  // A handler that checks the body itself describes its fields, or a file.
  const described = schema.checkedByHandler?.body
  return {
    name: `${String(method)} ${path}`,
    method: String(method),
    path,
    roles: guard?.roles,
    body: (schema.body ?? (described && 'properties' in described ? described : undefined)) as Schema | undefined,
    query: schema.querystring as Schema | undefined,
    responses: schema.response as Record<string, Schema>,
  }
}
