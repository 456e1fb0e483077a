import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import type { Config } from './config.ts'
import { startEmbeddedPostgres } from './embedded-postgres.ts'
import { type PoolLoad, withDeadline } from './query-deadline.ts'
import { StartupError } from './startup-error.ts'

/** The pool of connections, and the tag that runs a statement on it. */
export type Sql = postgres.Sql

/** A database that answers: its address, a pool on it, and what to call when done. */
export interface Database {
  url: string
  sql: Sql
  /** A connection of its own, for short questions that must not wait for one among long statements. */
  sqlProbe: Sql
  /** What `sql` is asked for. */
  load: PoolLoad
  close (): Promise<void>
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const NIL = '00000000-0000-0000-0000-000000000000'

/**
 * Ids are opaque: whatever a client sends where an id belongs must behave as the id of no row, not as a syntax error.
 * So any value bound to a `uuid` that is not written as PostgreSQL writes one becomes the nil id, which no row has.
 */
const uuid = {
  to: 2950,
  from: [2950],
  serialize: (value: unknown) => UUID.test(String(value)) ? String(value) : NIL,
  parse: (value: string) => value,
}

/**
 * Has the server plan a statement once for each connection: they all take less time than to plan them anew for their
 * parameters, which PostgreSQL would do for every page of a list, or to compile them.
 */
export const PLANNING = { plan_cache_mode: 'force_generic_plan', jit: 'off' }

/** What may differ from the configuration: how many seconds a statement may take, 0 for any number. */
export interface Limits {
  statementTimeout?: number
}

/**
 * Opens the database of the configuration: the one at `DATABASE_URL`, or the embedded PostgreSQL under `DATA_DIR`,
 * which is started, or joined where it runs already. Throws a StartupError when it cannot be reached.
 */
export async function openDatabase (
  config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>, { statementTimeout }: Limits = {}
): Promise<Database> {
  const server = config.DATABASE_URL
    ? { url: config.DATABASE_URL, release: async () => {} }
    : await startEmbeddedPostgres(config.DATA_DIR, log)
  const load = { pending: 0, done: 0, late: 0 }
  const sql = connect(server.url, config, config.DATABASE_POOL_SIZE, statementTimeout, load)
  const sqlProbe = connect(server.url, config, 1)
  const database = {
    url: server.url,
    sql,
    sqlProbe,
    load,
    async close () {
      await Promise.all([sql, sqlProbe].map(sql => sql.end({ timeout: config.DATABASE_TIMEOUT })))
      await server.release()
    },
  }
  try {
    await sql`SELECT 1`
    return database
  } catch (error) {
    await database.close()
    const { message, code } = error as NodeJS.ErrnoException
    throw new StartupError(`Cannot reach the database at ${address(server.url)}: ${message || code}`)
  }
}

function connect (
  url: string, config: Config, max: number, timeout = config.DATABASE_TIMEOUT, load?: PoolLoad
): Sql {
  const sql = postgres(url, {
    max,
    prepare: config.DATABASE_PREPARE,
    fetch_types: false,
    connect_timeout: config.DATABASE_TIMEOUT,
    // By then the server itself would have ended the statement: a network that tells nothing is broken.
    silence_timeout: timeout && timeout + 1,
    // A server that comes back is found at once.
    backoff: () => 0.1,
    connection: {
      application_name: 'community-platform',
      statement_timeout: timeout * 1000,
      ...PLANNING,
    },
    types: { uuid },
  })
  return timeout > 0 ? withDeadline(sql, timeout, load) : sql
}

/** The address without what is secret in it: user, password and options. */
function address (url: string) {
  return url.replace(/^\w+:\/\/(.*@)?/, '').replace(/\?.*/, '')
}
