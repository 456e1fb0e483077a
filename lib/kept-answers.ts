import { LRUCache } from 'lru-cache'
import type { PendingQuery, Row } from 'postgres'

import type { Sql } from './database.ts'
import { joinReads } from './joined-reads.ts'
import { collectBlocks, hashBlocks, SharedBody } from './shared-body.ts'

/** What reads the body of an answer, a JSON object. It depends on what the tables hold, and on nothing else. */
export interface AnswerQuery {
  /** A field that is a list, and the query for what is in it: each row becomes an object. */
  list?: [field: string, rows: PendingQuery<Row[]>]
  /** The query for the other fields: the columns of its one row. Without a row there is no answer. */
  fields?: PendingQuery<Row[]>
}

/** A state of the database: equal at two times when nothing was committed in between. Null is like no other. */
export type DatabaseState = string | null

export interface KeptAnswer {
  /** The JSON as PostgreSQL wrote it; `undefined` when there is no answer. */
  body: SharedBody | undefined
  /** The state that it was read in. */
  state: DatabaseState
}

/**
 * The state of the database in one text. Two equal texts mean that nothing was committed in between:
 *
 * - `pg_current_snapshot()` tells which transactions have ended. Every commit of a write changes it, before whoever
 *   committed hears of it. On a standby it leaves some out, so there is no state.
 * - The name of the database and the time when the server started tell them from others that took their place, with
 *   transaction numbers of their own.
 * - After a crash, the numbers of transactions that were lost are given again, and the server may go on under the old
 *   start time. But its statistics begin anew; or, where only a file tells when those did (PostgreSQL 14), so does the
 *   log, with a checkpoint.
 *
 * Each function in it takes several microseconds where PostgreSQL has not run for a moment, so there are few: even the
 * version is the one that the server told when it was connected to. What takes its place is as new, or newer.
 */
const state = (sql: Sql) => sql`
  CASE WHEN NOT pg_is_in_recovery() THEN (
    pg_current_snapshot(), current_database(), pg_postmaster_start_time(),
    ${parseInt(String(sql.parameters.server_version)) >= 15
      ? sql`pg_stat_get_bgwriter_stat_reset_time()`
      : sql`(pg_control_checkpoint()).checkpoint_lsn`}
  )::text END
`

/** The text of a row's columns: the state and the other fields, in the first row, and an item of the list. */
type Columns = [state: Buffer | null, fields: Buffer | null, item: Buffer | null]

const COMMA = Buffer.from(',')

/** What an answer takes besides its bytes, roughly. */
const OVERHEAD = 500

/** How many rows are taken at a stretch: as many as a few milliseconds are enough for. */
const ROWS = 500

/** How often its bytes an answer may take: as they are, and in two codings. */
const FORMS = 3

/** How often an answer was kept and right, how often one was read, and how often the state was asked for. */
export interface AnswerCounts {
  hits: number
  reads: number
  rounds: number
}

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
 * last is kept, `maxBytes` in all. Nobody waits for a read of others, and then for their own, for more than `seconds`.
 */
export function keepAnswers (sql: Sql, sqlProbe: Sql, maxBytes: number, seconds: number) {
  const kept = new LRUCache<string, KeptAnswer>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }, key) => OVERHEAD + key.length + FORMS * (body?.length ?? 0),
  })
  const currentState = state(sql)
  const joinProbe = joinReads<DatabaseState>(seconds)
  const joinRead = joinReads<KeptAnswer>(seconds)
  const counts: AnswerCounts = { hits: 0, reads: 0, rounds: 0 }

  return { readState, answer, counts, bytes: () => kept.calculatedSize }

  /** The state of the database at some time after the call. */
  function readState () {
    return joinProbe('', async () => {
      counts.rounds++
      const [row] = await sqlProbe<[{ state: DatabaseState }]>`SELECT ${currentState} AS state`
      return row.state
    })
  }

  /**
   * The answer to a query that the key identifies, at some time after the call; or after the time of `seen`, where the
   * state is known already.
   */
  async function answer (
    key: string, query: (sql: Sql) => AnswerQuery, seen?: DatabaseState
  ): Promise<KeptAnswer> {
    if (kept.has(key)) {
      const current = seen ?? await readState()
      const known = kept.get(key)
      if (known && isSameState(known.state, current)) {
        counts.hits++
        return known
      }
    }
    return joinRead(key, () => read(key, query(sql)))
  }

  async function read (key: string, query: AnswerQuery) {
    counts.reads++
    const { blocks, state } = await readBlocks(sql, query, currentState)
    const known = kept.get(key)?.body
    const hash = blocks && await hashBlocks(blocks)
    // What changed elsewhere leaves the bytes as they are, and with them what was made of them.
    const body = blocks && hash ? known?.hash === hash ? known : new SharedBody(blocks, hash) : undefined
    kept.set(key, { body, state })
    return { body, state }
  }
}

/**
 * Reads a body, and the state of the database with it, in one statement. Rows are put together some at a time and as
 * they are, so that others are served in between, however many there are. There are no blocks where there is no answer.
 */
async function readBlocks (sql: Sql, { list, fields }: AnswerQuery, currentState: PendingQuery<Row[]>) {
  const [name, rows] = list ?? []
  const others = sql`(SELECT row_to_json(fields) FROM (${fields ?? sql`SELECT`}) AS fields)`
  const isFirst = sql`row_number() OVER () = 1`
  const statement = rows
    ? sql`
      SELECT CASE WHEN ${isFirst} THEN ${currentState} END, CASE WHEN ${isFirst} THEN ${others} END, item
      FROM (SELECT) AS one LEFT JOIN (SELECT row_to_json(item) AS item FROM (${rows}) AS item) AS items ON true
    `
    : sql`SELECT ${currentState}, ${others}, NULL`

  const { add, end } = collectBlocks()
  let first: Columns | undefined
  if (name) add(Buffer.from(`{"${name}":[`))
  await (statement.raw() as unknown as PendingQuery<Columns[]>).cursor(ROWS, rows => {
    for (const columns of rows) {
      if (first) add(COMMA)
      first ??= columns
      const [, , item] = columns
      if (item) add(item)
    }
  })
  const [stateThen, rest] = first!
  if (rest) {
    if (name) add(Buffer.from(rest.length > '{}'.length ? '],' : ']'))
    add(name ? rest.subarray('{'.length) : rest)
  }
  return { state: stateThen && String(stateThen), blocks: rest ? end() : undefined }
}
