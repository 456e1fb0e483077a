// The service with the demo data, as `npm start` and `npm run seed` create it, and its operations as requests.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { TSchema } from '@sinclair/typebox'

import { exampleOf } from '#lib/schemas.js'
import { send } from '../faults/http.ts'
import type { Scope } from '../scope.ts'
import { startService } from '../faults/service.ts'
import { dataDir } from '../process.ts'
import { CLIENT, newAccount, startProvider } from '../provider.ts'

export const CLI = fileURLToPath(new URL('dist/lib/cli.js', import.meta.resolve('#package.json')))

/** An operation with a valid value for each parameter. */
export interface Operation {
  /** Its operationId, and its method and path: `PUT /events/{id}`. */
  id: string
  name: string
  method: string
  path: string
  /** Values by parameter; those of the path and of the query must be encoded. */
  inPath: Record<string, string>
  inQuery: Record<string, string>
  inHeader: Record<string, string>
  body: Record<string, unknown> | undefined
  /** Headers that authorize the request. */
  headers: Record<string, string>
}

/**
 * Starts the service on a database of its own with the demo data, and with the rows that the options in `more` add.
 * Sign-in attempts are not limited.
 */
export async function startTarget (
  scope: Scope, directory: string, environment: NodeJS.Dict<string> = {}, more: string[] = []
) {
  const DATA_DIR = dataDir(scope, directory)
  await mkdir(DATA_DIR)
  const seed = (...options: string[]) => promisify(execFile)(process.execPath, [CLI, 'seed', ...options], {
    cwd: directory, env: { PATH: process.env.PATH, DATA_DIR },
  })
  const { stdout } = await seed('--json')
  if (more.length > 0) await seed('--force', ...more)
  const service = await startService(scope, directory, {
    DATA_DIR, SIGN_IN_ATTEMPTS: '0', ...environment,
  })
  const { password, signIns } = JSON.parse(stdout) as Seeded
  return { ...service, dataDir: DATA_DIR, password, signIns }
}

export type Target = Awaited<ReturnType<typeof startTarget>>

interface Seeded {
  password: string
  signIns: { role: string, email: string }[]
}

/** The part of an OpenAPI document that is used. */
interface Document {
  paths: Record<string, Record<string, {
    operationId: string
    description: string
    parameters?: { name: string, in: 'path' | 'query' | 'header', schema: TSchema }[]
    requestBody?: { content: Record<string, { schema: TSchema }> }
  }>>
  components: { schemas: Record<string, TSchema> }
}

/** Starts the service with an identity provider, and builds a request for each operation that has parameters. */
export async function startOperations (scope: Scope, directory: string) {
  const provider = await startProvider(scope)
  const target = await startTarget(scope, directory, {
    ...CLIENT, IDP_ISSUER: provider.issuer, FRONTEND_URL: 'https://app.example.org',
  })
  const { url, password, signIns } = target
  const get = async (path: string, token?: string) => {
    const { body } = await send(url, { method: 'GET', path, ...token && { token } })
    return body
  }
  const tokens = new Map<string, string>()
  for (const { role, email } of signIns) {
    const { body } = await send(url, { method: 'POST', path: '/auth/login', body: { email, password } })
    tokens.set(role, body.token)
  }

  /** The rows of a list except the admin, who must keep the role. */
  const list = async (path: string): Promise<{ id: string, email: string }[]> => {
    const rows = Object.values<{ role?: string }[]>(await get(path, tokens.get('ADMIN'))).find(Array.isArray)!
    return rows.filter(({ role }) => role !== 'ADMIN') as never
  }
  const lists: Record<string, { id: string }[] | undefined> = {
    blogs: await list('/blogs/admin'),
    events: await list('/events?limit=100'),
    mentors: await list('/mentors'),
    testimonials: await list('/testimonials'),
    users: await list('/users'),
  }

  const account = newAccount()
  provider.accounts.push(account)
  const start = await fetch(`${url}/auth/google/start`, { redirect: 'manual' })
  const cookie = start.headers.getSetCookie()[0]!.split(';', 1)[0]!
  const callback = await provider.signIn(start.headers.get('location')!, account)
  const values: Record<string, string> = {
    clubId: (await list('/clubs'))[0]!.id,
    clubHeadEmail: (await list('/users'))[0]!.email,
    idToken: await provider.idToken(account),
    ...Object.fromEntries(callback.searchParams),
    redirect: '/events',
    page: '1',
    limit: '5',
    'If-None-Match': '"x"',
  }

  const { paths, components } = await get('/openapi.json') as Document
  const operations: Operation[] = []
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { operationId, description, parameters = [], requestBody }] of Object.entries(methods)) {
      if (parameters.length === 0 && !requestBody) continue
      const rows = lists[path.split('/')[1]!]
      // Deletions use another row, because the other operations need theirs.
      const id = method === 'delete' ? rows?.at(-1)?.id : rows?.[1]?.id
      const take = (place: string, otherwise: (schema: TSchema) => unknown) => Object.fromEntries(
        parameters.filter(each => each.in === place).map(({ name, schema }) =>
          [name, String(values[name] ?? otherwise(schema))]))
      const { schema } = requestBody?.content['application/json'] ?? {}
      const body = schema && exampleOf(resolve(schema, components.schemas)) as object
      const role = description.endsWith('Roles: `CLUB_HEAD`.') ? 'CLUB_HEAD' : 'ADMIN'
      operations.push({
        id: operationId,
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        inPath: take('path', () => id),
        inQuery: take('query', exampleOf),
        inHeader: take('header', exampleOf),
        body: body && Object.fromEntries(Object.entries(body).map(([name, value]) => [name, values[name] ?? value])),
        headers: { authorization: `Bearer ${tokens.get(role)}`, cookie },
      })
    }
  }
  return { ...target, operations }
}

/** Resolves the references in a schema. */
function resolve (schema: TSchema, schemas: Record<string, TSchema>): TSchema {
  if (schema.$ref) return resolve(schemas[schema.$ref.split('/').at(-1)!]!, schemas)
  const { properties } = schema
  if (!properties) return schema
  const resolved = Object.entries<TSchema>(properties).map(([name, part]) => [name, resolve(part, schemas)])
  return { ...schema, properties: Object.fromEntries(resolved) }
}
