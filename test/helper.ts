import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyInstance, InjectOptions, LightMyRequestResponse, RouteOptions } from 'fastify'
import postgres, { type Sql } from 'postgres'
import type { Test } from 'tap'

import type { Role } from '#lib/values/roles.js'
import { buildApp } from '#lib/app.js'
import { type Config, loadConfig } from '#lib/config/config.js'
import { driverOptions } from '#lib/database/pools.js'
import { Sender } from '#lib/email/sender.js'
import type { Logger } from '#lib/http/logger.js'
import { shareCompiled } from './compilers.ts'
import { recordResponses } from './responses.ts'
import { currentRun, withDatabase } from './run.ts'
import type { Teardown } from './scope.ts'

// As in lib/server.ts.
process.env.TZ = 'UTC'

/**
 * A database until the end of the run: a copy of the migrated template, or empty. Returns its URL. To drop each at the
 * end of its test costs a tenth of the processor time of `npm test`: ext4 looks for a free inode among those deleted.
 */
export async function createDatabase ({ migrated = true } = {}) {
  const { url, template } = currentRun()
  const name = `${template}_${randomUUID()}`
  const sql = postgres({ ...driverOptions(url), max: 1, fetch_types: false, onnotice () {} })
  await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(migrated ? template : 'template0')}`
  await sql.end()
  return withDatabase(url, name)
}

/** Returns the URL of a database for connections that can only read. */
export const readOnly = (url: string) => `${url}?options=-c%20default_transaction_read_only=on`

/** A database without the schema, and a connection to it. */
export async function emptyDatabase (t: Teardown) {
  const url = await createDatabase({ migrated: false })
  const sql = postgres({ ...driverOptions(url), max: 1 })
  t.teardown(() => sql.end())
  return { url, sql }
}

/** A configuration for tests. Ignores the environment and `.env`, except DATABASE_PREPARE, which fits the server. */
export function testConfig (variables: NodeJS.Dict<string>): Config {
  const { DATABASE_PREPARE } = process.env
  const JWT_SECRET = 'a secret of the tests, long enough'
  return loadConfig({ NODE_ENV: 'test', JWT_SECRET, DATABASE_PREPARE, ...variables }, '/dev/null')
}

/**
 * Makes the service, on a database of its own unless DATABASE_URL is given. A test can add hooks and routes before
 * `app.ready()`. Responses are not recorded. Returns an object, because to await a service starts it.
 */
export async function make (t: Teardown, variables: NodeJS.Dict<string> = {}, logger?: Logger) {
  const DATABASE_URL = variables.DATABASE_URL ?? await createDatabase()
  const app = buildApp(testConfig({ ...variables, DATABASE_URL }), logger)
  shareCompiled(app)
  t.teardown(() => app.close())
  return { app }
}

/** Variables that configure email. SMTP_URL leads to a closed port. */
export const MAIL = {
  SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'community@example.org', FRONTEND_URL: 'https://app.example.org',
}

/** Builds the service, ready for `inject`, as `make` does. Responses are recorded. */
export async function build (t: Teardown, variables?: NodeJS.Dict<string>, logger?: Logger) {
  const { app } = await make(t, variables, logger)
  recordResponses(app)
  await app.ready()
  return app
}

/** The same, but its sender does not run: it would write batches and send emails in the middle of a test. */
export async function buildWithoutSender (t: Test, variables?: NodeJS.Dict<string>, logger?: Logger) {
  const starts = t.intercept(Sender.prototype, 'start', { value () {} })
  const app = await build(t, variables, logger)
  starts.restore()
  return app
}

/** The service as `build` builds it, with its routes except HEAD, which Fastify adds, and OPTIONS. */
export async function buildWithRoutes (t: Teardown, variables?: NodeJS.Dict<string>, logger?: Logger) {
  const { app } = await make(t, variables, logger)
  recordResponses(app)
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => { if (!['HEAD', 'OPTIONS'].includes(String(route.method))) routes.push(route) })
  await app.ready()
  return { app, routes }
}

/** Waits until so many statements in the database wait for a lock. */
export async function untilBlocked (sql: Sql, count = 1) {
  const waiting = () => sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
  `
  while ((await waiting()).length < count) await sleep(5)
}

/** The method and the path of a route: `GET /events`. */
export const nameOf = ({ method, url }: Pick<RouteOptions, 'method' | 'url'>) => `${String(method)} ${url}`

type Method = NonNullable<InjectOptions['method']>

/** The headers of a request with this token. */
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The same with the content type JSON, for a body that is written as a string, or empty. */
export const bearerOfJson = (token: string) => ({ ...bearer(token), 'content-type': 'application/json' })

/** A user in the database, with a function to send requests. */
export interface Person {
  id: string
  email: string
  role: Role
  token: string
  /** Sends a request with this person's token. */
  inject (method: Method, url: string, payload?: unknown): Promise<LightMyRequestResponse>
}

/** Inserts a user, and signs a token for them. They cannot sign in: their password hash is invalid. */
export async function person (
  app: FastifyInstance, role: Role = 'STUDENT', fields: Record<string, unknown> = {}
): Promise<Person> {
  const user = {
    email: `${randomUUID()}@example.org`, password: '!', first_name: 'Ada', last_name: 'Lovelace', role, ...fields,
  }
  const [row] = await app.sql<{ id: string, email: string }[]>`INSERT INTO users ${app.sql(user)} RETURNING id, email`
  const { id, email } = row!
  const token = app.issueToken({ id, role })
  return {
    id,
    email,
    role,
    token,
    inject: (method, url, payload) => inject(app, method, url, payload, bearer(token)),
  }
}

/** Default values of rows in these tables, without references. */
const NEEDED: Record<string, () => object> = {
  clubs: () => ({ name: randomUUID(), description: 'A club' }),
  events: () => ({ title: 'Open day', description: 'Come and see', date: new Date() }),
  blogs: () => ({ title: 'A title', content: 'As long as a blog must be' }),
  mentors: () => ({ name: 'Ada', expertise: 'Mathematics', image_url: 'https://example.org/ada.png' }),
  testimonials: () => ({ name: 'Ada', batch_year: 2020, content: 'It was fun.' }),
}

/** Inserts a row with these fields. Returns its id. */
export async function insert ({ sql }: { sql: Sql }, table: string, fields: Record<string, unknown> = {}) {
  const row = { ...NEEDED[table]?.(), ...fields }
  const [inserted] = await sql<{ id: string }[]>`INSERT INTO ${sql(table)} ${sql(row)} RETURNING id`
  return inserted!.id
}

/** Sends a request. */
export async function inject (
  app: FastifyInstance, method: Method, url: string, payload?: unknown, headers: Record<string, string> = {}
): Promise<LightMyRequestResponse> {
  return app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload: payload as object }) })
}

/** All rows of all tables as text, except tables of counts. */
export async function allRows ({ sql }: { sql: Sql }) {
  const [{ query }] = await sql<[{ query: string }]>`
    SELECT string_agg(
      format('SELECT %L || to_jsonb(row)::text AS text FROM %I AS row', table_name, table_name), ' UNION ALL '
    ) AS query
    FROM information_schema.tables WHERE table_schema = 'public' AND table_name NOT LIKE '%\\_counts'
  `
  const rows = await sql.unsafe<{ text: string }[]>(query)
  return new Set(rows.map(({ text }) => text))
}
