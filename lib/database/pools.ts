import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import type { Config } from '../config/config.ts'
import { isUuid, NIL_UUID } from '../values/formats.ts'
import { RefusedError } from '../http/errors.ts'
import { StartupError } from '../config/startup-error.ts'
import { DatabaseConnections, IDLE_TIMEOUT_SECONDS } from './database-connections.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { readDatabaseUrl } from '../config/database-url.ts'

/** A pool of connections, and the tag that runs a statement on it. */
export type Sql = postgres.Sql

/** The tag of the pool or of a transaction. A fragment of SQL can be made with both, and used with both. */
export type AnySql = Sql | postgres.TransactionSql

/** An open database. */
export interface Database {
  url: string
  sql: Sql
  /**
   * A pool of one connection for the snapshot, which must not wait for long statements or locks. All cached responses
   * and all checks of tokens wait for it. A sender of emails that used this pool waited for a table that a migration
   * had locked, and all of them waited up to five seconds behind it.
   */
  shortSql: Sql
  /**
   * A pool of one connection for the check of /readyz. On `sql`, slow statements would make the process look down. On
   * `shortSql`, a check that waits for the lock of a migration would delay all cached responses.
   */
  monitor: Sql
  /** The connections of all three pools. */
  connections: DatabaseConnections
  close (): Promise<void>
}

/**
 * Ids are opaque: an invalid id must behave like an unknown id, not cause a syntax error. Therefore, any `uuid`
 * parameter that is not in PostgreSQL's notation becomes the nil id, which does not exist.
 */
const uuid = {
  to: 2950,
  from: [2950],
  serialize: (value: unknown) => isUuid(String(value)) ? String(value) : NIL_UUID,
  parse: (value: string) => value,
}

/**
 * Generic plans without JIT. If each statement were planned and compiled, an agenda would take 10 ms instead of 6 ms.
 */
export const PLANNING = { plan_cache_mode: 'force_generic_plan', jit: 'off' }

/**
 * Operations that run at once on a connection of the pool: places of the queue of operations that a transaction takes.
 * The driver pipelines their statements, which halves their cost.
 */
export const PER_CONNECTION = 8

const UNPATCHED = 'Cannot start: postgres.js lacks its patches, without which acknowledged writes can be lost. ' +
  'Run "npx patch-package" in the folder of the service'

/** SQLSTATEs of poolers that refuse settings at the start of a connection: PgBouncer, RDS Proxy. */
const REFUSED_SETTINGS = ['08P01', '0A000']

/**
 * Opens the configured database: `DATABASE_URL`, or the embedded PostgreSQL in `DATA_DIR`, which is started if it is
 * not running. `statementSeconds` is the time that a statement may take, 0 for no limit. Throws a StartupError if the
 * database is unreachable or the driver lacks its patches. Sends a first statement: without it, the service would not
 * start behind PgBouncer with its defaults, and six of seven wrong URLs would end the start with a stack trace of 12 to
 * 20 lines.
 */
export async function openDatabase (
  config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>, statementSeconds?: number
): Promise<Database> {
  if (!('isPatched' in postgres)) throw new StartupError(UNPATCHED)
  const server = config.DATABASE_URL
    ? { url: config.DATABASE_URL, release: async () => {} }
    : await startEmbeddedPostgres(config.DATA_DIR, log)
  let database = createPools(server.url, config, log, statementSeconds)
  const close = async () => {
    await database.close()
    await server.release()
  }
  try {
    try {
      await database.sql`SELECT 1`
    } catch (error) {
      if (!REFUSED_SETTINGS.includes((error as postgres.PostgresError).code)) throw error
      await database.close()
      database = createPools(server.url, config, log, statementSeconds, false)
      await database.sql`SELECT 1`
      log.warn(`The pooler refuses settings (${messageOf(error)}). Set them on the role of the service, ` +
        'see docs/run/deploy.md, "A pooler that takes no settings"')
    }
    return { ...database, close }
  } catch (error) {
    await close()
    throw new StartupError(`Cannot reach the database at ${locationOf(server.url)}: ${explain(error)}`)
  }
}

/**
 * Creates the pools of a database. They connect on first use. Without settings, connections do not set
 * `statement_timeout` and the planner settings when they start.
 */
export function createPools (
  url: string, config: Config, log: Pick<FastifyBaseLogger, 'warn'>,
  statementSeconds = config.DATABASE_TIMEOUT, withSettings = true
): Database {
  // PostgreSQL ends a statement after DATABASE_TIMEOUT. A longer silence means that the network is broken.
  const { connection, connect_timeout: connectSeconds = config.DATABASE_TIMEOUT, ...server } = driverOptions(url)
  const connections = new DatabaseConnections(config.DATABASE_TIMEOUT + 0.5, connectSeconds)
  const createPool = (max: number, timeoutSeconds = config.DATABASE_TIMEOUT): Sql => {
    const options = {
      ...server,
      connect_timeout: connectSeconds,
      max,
      prepare: config.DATABASE_PREPARE,
      // Without prepared statements, a pooler may assign another server connection after each statement. A statement
      // that the driver has already sent then never ends: with PgBouncer 1.18, 1,800 of 2,000 statements. The driver
      // does not document this option.
      ...!config.DATABASE_PREPARE && { max_pipeline: 0 },
      fetch_types: false,
      // Otherwise, `connections` closes an unused connection a few seconds later, and counts it as silent.
      idle_timeout: IDLE_TIMEOUT_SECONDS,
      // The types of the driver omit this option.
      ...timeoutSeconds > 0 && { socket: connections.connect },
      // A short pause finds a restarted server quickly.
      backoff: () => 0.1,
      onnotice ({ code, message }: postgres.Notice) {
        if (code === 'STRAY_TRANSACTION') connections.stray++
        log.warn(`PostgreSQL: ${message} (${code})`)
      },
      connection: {
        application_name: 'community-platform',
        // The driver reads no other style. Poolers know this setting.
        DateStyle: 'ISO, MDY',
        ...withSettings && { statement_timeout: timeoutSeconds * 1000, ...PLANNING },
        ...connection,
      },
      types: { uuid },
    }
    return postgres(options)
  }
  const sql = createPool(config.DATABASE_POOL_SIZE, statementSeconds)
  const shortSql = createPool(1)
  const monitor = createPool(1)
  return {
    url,
    sql,
    shortSql,
    monitor,
    connections,
    async close () {
      await Promise.all([sql, shortSql, monitor].map(sql => sql.end({ timeout: config.DATABASE_TIMEOUT })))
    },
  }
}

/** Converts a database URL to options of postgres.js. */
export function driverOptions (url: string) {
  const { host, port, connectTimeoutSeconds, targetSessionAttrs, startup, ...others } = readDatabaseUrl(url)
  return {
    // A list, because the driver would split a string at the colons of an IPv6 address. Its types omit lists.
    host: [host] as unknown as string,
    port: [port] as unknown as number,
    ...host.startsWith('/') && { path: `${host}/.s.PGSQL.${port}` },
    ...others,
    ...connectTimeoutSeconds && { connect_timeout: connectTimeoutSeconds },
    ...targetSessionAttrs && { target_session_attrs: targetSessionAttrs },
    connection: startup,
  }
}

/** Explains why the driver cannot connect, if its message does not. */
function explain (error: unknown) {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'CONNECTION_DESTROYED') return 'the server does not match target_session_attrs'
  // The driver starts TLS even if the server has declined it.
  if (message.startsWith('Client network socket disconnected before secure TLS')) return 'the server has no TLS'
  return messageOf(error)
}

/** Returns the message of an error, or else its code: an AggregateError for several addresses has an empty message. */
function messageOf (error: unknown) {
  const { message, code } = error as NodeJS.ErrnoException
  return message || code
}

/** Returns the host, the port and the database of a URL, without user, password and options. */
function locationOf (url: string) {
  const { host, port, database = '' } = readDatabaseUrl(url)
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** Tells whether transactions can only read, for example on a standby or by `default_transaction_read_only`. */
export async function isReadOnly (sql: Sql) {
  const [row] = await sql<[{ isReadOnly: boolean }]>`
    SELECT current_setting('transaction_read_only')::boolean AS "isReadOnly"
  `
  return row.isReadOnly
}

/** Returns the first row. Throws a RefusedError without a row. */
export function expectOne<T> ([row]: readonly T[]): T {
  if (row === undefined) throw new RefusedError('The row does not exist')
  return row
}
