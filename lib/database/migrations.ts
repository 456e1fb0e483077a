import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import type { FastifyBaseLogger } from 'fastify'
import type { RunnerOption } from 'node-pg-migrate'
import type { Client, DatabaseError } from 'pg'

import type { Config } from '../config.ts'
import type { Database, Sql } from './client.ts'
import { readDatabaseUrl } from '../database-url.ts'
import { StartupError } from '../errors.ts'

/** The folder of the SQL files: beside package.json, wherever this file was compiled to. */
const DIRECTORY = fileURLToPath(new URL('migrations', import.meta.resolve('#package.json')))

/** The advisory lock of who changes the schema. */
const LOCK = 7_241_865_325

/** How long the server may take to accept a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5000

/**
 * How long a migration waits for a lock, in milliseconds. Operations on that table queue behind it for as long. Half
 * of deadlock_timeout: of a migration and an operation that wait for each other, the migration gives way.
 */
const LOCK_TIMEOUT_MS = 500

/** The pause after the first attempt that got no lock, and the longest: each is twice the one before; milliseconds. */
const PAUSES_MS = { first: 1000, longest: 30_000 }

/** SQLSTATEs of an attempt that is repeated: lock_not_available and deadlock_detected. */
const LOCKED = ['55P03', '40P01']

interface Options {
  log?: Pick<FastifyBaseLogger, 'warn'>
  /** How long a migration is tried while others hold a lock that it needs, in milliseconds. An hour by default. */
  patience?: number
}

/**
 * Brings the schema up to date, or takes back the last `count` migrations, each in a transaction of its own; those
 * before one that fails stay. A migration that gets no lock in time is tried again, so that operations go on meanwhile.
 * Of several callers at once, one runs a migration, and the others find it done. Returns the names of the migrations
 * that were run. Throws an Error that names the one that failed.
 */
export async function migrate (
  databaseUrl: string, direction: 'up' | 'down' = 'up', count?: number, options: Options = {}
) {
  // Loaded when needed only: a service whose schema is up to date starts faster without.
  const { runner } = await import('node-pg-migrate')
  // A connection of our own, because node-pg-migrate does not wait for its own to close.
  const client = await connect(databaseUrl)
  const run = (options: Partial<RunnerOption>) => inTransaction(client, () => runner({
    dbClient: client,
    dir: DIRECTORY,
    direction,
    migrationsTable: 'pgmigrations',
    // One that another branch added with an earlier stamp is run like any other.
    checkOrder: false,
    noLock: true,
    // That of inTransaction: its own BEGIN changes nothing.
    singleTransaction: true,
    log: () => {},
    ...options,
  }))
  try {
    const names: string[] = []
    const pending = await retry(client, 'The list of migrations', options, () => run({ count, dryRun: true }))
    for (const { name } of pending) {
      await retry(client, `Migration ${name}`, options, async () => {
        if (direction === 'up') await backfill(client, name)
        const steps = await run({ file: name })
        names.push(...steps.map(({ name }) => name))
      })
    }
    return names
  } finally {
    await client.end()
  }
}

/**
 * Runs some work in a transaction that no other migration runs beside. A transaction lock: a pooler would leak the
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

/** Runs the backfill that stands above the up part of a migration, if there is one, until it changes no row. */
async function backfill (client: Client, name: string) {
  const file = await readFile(join(DIRECTORY, `${name}.sql`), 'utf8')
  const [, statement] = /^-- Backfill$(.+)^-- Up Migration$/ms.exec(file) ?? []
  if (!statement) return
  let changed
  do changed = (await inTransaction(client, () => client.query(statement))).rowCount
  while (changed)
}

/** Attempts something until it gets its locks, for `patience` milliseconds. */
async function retry<T> (
  client: Client, what: string, { log = console, patience = 3_600_000 }: Options, attempt: () => Promise<T>,
  pause: number = PAUSES_MS.first
): Promise<T> {
  const begin = Date.now()
  try {
    return await attempt()
  } catch (error) {
    const { code = '', message } = error as DatabaseError
    if (!LOCKED.includes(code) || pause > patience) throw new Error(`${what} failed: ${message}`, { cause: error })
    await client.query('ROLLBACK')
    log.warn(`${what} waits for ${await longTransactions(client)}: next attempt in ${pause / 1000} s`)
    await sleep(pause)
  }
  const left = patience - (Date.now() - begin)
  return retry(client, what, { log, patience: left }, attempt, Math.min(pause * 2, PAUSES_MS.longest))
}

/** Names the transactions that are open for longer than a migration waits for a lock. */
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
  const { host, port, user, password, database, ssl, connectTimeout, startup } = readDatabaseUrl(databaseUrl)
  const attempt = async (ssl: boolean | ConnectionOptions) => {
    const client = new pg.Client({
      host,
      port,
      user,
      password,
      database,
      ssl,
      ...startup,
      connectionTimeoutMillis: connectTimeout ? connectTimeout * 1000 : CONNECT_TIMEOUT_MS,
      keepAlive: true,
    })
    // A connection that is lost fails the next statement.
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

/** Lists every migration in order, and whether this database has it. */
export async function migrationStatus (sql: Sql) {
  const files = (await readdir(DIRECTORY)).filter(file => file.endsWith('.sql')).sort()
  const [table] = await sql`SELECT to_regclass('pgmigrations') IS NOT NULL AS exists`
  const applied = table?.exists ? await sql<{ name: string }[]>`SELECT name FROM pgmigrations` : []
  const names = new Set(applied.map(({ name }) => name))
  return files.map(file => file.slice(0, -'.sql'.length)).map(name => ({ name, applied: names.has(name) }))
}

/** Lists the migrations that this database lacks. */
async function pendingMigrations (sql: Sql) {
  return (await migrationStatus(sql)).filter(({ applied }) => !applied)
}

/** Throws a StartupError unless this database has every migration. */
export async function assertMigrated (sql: Sql) {
  const pending = await pendingMigrations(sql)
  if (pending.length > 0) {
    const migrations = pending.length === 1 ? '1 migration' : `${pending.length} migrations`
    throw new StartupError(`The database lacks ${migrations}: ` +
      'run "npm run migrate" or start with MIGRATE_ON_START=true')
  }
}

/**
 * Migrates the embedded database, and any other one with MIGRATE_ON_START. Throws a StartupError when the database
 * lacks a migration after that.
 */
export async function prepareSchema (
  { sql, url }: Database, config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>
) {
  if (!config.DATABASE_URL || config.MIGRATE_ON_START) {
    const pending = await pendingMigrations(sql)
    const steps = pending.length > 0 ? await migrate(url, 'up', undefined, { log }) : []
    if (steps.length > 0) log.info(`Database schema brought up to date: ${steps.length} migrations`)
  }
  await assertMigrated(sql)
}

/** Writes an empty migration and returns its path. */
export async function createMigration (name: string) {
  const { Migration } = await import('node-pg-migrate')
  return Migration.create(name, DIRECTORY, { language: 'sql', filenameFormat: 'utc' })
}
