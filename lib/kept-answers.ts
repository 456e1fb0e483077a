import { LRUCache } from 'lru-cache'
import type { PendingQuery, Row } from 'postgres'

import type { Sql } from './database.ts'
import { joinReads } from './joined-reads.ts'
import { type SharedBody, shareBody } from './shared-body.ts'

/** A query for one column of at most one row: the whole body of an answer, as JSON. It depends on tables alone. */
export type AnswerQuery = PendingQuery<Row[]>

/** A state of the database: equal at two times when nothing was committed in between. Null is like no other. */
export type DatabaseState = string | null

export interface KeptAnswer {
  /** The JSON as PostgreSQL wrote it; `undefined` when there was no row. */
  body: SharedBody | undefined
  /** The state that it was read in. */
  state: DatabaseState
}

/**
 * The state of the whole database server in one text. Two equal texts mean that nothing was committed in between:
 *
 * - `pg_current_snapshot()` tells which transactions have ended. Every commit of a write changes it, before whoever
 *   committed hears of it. On a standby it leaves some out, so there is no state.
 * - The time when the server started tells it from another that took over, with transaction numbers of its own.
 * - After a crash, the numbers of transactions that were lost are given again, and the server may go on under the old
 *   start time. But its statistics begin anew. (PostgreSQL 14 would read a file to tell when.)
 */
const state = (sql: Sql) => sql`
  CASE WHEN NOT pg_is_in_recovery() THEN concat_ws(
    ' ', pg_current_snapshot(), pg_postmaster_start_time(),
    CASE WHEN current_setting('server_version_num')::int >= 150000 THEN pg_stat_get_bgwriter_stat_reset_time() END
  ) END
`

/** What an answer takes besides its bytes, roughly. */
const OVERHEAD = 500

/** How often its bytes an answer may take: as they are, and in two codings. */
const FORMS = 3

/** Whether an answer of the one state holds in the other. */
export const isSameState = (one: DatabaseState, other: DatabaseState) => one === other && one !== null

/**
 * Answers from memory what the database would answer now, for the price of one short statement that everybody who asks
 * at the same time shares. It is exact without triggers, notifications or lifetimes, whoever writes, and however many
 * instances there are:
 *
 * 1. An answer is kept with the state of the database that it was read in. Both come from one statement, so from one
 *    snapshot.
 * 2. For every request the state is asked for after it arrived. If it is the kept one, nothing was committed since: the
 *    kept bytes are what a read would give.
 * 3. Otherwise the answer is read again, by a statement that begins after the request arrived.
 *
 * The state is asked for through `sqlProbe`, so that it need not wait for a connection among long reads. What was used
 * last is kept, `maxBytes` in all.
 */
export function keepAnswers (sql: Sql, sqlProbe: Sql, maxBytes: number) {
  const kept = new LRUCache<string, KeptAnswer>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }, key) => OVERHEAD + key.length + FORMS * (body?.bytes.length ?? 0),
  })
  const joinProbe = joinReads<DatabaseState>()
  const joinRead = joinReads<KeptAnswer>()

  return { readState, answer }

  /** The state of the database at some time after the call. */
  function readState () {
    return joinProbe('', async () => {
      const [row] = await sqlProbe<[{ state: DatabaseState }]>`SELECT ${state(sqlProbe)} AS state`
      return row.state
    })
  }

  /** The answer to a query that the key identifies, at some time after the call. */
  async function answer (key: string, query: (sql: Sql) => AnswerQuery): Promise<KeptAnswer> {
    const current = await readState()
    const known = kept.get(key)
    if (known && isSameState(known.state, current)) return known
    return joinRead(key, () => read(key, query(sql)))
  }

  async function read (key: string, query: AnswerQuery) {
    const [row] = await sql`SELECT ${state(sql)}, (${query})`.raw() as unknown as [[Buffer | null, Buffer | null]]
    const [stateThen, bytes] = row
    // What changed elsewhere leaves the bytes as they are, and so what was made of them.
    const known = kept.get(key)?.body
    // A copy, since the original is a part of all that the socket read with it.
    const body = bytes ? known?.bytes.equals(bytes) ? known : await shareBody(Buffer.from(bytes)) : undefined
    const answer = { body, state: stateThen && String(stateThen) }
    kept.set(key, answer)
    return answer
  }
}
