import { AsyncLocalStorage } from 'node:async_hooks'

import type { PendingQuery, Row, Sql, TransactionSql } from 'postgres'

import { TimeoutError, withTimeout } from '../timeout.ts'

/**
 * The time that queries and transactions took, in milliseconds: `run` has those counted that begin in what it runs.
 * Where nobody does, nothing is measured.
 */
export const databaseTime = new AsyncLocalStorage<{ total: number }>()

/** Ends the span of a statement: its text with placeholders, unless it was never sent, and its error if it failed. */
export type EndStatement = (text: string | undefined, error?: unknown) => void

/** Starts the span of a statement that is run now, if it gets one. Set while tracing is on, see lib/tracing.ts. */
export const statementTracing: { start?: () => EndStatement | undefined } = {}

/** What a pool is asked for: queries and transactions without a result yet, with one, and those that were late. */
export interface PoolStats {
  pending: number
  done: number
  late: number
}

/**
 * Makes queries and transactions that fail after so many seconds: postgres.js would wait without limit for a free
 * connection, or for a server that is silent. What has not begun by then is never run; what was sent may take effect.
 * All of them are counted in `load`.
 *
 * The queue is the driver's, and only `state` shows what it has sent. Our own queue in front of it, with one statement
 * a connection, would end pipelining: with 64 statements at a time, each took twice the processor time.
 */
export function withQueryTimeout (
  sql: Sql, seconds: number, load: PoolStats = { pending: 0, done: 0, late: 0 }
): Sql {
  return new Proxy(sql, {
    apply (target, self, args) {
      const query: unknown = Reflect.apply(target, self, args)
      return query instanceof Promise ? limitQuery(query as LimitedQuery, seconds, load) : query
    },
    get (target, name) {
      if (name !== 'begin') return Reflect.get(target, name)
      return (...args: [work: Work] | [options: string, work: Work]) => {
        const [work, options = ''] = args.reverse() as [Work, string?]
        return limitTransaction(target, options, work, seconds, load)
      }
    },
  })
}

/** What runs in a transaction. */
type Work = (sql: TransactionSql) => Promise<unknown>

/** With what the types do not tell. */
type LimitedQuery = PendingQuery<Row[]> & {
  /** Null until the query is sent. */
  state: object | null
  statement: { string: string } | null
  reject (error: Error): void
}

function limitQuery (query: LimitedQuery, seconds: number, load: PoolStats) {
  return observe(query, () => {
    const timer = setTimeout(() => {
      load.late++
      query.reject(new TimeoutError(seconds))
      // One that was sent has the server's own limit. Were it cancelled behind another one on its connection, the
      // next one would get its result.
      if (!query.state) query.cancel()
    }, seconds * 1000)
    const end = track(load)
    return () => {
      clearTimeout(timer)
      end()
    }
  })
}

/**
 * Has `begin` called when a query is run, and what that returns when it has ended. A query is run when somebody waits
 * for it; a fragment of another never is.
 */
function observe (query: LimitedQuery, begin?: () => () => void) {
  const then = query.then.bind(query) as typeof query.then
  let isRunning = false
  query.then = ((...handlers: Parameters<typeof then>) => {
    if (!isRunning) {
      isRunning = true
      const end = begin?.()
      const endSpan = statementTracing.start?.()
      const stop = (error?: unknown) => {
        end?.()
        endSpan?.(query.statement?.string, error)
      }
      then(() => stop(), stop)
    }
    return then(...handlers)
  }) as typeof then
  return query
}

/** Has the statements of a transaction traced. */
function traceStatements (sql: TransactionSql) {
  return new Proxy(sql, {
    apply (target, self, args) {
      const query: unknown = Reflect.apply(target, self, args)
      return query instanceof Promise ? observe(query as LimitedQuery) : query
    },
  })
}

async function limitTransaction (sql: Sql, options: string, work: Work, seconds: number, load: PoolStats) {
  const end = track(load)
  let late: TimeoutError | undefined
  const transaction = sql.begin(options, sql => {
    // It got a connection after its caller had stopped waiting.
    if (late) throw late
    return work(statementTracing.start ? traceStatements(sql) : sql)
  })
  try {
    return await withTimeout(transaction, seconds, error => {
      load.late++
      late = error
    })
  } finally {
    end()
  }
}

/** Counts a query or a transaction; what it returns is to be called when that has ended. */
function track (load: PoolStats) {
  const time = databaseTime.getStore()
  const start = time && performance.now()
  load.pending++
  return () => {
    load.pending--
    load.done++
    if (time) time.total += performance.now() - start!
  }
}
