import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import type { Config } from '../config.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { createStats, observeStatements, type PoolStats } from './statements.ts'
import { StartupError } from '../errors.ts'
import { isUuid } from '../formats.ts'

/** The pool of connections, and the tag that runs a statement on it. */
export type Sql = postgres.Sql

/** An open database. */
export interface Database {
  url: string
  sql: Sql
  /** A connection of its own, for short statements that must not wait behind long ones. */
  probe: Sql
  /** The statements on `sql`. */
  stats: PoolStats
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
}

/**
 * Opens the database of the configuration: the one at `DATABASE_URL`, or the embedded PostgreSQL under `DATA_DIR`,
 * which is started, or joined where it runs already. Throws a StartupError when it cannot be reached, or when the
 * driver lacks its patches.
 */
export async function openDatabase (
  config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>, { statementTimeout }: Limits = {}
): Promise<Database> {
  if (!('isPatched' in postgres)) throw new StartupError(UNPATCHED)
  const server = config.DATABASE_URL
    ? { url: config.DATABASE_URL, release: async () => {} }
    : await startEmbeddedPostgres(config.DATA_DIR, log)
  const database = createPools(server.url, config, log, { statementTimeout })
  const { sql } = database
  const close = async () => {
    await database.close()
    await server.release()
  }
  try {
    await sql`SELECT 1`
    return { ...database, close }
  } catch (error) {
    await close()
    // The driver's code when it has closed a connection because of target_session_attrs.
    const isOther = (error as NodeJS.ErrnoException).code === 'CONNECTION_DESTROYED'
    const reason = isOther ? 'its server is not the one that target_session_attrs asks for' : describe(error)
    throw new StartupError(`Cannot reach the database at ${address(server.url)}: ${reason}`)
  }
}

/** The pools on a database, which connect when they are first used. */
export function createPools (
  url: string, config: Config, log: Pick<FastifyBaseLogger, 'warn'>, { statementTimeout }: Limits = {}
): Database {
  const stats = createStats()
  const sql = connect(url, { config, log, max: config.DATABASE_POOL_SIZE, timeout: statementTimeout, stats })
  const probe = connect(url, { config, log, max: 1 })
  return {
    url,
    sql,
    probe,
    stats,
    async close () {
      await Promise.all([sql, probe].map(sql => sql.end({ timeout: config.DATABASE_TIMEOUT })))
    },
  }
}

interface PoolOptions {
  config: Config
  log: Pick<FastifyBaseLogger, 'warn'>
  /** The number of connections. */
  max: number
  /** Seconds that a statement may take, 0 for any number; DATABASE_TIMEOUT unless given. */
  timeout?: number
  stats?: PoolStats
}

/** Makes a pool of connections. */
export function connect (url: string, options: PoolOptions): Sql {
  const { config, log, max, timeout = config.DATABASE_TIMEOUT, stats = createStats() } = options
  return postgres(url, {
    max,
    prepare: config.DATABASE_PREPARE,
    // A pooler without prepared statements may give the server away between two statements of a connection.
    ...!config.DATABASE_PREPARE && { max_pipeline: 0 },
    fetch_types: false,
    connect_timeout: config.DATABASE_TIMEOUT,
    // Also while it waits for a connection: the driver would wait without limit.
    query_timeout: timeout,
    // By then the server itself would have ended the statement, so the network is broken.
    silence_timeout: timeout && timeout + 1,
    onquery: observeStatements(stats),
    // A server that comes back is found at once.
    backoff: () => 0.1,
    onnotice ({ code, message }) {
      if (code === 'STRAY_TRANSACTION') stats.stray++
      log.warn(`PostgreSQL: ${message} (${code})`)
    },
    connection: {
      application_name: 'community-platform',
      statement_timeout: timeout * 1000,
      ...PLANNING,
    },
    types: { uuid },
  })
}

/** The message of an error, else its code: an AggregateError of several addresses has no message. */
export function describe (error: unknown) {
  const { message, code } = error as NodeJS.ErrnoException
  return message || code
}

/** The address without its secrets: user, password and options. */
export function address (url: string) {
  return url.replace(/^\w+:\/\/(.*@)?/, '').replace(/\?.*/, '')
}

/** The row that a statement must return. Throws when there is none: the operation then fails. */
export function expectOne<T> ([row]: readonly T[]): T {
  if (row === undefined) throw new Error('There is no such row')
  return row
}
