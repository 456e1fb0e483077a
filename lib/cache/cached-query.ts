import { setImmediate } from 'node:timers/promises'

import type { PendingQuery, Row, Sql } from 'postgres'

import { ChunkCollector, type Chunks } from './cached-body.ts'

/** Builds a response body: a JSON object, or another format. It must depend only on the tables and its arguments. */
export interface CachedQuery {
  /**
   * A list field, and the query for its items. Each row becomes an object. `batchRows` is smaller than the default if a
   * row can have a megabyte, because the rows of a batch arrive before their bytes are counted. With `keys`, the
   * query for `id`, `at` and `size` of the items, a list that is too long for the cache can be sent in batches. Its
   * items have their `id`, and are sorted by `at DESC, id`.
   */
  list?: { field: string, rows: PendingQuery<Row[]>, batchRows?: number, keys?: PendingQuery<Row[]> | undefined }
  /** Returns one row with the other fields as its columns. If this query returns no row, `sendCached` returns false. */
  fields?: PendingQuery<Row[]>
  /** The format of the list and the other fields, if not JSON. */
  format?: BodyFormat
}

/** A body format other than JSON. */
export interface BodyFormat<Fields = any, Item = any> {
  contentType: string
  /** Yields the body in pieces. Other requests are served between pieces. */
  write (fields: Fields, items: Iterable<Item>): Iterable<string | Buffer>
}

/** A row of the statement that reads a body, with columns as bytes. */
interface BodyRow {
  /** The snapshot id, only in the first row. */
  snapshot: Buffer | null
  /** The other fields as a JSON object, only in the first row. */
  fields: Buffer | null
  /** An item as a JSON object; null if the list is empty. */
  item: Buffer | null
}

/** Default number of rows that are read before their bytes are counted and other requests are served. */
const BATCH_ROWS = 50

/** Time for which pieces are written before other requests are served. */
const WRITE_TIME_MS = 5

const COMMA = Buffer.from(',')

/**
 * Counts the bytes that a read holds, when it begins and when it holds more or less. Throws if it must end. The read
 * continues when the result resolves.
 */
export type AddBytes = (bytes: number) => Promise<void> | undefined

/**
 * Reads a body and its snapshot id in one statement, a list in batches of rows. As a single value, a list of 100,000
 * rows delayed other requests by 424 ms instead of 97, and took 345 MB instead of 220. Without a row of `fields`,
 * `chunks` is `undefined`. Rejects with the errors of `addBytes`.
 */
export async function readBody (
  sql: Sql, { list, fields = sql`SELECT`, format }: CachedQuery, snapshotId: PendingQuery<Row[]>,
  addBytes: AddBytes
): Promise<{ snapshot: string | null, chunks: Chunks | undefined }> {
  const writer = format ? formatWriter(format, addBytes) : jsonWriter(list?.field)
  const object = sql`(SELECT row_to_json(fields) FROM (${fields}) AS fields)`
  addBytes(0)
  // For a single row, the round trips of a cursor would double the processor time, from 27 to 53 µs.
  const first = list
    ? await readList()
    : toBodyRow((await sql`SELECT ${snapshotId}, ${object}`.raw())[0]!)
  return {
    snapshot: first.snapshot && String(first.snapshot),
    chunks: first.fields ? await writer.end(first.fields) : undefined,
  }

  /** Writes the items. Returns the first row, which exists even if the list is empty. */
  async function readList () {
    // The items arrive in the order of their subquery. An ORDER BY here would sort again, and PostgreSQL would hold the
    // whole list, for example 30 MB, before it sends the first row.
    const isFirst = sql`row_number() OVER () = 1`
    const statement = sql`
      SELECT CASE WHEN ${isFirst} THEN ${snapshotId} END, CASE WHEN ${isFirst} THEN ${object} END, item
      FROM (SELECT) AS one LEFT JOIN (SELECT row_to_json(item) AS item FROM (${list!.rows}) AS item) AS items ON true
    `
    let first: BodyRow | undefined
    // Without batches, the driver would read up to 2 MB of rows before other requests are served.
    await statement.raw().cursor(list!.batchRows ?? BATCH_ROWS, batch => {
      const rows = batch.map(toBodyRow)
      first ??= rows[0]!
      const items = first.fields ? rows.flatMap(({ item }) => item ?? []) : []
      for (const item of items) writer.add(item)
      // An error fails the statement, and the driver drops the remaining rows. It must not cancel the statement:
      // PostgreSQL cancels the current statement of a connection, which may belong to another request by then.
      return addBytes(items.reduce((sum, { length }) => sum + length, 0))
    })
    return first!
  }
}

/** Names the columns of a row, which the driver returns in the order of the SELECT list. */
function toBodyRow ([snapshot = null, fields = null, item = null]: (Buffer | null)[]): BodyRow {
  return { snapshot, fields, item }
}

/** Writes a body from rows. */
interface BodyWriter {
  add (item: Buffer): void
  end (fields: Buffer): Chunks | Promise<Chunks>
}

/** Copies the JSON that PostgreSQL wrote, as it arrives: `{"field":[item,item],"other":1}`. */
function jsonWriter (field: string | undefined): BodyWriter {
  const collector = new ChunkCollector()
  let separator = Buffer.from(`{"${field}":[`)
  return {
    add (item) {
      collector.add(separator)
      collector.add(item)
      separator = COMMA
    },
    end (fields) {
      if (field === undefined) {
        collector.add(fields)
      } else {
        if (separator !== COMMA) collector.add(separator)
        collector.add(Buffer.from(fields.length > '{}'.length ? '],' : ']'))
        collector.add(fields.subarray('{'.length))
      }
      return collector.end()
    },
  }
}

/**
 * Writes the items after the last item has arrived, in slices of 5 ms. Otherwise, the items that arrive in one turn of
 * the event loop would block it for about 15 ms. Forgets each item before the next one: three calendars of 250 long
 * events ended a process of 512 MB.
 */
function formatWriter ({ write }: BodyFormat, addBytes: AddBytes): BodyWriter {
  const parse = (json: Buffer) => JSON.parse(String(json))
  const items: Buffer[] = []
  /** Bytes that were added since `addBytes` was called last. */
  let added = 0
  function * parsed () {
    items.reverse()
    for (let item; (item = items.pop());) {
      added -= item.length
      yield parse(item)
    }
  }
  return {
    add: item => items.push(item),
    async end (fields) {
      const collector = new ChunkCollector()
      let pause = performance.now() + WRITE_TIME_MS
      for (const piece of write(parse(fields), parsed())) {
        const bytes = Buffer.from(piece)
        added += bytes.length
        collector.add(bytes)
        if (performance.now() < pause) continue
        addBytes(added)
        added = 0
        await setImmediate()
        pause = performance.now() + WRITE_TIME_MS
      }
      return collector.end()
    },
  }
}
