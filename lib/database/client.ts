import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import type { Config } from '../config.ts'
import { readDatabaseUrl } from '../database-url.ts'
import { retryConflict } from './conflicts.ts'
import { Connections, IDLE_TIMEOUT } from './connections.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { StartupError } from '../errors.ts'
import { isUuid } from '../formats.ts'

/** The pool of connections, and the tag that runs a statement on it. */
export type Sql = postgres.Sql

/** An open database. */
export interface Database {
  url: string
  sql: Sql
  /** A pool of one connection for short statements, which must not wait for long ones. */
  shortSql: Sql
  /** A pool of one connection for the check of /readyz, which can wait for a lock. */
  monitor: Sql
  /** The connections of all three pools. */
  connections: Connections
  close (): Promise<void>
}

const NIL = '00000000-0000-0000-0000-000000000000'

/**
 * Ids are opaque: whatever a client sends where an id belongs must behave as the id of no row, not as a syntax error.
 * So any value bound to a `uuid` that is not written as PostgreSQL writes one becomes the nil id, which no row has.
 */
const uuid = {
  to: 2950,
  from: [2950],
  serialize: (value: unknown) => isUuid(String(value)) ? String(value) : NIL,
  parse: (value: string) => value,
}

/** Generic plans, no JIT: planning or compiling a statement anew would take longer than running it. */
export const PLANNING = { plan_cache_mode: 'force_generic_plan', jit: 'off' }

const UNPATCHED = 'Cannot start: postgres.js lacks its patches, without which acknowledged writes can be lost. ' +
  'Run "npx patch-package" in the folder of the service'

/** Limits that differ from the configuration. */
export interface Limits {
  /** Seconds that a statement may take; 0 for any number. */
  statementTimeout?: number
  /** Whether the server is told that limit, and how to plan, when a connection starts. */
  withSettings?: boolean
}

/** SQLSTATEs of a pooler that takes no settings when a connection starts: PgBouncer, RDS Proxy. */
const REFUSED_SETTINGS = ['08P01', '0A000']

/**
 * Opens the database of the configuration: the one at `DATABASE_URL`, or the embedded PostgreSQL under `DATA_DIR`,
 * which is started, or joined where it runs already. Throws a StartupError when it cannot be reached, or when the
 * driver lacks its patches.
 */
export async function openDatabase (
  config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>, limits: Limits = {}
): Promise<Database> {
  if (!('isPatched' in postgres)) throw new StartupError(UNPATCHED)
  const server = config.DATABASE_URL
    ? { url: config.DATABASE_URL, release: async () => {} }
    : await startEmbeddedPostgres(config.DATA_DIR, log)
  let database = createPools(server.url, config, log, limits)
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
      database = createPools(server.url, config, log, { ...limits, withSettings: false })
      await database.sql`SELECT 1`
      log.warn(`The pooler takes no settings (${describe(error)}): give them to the role of the service, ` +
        'see docs/run/deploy.md, "A pooler that takes no settings"')
    }
    return { ...database, close }
  } catch (error) {
    await close()
    throw new StartupError(`Cannot reach the database at ${address(server.url)}: ${explain(error)}`)
  }
}

/** The pools on a database, which connect when they are first used. */
export function createPools (
  url: string, config: Config, log: Pick<FastifyBaseLogger, 'warn'>, { statementTimeout, withSettings }: Limits = {}
): Database {
  // By then the server itself would have ended the statement, so the network is broken.
  const connections = new Connections(config.DATABASE_TIMEOUT + 0.5)
  const options = { config, log, connections, withSettings }
  const sql = connect(url, { ...options, max: config.DATABASE_POOL_SIZE, timeout: statementTimeout })
  const shortSql = connect(url, { ...options, max: 1 })
  const monitor = connect(url, { ...options, max: 1 })
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

interface PoolOptions {
  config: Config
  log: Pick<FastifyBaseLogger, 'warn'>
  connections: Connections
  /** The number of connections. */
  max: number
  /** Seconds that a statement may take, 0 for any number; DATABASE_TIMEOUT unless given. */
  timeout?: number
  /** Whether connections ask for the settings of the service when they start. */
  withSettings?: boolean | undefined
}

/** Makes a pool of connections. */
function connect (
  url: string, { config, log, connections, max, timeout = config.DATABASE_TIMEOUT, withSettings = true }: PoolOptions
): Sql {
  const { connection, ...server } = driverOptions(url)
  const options = {
    connect_timeout: config.DATABASE_TIMEOUT,
    ...server,
    max,
    prepare: config.DATABASE_PREPARE,
    // A pooler without prepared statements may give the server away between two statements of a connection.
    ...!config.DATABASE_PREPARE && { max_pipeline: 0 },
    fetch_types: false,
    idle_timeout: IDLE_TIMEOUT,
    // The types of the driver leave out this option.
    ...timeout > 0 && { socket: connections.connect },
    // A server that comes back is found at once.
    backoff: () => 0.1,
    onnotice ({ code, message }: postgres.Notice) {
      if (code === 'STRAY_TRANSACTION') connections.stray++
      log.warn(`PostgreSQL: ${message} (${code})`)
    },
    connection: {
      application_name: 'community-platform',
      ...withSettings && { statement_timeout: timeout * 1000, ...PLANNING },
      ...connection,
    },
    types: { uuid },
  }
  const sql = postgres(options)
  const begin = sql.begin as (...parameters: unknown[]) => Promise<unknown>
  return Object.assign(sql, { begin: (...parameters: unknown[]) => retryConflict(() => begin(...parameters)) })
}

/** The options of postgres.js that lead to the server of this address. */
export function driverOptions (url: string) {
  const {
    host, port, user, password, database, ssl, connectTimeout, targetSessionAttrs, startup,
  } = readDatabaseUrl(url)
  return {
    // A list, which the types of `postgres` leave out: the driver splits a text at the colons of an IPv6 address.
    host: [host] as unknown as string,
    port: [port] as unknown as number,
    ...host.startsWith('/') && { path: `${host}/.s.PGSQL.${port}` },
    ...user && { user },
    ...password && { password },
    ...database && { database },
    ssl,
    ...connectTimeout && { connect_timeout: connectTimeout },
    ...targetSessionAttrs && { target_session_attrs: targetSessionAttrs },
    connection: startup,
  }
}

/** The reason why the driver does not connect, where its own message does not say it. */
function explain (error: unknown) {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'CONNECTION_DESTROYED') return 'its server is not the one that target_session_attrs asks for'
  // The driver speaks TLS also when the server has said that it does not.
  if (message.startsWith('Client network socket disconnected before secure TLS')) return 'its server has no TLS'
  return describe(error)
}

/** The message of an error, else its code: an AggregateError of several addresses has no message. */
export function describe (error: unknown) {
  const { message, code } = error as NodeJS.ErrnoException
  return message || code
}

/** The address without its secrets: user, password and options. */
export function address (url: string) {
  const { host, port, database = '' } = readDatabaseUrl(url)
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`
}

/** The row that a statement must return. Throws when there is none: the operation then fails. */
export function expectOne<T> ([row]: readonly T[]): T {
  if (row === undefined) throw new Error('There is no such row')
  return row
}
