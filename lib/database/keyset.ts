import type { PendingQuery, Row, Sql } from 'postgres'

/** Rows of a batch at most. No connection and no snapshot is held between two, however slowly a client reads. */
const BATCH_ROWS = 250

/** Bytes after which a batch ends, with the row that exceeds them. */
const BATCH_BYTES = 256 * 1024

/** The last row of a batch; the next batch begins after it. A row's time and id never change. */
export interface KeysetPosition {
  time: string
  id: string
}

/** The position before the newest row. */
const START: KeysetPosition = { time: 'infinity', id: '00000000-0000-0000-0000-000000000000' }

/** Runs statements that only read. */
export type Read = <T>(work: (sql: Sql) => Promise<T>) => Promise<T>

/** Reads the rows after a position, a batch at most. */
export type Batch<Row> = (sql: Sql, after: KeysetPosition) => PromiseLike<readonly (Row & KeysetPosition)[]>

/**
 * Reads all rows, the newest first. Resolves after the first batch, so that early failures come before anything is
 * sent.
 */
export async function readInBatches<Row> (read: Read, batch: Batch<Row>): Promise<AsyncIterable<Row>> {
  const first = await readAfter(START)
  return rest()

  async function * rest () {
    for (let rows = first; rows.length > 0; rows = await readAfter(rows.at(-1)!)) yield * rows
  }

  function readAfter (last: KeysetPosition) {
    return read(async sql => batch(sql, last))
  }
}

/** The end of a query, from a condition on: the batch of rows after a position, by the columns of their time and id. */
export const afterKey = (sql: Sql, position: KeysetPosition, { time, id }: { time: string, id: string }) => sql`
  ${sql(time)} <= ${position.time}::text::timestamptz
    AND (${sql(time)} < ${position.time}::text::timestamptz OR ${sql(id)} > ${position.id})
  ORDER BY ${sql(time)} DESC, ${sql(id)} LIMIT ${BATCH_ROWS}
`

/** The first rows of a query that have BATCH_BYTES together, by its column `size`. */
export const keysetBatch = <Found extends Row>(sql: Sql, rows: PendingQuery<Row[]>) => sql<Found[]>`
  SELECT * FROM (
    SELECT *, sum(size) OVER (ROWS UNBOUNDED PRECEDING) - size AS before FROM (${rows}) AS rows
  ) AS rows
  WHERE before < ${BATCH_BYTES}::integer
`
