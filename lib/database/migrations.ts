import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config.ts'
import type { Database, Sql } from './client.ts'
import { hostUrls } from './hosts.ts'
import { StartupError } from '../errors.ts'

/** The folder of the SQL files: beside package.json, wherever this file was compiled to. */
const DIRECTORY = fileURLToPath(new URL('migrations', import.meta.resolve('#package.json')))

/** The advisory lock of who changes the schema. */
const LOCK = 7_241_865_325

/** How long a host may take to answer, in milliseconds. */
const CONNECT_TIMEOUT = 5000

/**
 * Brings the schema up to date, or takes back the last `count` steps, in one transaction and under an advisory lock: of
 * several who do it at once, the others wait and then find nothing left. Returns the names of the steps taken.
 */
export async function migrate (databaseUrl: string, direction: 'up' | 'down' = 'up', count?: number) {
  // Loaded when needed only: a service whose schema is up to date starts faster without.
  const { runner } = await import('node-pg-migrate')
  // A connection of our own, because node-pg-migrate does not wait for its own to close.
  const dbClient = await connectToPrimary(databaseUrl)
  try {
    // Not the lock of node-pg-migrate, which is of a session: a pooler would leave it behind on some connection.
    await dbClient.query('BEGIN')
    await dbClient.query(`SELECT pg_advisory_xact_lock(${LOCK})`)
    const steps = await runner({
      dbClient,
      dir: DIRECTORY,
      direction,
      count,
      migrationsTable: 'pgmigrations',
      noLock: true,
      // This one: its own BEGIN changes nothing, and its COMMIT ends what is begun above.
      singleTransaction: true,
      log: () => {},
    })
    await dbClient.query('COMMIT')
    return steps.map(({ name }) => name)
  } finally {
    await dbClient.end()
  }
}

/** Connects to the first of the hosts that is no standby, since pg knows one host only. */
async function connectToPrimary (databaseUrl: string) {
  const { default: pg } = await import('pg')
  let failure: unknown
  for (const connectionString of hostUrls(databaseUrl)) {
    const client = new pg.Client({ connectionString, connectionTimeoutMillis: CONNECT_TIMEOUT })
    try {
      await client.connect()
      const { rows: [row] } = await client.query('SELECT pg_is_in_recovery() AS "isStandby"')
      if (!row.isStandby) return client
      failure = new StartupError('The database takes no writes')
    } catch (error) {
      failure = error
    }
    await client.end()
  }
  throw failure
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
export async function pendingMigrations (sql: Sql) {
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
export async function prepareSchema ({ sql, url }: Database, config: Config, log: Pick<FastifyBaseLogger, 'info'>) {
  if (!config.DATABASE_URL || config.MIGRATE_ON_START) {
    const pending = await pendingMigrations(sql)
    const steps = pending.length > 0 ? await migrate(url) : []
    if (steps.length > 0) log.info(`Database schema brought up to date: ${steps.length} migrations`)
  }
  await assertMigrated(sql)
}

/** Writes an empty migration and returns its path. */
export async function createMigration (name: string) {
  const { Migration } = await import('node-pg-migrate')
  return Migration.create(name, DIRECTORY, { language: 'sql', filenameFormat: 'utc' })
}
