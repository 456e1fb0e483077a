import { readdir } from 'node:fs/promises'
import type { ConnectionOptions } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import type { FastifyBaseLogger } from 'fastify'
import type { RunnerOption } from 'node-pg-migrate'
import type { Client, DatabaseError } from 'pg'

import type { Config } from '../config/config.ts'
import { StartupError } from '../config/startup-error.ts'
import type { Database, Sql } from './pools.ts'
import { readDatabaseUrl } from '../config/database-url.ts'

/** The folder of the SQL files, next to package.json. */
const DIRECTORY = fileURLToPath(new URL('migrations', import.meta.resolve('#package.json')))

/** Advisory lock for schema changes. */
const LOCK = 7_241_865_325

const CONNECT_TIMEOUT_SECONDS = 5

/**
 * Longest wait of a migration for a lock, which also delays operations on that table. It is half of deadlock_timeout:
 * if a migration and an operation wait for each other, the migration gives up first.
 */
const LOCK_TIMEOUT_MS = 500

/**
 * Pauses between attempts to get a lock. Each pause is twice as long as the previous pause. With pauses of a second,
 * operations on the table would wait for a third of the time.
 */
const PAUSES_MS = { first: 1000, longest: 30_000 }

/** SQLSTATEs that trigger a retry: lock_not_available and deadlock_detected. */
const LOCKED = ['55P03', '40P01']

interface Options {
  log?: Pick<FastifyBaseLogger, 'warn'>
  /** How long a migration is retried while other transactions hold its locks. The default is one hour. */
  patienceMs?: number
}

/**
 * Applies all pending migrations, or reverts the last `count` migrations. node-pg-migrate alone would wait for a lock
 * as long as a different transaction runs, for example a backup of ten minutes. All operations on the table would wait
 * behind it, instead of half a second. Each migration runs in a separate transaction, so migrations before a
 * failed one stay applied. A migration that times out on a lock is retried, so that operations continue in between. If
 * several processes migrate at once, each migration runs once. Returns the names of the migrations that ran. Throws an
 * Error that names a failed migration.
 */
export async function migrate (
  databaseUrl: string, direction: 'up' | 'down' = 'up', count?: number, options: Options = {}
) {
  // Loaded here because a service with an up-to-date schema starts faster without it.
  const { runner } = await import('node-pg-migrate')
  // A separate connection, because node-pg-migrate does not wait until its own connection is closed.
  const client = await connect(databaseUrl)
  const run = (options: Partial<RunnerOption>) => inTransaction(client, () => runner({
    dbClient: client,
    dir: DIRECTORY,
    direction,
    migrationsTable: 'pgmigrations',
    // Migrations from other branches may have older timestamps.
    checkOrder: false,
    noLock: true,
    // inTransaction has begun the transaction, so the BEGIN of node-pg-migrate has no effect.
    singleTransaction: true,
    log: () => {},
    ...options,
  }))
  try {
    const names: string[] = []
    const pending = await retry(client, 'The list of migrations', options, () => run({ count, dryRun: true }))
      .catch(({ message, cause }: Error) => {
        // The role lacks rights, or a lock stays held. node-pg-migrate adds a stack trace to the message.
        throw new StartupError(message.split('\n', 1)[0], { cause })
      })
    for (const { name } of pending) {
      const steps = await retry(client, `Migration ${name}`, options, () => run({ file: name }))
      names.push(...steps.map(({ name }) => name))
    }
    return names
  } finally {
    await client.end()
  }
}

/**
 * Runs work in a transaction that excludes other migrations. Uses a transaction lock, because a pooler would leak the
 * session lock of node-pg-migrate.
 */
async function inTransaction<T> (client: Client, work: () => Promise<T>) {
  await client.query('BEGIN')
  await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
  await client.query(`SELECT pg_advisory_xact_lock(${LOCK})`)
  const result = await work()
  await client.query('COMMIT')
  return result
}

/** Retries an attempt until it gets its locks, for `patienceMs`. */
async function retry<T> (
  client: Client, what: string, { log = console, patienceMs = 3_600_000 }: Options, attempt: () => Promise<T>,
  pause: number = PAUSES_MS.first
): Promise<T> {
  const begin = Date.now()
  try {
    return await attempt()
  } catch (error) {
    const { code = '', message } = error as DatabaseError
    if (!LOCKED.includes(code) || pause > patienceMs) throw new Error(`${what} failed: ${message}`, { cause: error })
    await client.query('ROLLBACK')
    log.warn(`${what} waits for ${await longTransactions(client)}. Next attempt in ${pause / 1000} s.`)
    await sleep(pause)
  }
  const leftMs = patienceMs - (Date.now() - begin)
  return retry(client, what, { log, patienceMs: leftMs }, attempt, Math.min(pause * 2, PAUSES_MS.longest))
}

/** Names the transactions that have been open for longer than a migration waits for a lock. */
async function longTransactions (client: Client): Promise<string> {
  const { rows: [row] } = await client.query(`
    SELECT coalesce(string_agg(format('%s (pid %s)', name, pid), ', '), 'a lock') AS names
    FROM pg_stat_activity, coalesce(nullif(application_name, ''), backend_type) AS name
    WHERE datname = current_database() AND xact_start < now() - interval '${LOCK_TIMEOUT_MS} ms'
  `)
  return row.names
}

async function connect (databaseUrl: string) {
  const { default: pg } = await import('pg')
  const { ssl, startup, connectTimeoutSeconds = CONNECT_TIMEOUT_SECONDS, ...server } = readDatabaseUrl(databaseUrl)
  const attempt = async (ssl: boolean | ConnectionOptions) => {
    const connectionTimeoutMillis = connectTimeoutSeconds * 1000
    const client = new pg.Client({ ...server, ...startup, ssl, connectionTimeoutMillis, keepAlive: true })
    // After a lost connection, the next statement fails.
    client.on('error', () => {})
    await client.connect()
    return client
  }
  if (ssl !== 'prefer') return attempt(ssl)
  return attempt({ rejectUnauthorized: false }).catch((error: Error) => {
    if (error.message !== 'The server does not support SSL connections') throw error
    return attempt(false)
  })
}

/** Lists all migrations in order, with whether they are applied. */
export async function migrationStatus (sql: Sql) {
  const files = (await readdir(DIRECTORY)).filter(file => file.endsWith('.sql')).sort()
  const [table] = await sql`SELECT to_regclass('pgmigrations') IS NOT NULL AS exists`
  const applied = table?.exists ? await sql<{ name: string }[]>`SELECT name FROM pgmigrations` : []
  const names = new Set(applied.map(({ name }) => name))
  return files.map(file => file.slice(0, -'.sql'.length)).map(name => ({ name, applied: names.has(name) }))
}

async function pendingMigrations (sql: Sql) {
  return (await migrationStatus(sql)).filter(({ applied }) => !applied)
}

/** Throws a StartupError if migrations are pending. */
export async function assertMigrated (sql: Sql) {
  const pending = await pendingMigrations(sql)
  if (pending.length > 0) {
    const migrations = pending.length === 1 ? '1 migration' : `${pending.length} migrations`
    throw new StartupError(`The database lacks ${migrations}. ` +
      'Run "npm run migrate", or start with MIGRATE_ON_START=true.')
  }
}

/**
 * Migrates the embedded database, or any database if MIGRATE_ON_START is set. Throws a StartupError if migrations are
 * still pending.
 */
export async function prepareSchema (
  { sql, url }: Database, config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>
) {
  if (!config.DATABASE_URL || config.MIGRATE_ON_START) {
    const pending = await pendingMigrations(sql)
    const steps = pending.length > 0 ? await migrate(url, 'up', undefined, { log }) : []
    if (steps.length > 0) log.info(`Applied migrations: ${steps.length}`)
  }
  await assertMigrated(sql)
}

/** Creates an empty migration and returns its path. */
export async function createMigration (name: string) {
  const { Migration } = await import('node-pg-migrate')
  return Migration.create(name, DIRECTORY, { language: 'sql', filenameFormat: 'utc' })
}
