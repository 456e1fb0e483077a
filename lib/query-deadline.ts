import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { Sql } from './database.ts'
import { databaseTime } from './database-time.ts'
import { DeadlineError, withinDeadline } from './deadline.ts'

/** What a pool is asked for: queries and transactions without a result yet, with one, and those that were late. */
export interface PoolLoad {
  pending: number
  done: number
  late: number
}

/**
 * Makes queries and transactions that fail after so many seconds: postgres.js would wait without limit for a free
 * connection, or for a server that is silent. What has not begun by then is never run; what was sent may take effect.
 * All of them are counted in `load`.
 */
export function withDeadline (
  sql: Sql, seconds: number, load: PoolLoad = { pending: 0, done: 0, late: 0 }
): Sql {
  return new Proxy(sql, {
    apply (target, self, args) {
      const query: unknown = Reflect.apply(target, self, args)
      return query instanceof Promise ? limitQuery(query as LimitedQuery, seconds, load) : query
    },
    get (target, name) {
      if (name !== 'begin') return Reflect.get(target, name)
      return (work: (sql: TransactionSql) => Promise<unknown>) => limitTransaction(target, work, seconds, load)
    },
  })
}

/** With what the types do not tell. */
type LimitedQuery = PendingQuery<Row[]> & {
  /** Null until the query is sent. */
  state: object | null
  reject (error: Error): void
}

/** A query is run when somebody waits for it; a fragment of another never is. */
function limitQuery (query: LimitedQuery, seconds: number, load: PoolLoad) {
  const then = query.then.bind(query) as typeof query.then
  let timer: NodeJS.Timeout | undefined
  query.then = ((...handlers: Parameters<typeof then>) => {
    if (!timer) {
      timer = setTimeout(() => {
        load.late++
        query.reject(new DeadlineError(seconds))
        // One that was sent has the server's own limit; to cancel it would take another connection.
        if (!query.state) query.cancel()
      }, seconds * 1000)
      const end = track(load)
      const stop = () => {
        clearTimeout(timer)
        end()
      }
      then(stop, stop)
    }
    return then(...handlers)
  }) as typeof then
  return query
}

async function limitTransaction (
  sql: Sql, work: (sql: TransactionSql) => Promise<unknown>, seconds: number, load: PoolLoad
) {
  const end = track(load)
  let late: DeadlineError | undefined
  const transaction = sql.begin(sql => {
    // It got a connection when nobody waits for it any more.
    if (late) throw late
    return work(sql)
  })
  try {
    return await withinDeadline(transaction, seconds, error => {
      load.late++
      late = error
    })
  } finally {
    end()
  }
}

/** Counts a query or a transaction; what it returns is to be called when that has ended. */
function track (load: PoolLoad) {
  const time = databaseTime.getStore()
  const start = time && performance.now()
  load.pending++
  return () => {
    load.pending--
    load.done++
    if (time) time.total += performance.now() - start!
  }
}
