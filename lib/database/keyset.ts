import type { PendingQuery, Row } from 'postgres'

import { NIL_UUID } from '../values/formats.ts'
import type { AnySql, Sql } from './pools.ts'

/** Maximum number of rows per batch. */
const BATCH_ROWS = 250

/** Size at which a batch ends. The row that exceeds it is included. */
const BATCH_BYTES = 256 * 1024

/** The last row of a batch, after which the next batch begins. The time and id of a row never change. */
export interface KeysetPosition {
  time: string
  id: string
}

/** The position before the first row. */
const START: KeysetPosition = { time: 'infinity', id: NIL_UUID }

/** SQL: an opaque cursor for the page after a row, which `parseCursor` in lib/values/formats.ts reads. */
export const cursorAfter = (sql: AnySql, time: PendingQuery<Row[]>, id: PendingQuery<Row[]>) => sql`
  translate(encode(convert_to(concat(iso8601(${time}), ' ', ${id}), 'UTF8'), 'base64'), ${'+/=\n'}, '-_')
`

/** Runs read-only statements. */
export type Reader = <T>(work: (sql: Sql) => Promise<T>) => Promise<T>

/** Reads one batch of rows after a position. */
export type ReadBatch<Row> = (sql: Sql, after: KeysetPosition) => PromiseLike<readonly (Row & KeysetPosition)[]>

/**
 * Reads all rows, newest first. A single statement would hold all rows in memory, or a connection and a snapshot for as
 * long as a slow client downloads. Resolves after the first batch, so that early errors occur before a response starts.
 */
export async function readInBatches<Row> (read: Reader, readBatch: ReadBatch<Row>): Promise<AsyncIterable<Row>> {
  const first = await readAfter(START)
  return rest()

  async function * rest () {
    for (let rows = first; rows.length > 0; rows = await readAfter(rows.at(-1)!)) yield * rows
  }

  function readAfter (last: KeysetPosition) {
    return read(async sql => readBatch(sql, last))
  }
}

/** Yields a JSON array in pieces. */
export async function * jsonArray (items: AsyncIterable<{ item: string }>) {
  yield '['
  let separator = ''
  for await (const { item } of items) {
    yield separator + item
    separator = ','
  }
  yield ']'
}

/**
 * SQL query: the next batch of `rows` after a position. `rows` must have the columns `at` (timestamptz), `id` and
 * `size` (bytes). The result also has `time`, the text of `at`.
 */
export const nextRows = <Found extends Row>(
  sql: Sql, { time, id }: KeysetPosition, rows: PendingQuery<Row[]>
) => sql<Found[]>`
  SELECT *, iso8601(at) AS time
  FROM (
    SELECT *, sum(size) OVER (ORDER BY at DESC, id) - size AS before
    FROM (
      SELECT * FROM (${rows}) AS found
      WHERE at <= ${time}::text::timestamptz AND (at < ${time}::text::timestamptz OR id > ${id})
      ORDER BY at DESC, id LIMIT ${BATCH_ROWS}
    ) AS found
  ) AS found
  WHERE before < ${BATCH_BYTES}::integer
  ORDER BY at DESC, id
`
