import { randomUUID } from 'node:crypto'

import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import postgres from 'postgres'

import type { Role } from '#lib/auth/accounts.js'
import { buildApp } from '#lib/app.js'
import { type Config, loadConfig } from '#lib/config.js'
import type { Logger } from '#lib/http/logger.js'
import { recordResponses } from './responses.ts'
import { currentRun, withDatabase } from './run.ts'
import type { Teardown } from './scope.ts'

/** A fresh database, gone when the test ends: a copy of the migrated template, or an empty one. Returns its address. */
export async function createDatabase (t: Teardown, { migrated = true } = {}) {
  const { url, template } = currentRun()
  const name = `${template}_${randomUUID()}`
  const sql = postgres(url, { max: 1, fetch_types: false, onnotice () {} })
  await sql`CREATE DATABASE ${sql(name)} TEMPLATE ${sql(migrated ? template : 'template0')}`
  t.teardown(async () => {
    await sql`DROP DATABASE ${sql(name)} WITH (FORCE)`
    await sql.end()
  })
  return withDatabase(url, name)
}

/** A configuration for tests. Of the environment and `.env`, only DATABASE_PREPARE counts: it belongs to the server. */
export function testConfig (variables: NodeJS.Dict<string>): Config {
  const { DATABASE_PREPARE } = process.env
  const JWT_SECRET = 'a secret of the tests, long enough'
  return loadConfig({ NODE_ENV: 'test', JWT_SECRET, DATABASE_PREPARE, ...variables }, '/dev/null')
}

/** The service on a database of its own, unless told of one, ready, and closed when the test ends. */
export async function build (
  t: Teardown, variables: NodeJS.Dict<string> = {}, logger?: Logger
): Promise<FastifyInstance> {
  const DATABASE_URL = variables.DATABASE_URL ?? await createDatabase(t)
  const app = buildApp(testConfig({ ...variables, DATABASE_URL }), logger)
  recordResponses(app)
  t.teardown(() => app.close())
  await app.ready()
  return app
}

type Method = NonNullable<InjectOptions['method']>

/** The headers of a request with this token. */
export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** The headers of a request with this token whose body is JSON, written out or empty. */
export const bearerOfJson = (token: string) => ({ ...bearer(token), 'content-type': 'application/json' })

/** A user who is in the database, and a way to send requests in their name. */
export interface Person {
  id: string
  email: string
  role: Role
  token: string
  /** Sends a request with this person's token. */
  inject (method: Method, url: string, payload?: unknown): Promise<LightMyRequestResponse>
}

/** Adds a user who signs in no other way than by the token that comes with them. */
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

/** Sends a request; the answer's `json()` is its body. */
export async function inject (
  app: FastifyInstance, method: Method, url: string, payload?: unknown, headers: Record<string, string> = {}
): Promise<LightMyRequestResponse> {
  return app.inject({ method, url, headers, ...(payload === undefined ? {} : { payload: payload as object }) })
}
