import type { RouteOptions } from 'fastify'

import type { Role } from '#lib/roles.js'
import { buildApp } from '#lib/app.js'
import type { Config } from '#lib/config.js'

/** The part of JSON Schema that the routes use. */
export interface Schema {
  type?: string | string[]
  format?: string
  contentMediaType?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
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

interface Service {
  operations: Operation[]
  /** Signs a token with the secret of the configuration. */
  issueToken (user: { id: string, role: Role }): string
}

/** Collects the operations of a service with this configuration. */
export async function readOperations (config: Config): Promise<Service> {
  const app = buildApp(config)
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => {
    // Routes that are hidden from the API description declare no responses.
    if (!route.schema?.hide && !['HEAD', 'OPTIONS'].includes(String(route.method))) routes.push(route)
  })
  await app.ready()
  const { issueToken } = app
  await app.close()
  // Converted after `ready`, because plugins extend the schemas.
  return { operations: routes.map(toOperation), issueToken }
}

function toOperation ({ method, url: path, schema = {}, onRequest }: RouteOptions): Operation {
  const guard = [onRequest].flat().find((hook): hook is typeof hook & { roles: readonly Role[] } =>
    hook !== undefined && 'roles' in hook)
  return {
    name: `${String(method)} ${path}`,
    method: String(method),
    path,
    roles: guard?.roles,
    body: schema.body as Schema | undefined,
    query: schema.querystring as Schema | undefined,
    responses: schema.response as Record<string, Schema>,
  }
}
