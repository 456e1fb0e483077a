import { setImmediate } from 'node:timers/promises'

import type { Static, TSchema } from '@sinclair/typebox'
import type { PendingQuery, Row, Sql } from 'postgres'

import { ChunkCollector, type Chunks } from './cached-body.ts'

/** The type of a success body, from the schema of its route. */
export type Body<Schema extends { response: { 200: TSchema } }> = Static<Schema['response'][200]>

/** Builds a response body: a JSON object, or another format. It must depend only on the tables and its arguments. */
export interface CachedQuery<Body extends object> {
  list?: CachedList<Body>
  /** The query for the other fields. It returns one row with a column per field, or no row if there is no body. */
  fields?: PendingQuery<Row[]>
  /** The format of the list and the other fields, if not JSON. */
  format?: BodyFormat
}

/** A list field. */
export interface CachedList<Body extends object> {
  field: keyof Body & string
  /** The query for the items. Each row becomes an object. */
  rows: PendingQuery<Row[]>
}

/** A body format other than JSON. */
export interface BodyFormat {
  contentType: string
  createWriter (): BodyWriter
}

/** Writes one body: the concatenated return values of its methods. */
export interface BodyWriter<Fields = any, Item = any> {
  /** Called first, with the other fields. */
  begin (fields: Fields): string
  /** Called for each item. Other requests are served between calls. */
  add (item: Item): string
  end (): string
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

/** Number of rows that are read before other requests are served. */
const BATCH_ROWS = 50

/** Time for which items are written before other requests are served. */
const WRITE_TIME_MS = 5

/** A read was abandoned because its clients have gone. The server is not at fault. */
class AbortError extends Error {
  override name = 'AbortError'
}

/** Called when a body grows by `bytes` during a read. Returns whether a client still waits for it. */
export type OnProgress = (bytes: number) => boolean

const COMMA = Buffer.from(',')
const LIST_END = Buffer.from(']')

/**
 * Reads a body and its snapshot id in one statement. Without a row of `fields`, `chunks` is `undefined`. The rows of a
 * JSON list are copied as they arrive, so that memory contains only the body. Other formats are written after the last
 * row has arrived. Rejects with an AbortError if all clients have gone.
 */
export async function readBody (
  sql: Sql, query: CachedQuery<any>, snapshotId: PendingQuery<Row[]>, onProgress: OnProgress
): Promise<{ snapshot: string | null, chunks: Chunks | undefined }> {
  const abandoned = new AbortError('No client waits for this body')
  const grow = (bytes: number) => {
    // This fails the statement, and the driver drops the remaining rows. It must not cancel the statement, because
    // PostgreSQL cancels the current statement of a connection, which may belong to another request by then.
    if (!onProgress(bytes)) throw abandoned
  }
  const collector = new ChunkCollector(grow)
  grow(0)
  const fields = sql`(SELECT row_to_json(fields) FROM (${query.fields ?? sql`SELECT`}) AS fields)`
  const first = query.list
    ? await readList(sql, query.list, { fields, format: query.format, snapshotId, collector, grow })
    : await readFields(sql, { fields, snapshotId, collector })
  return { snapshot: first.snapshot && String(first.snapshot), chunks: first.fields ? collector.end() : undefined }
}

interface Reading {
  /** SQL column: the other fields as a JSON object. */
  fields: PendingQuery<Row[]>
  format?: BodyFormat | undefined
  snapshotId: PendingQuery<Row[]>
  collector: ChunkCollector
}

async function readFields (sql: Sql, { fields, snapshotId, collector }: Reading) {
  const [columns] = await sql`SELECT ${snapshotId}, ${fields}`.raw()
  const row = toBodyRow(columns!)
  if (row.fields) collector.add(row.fields)
  return row
}

/** Reads a body with a list. Returns the first row, which exists even if the list is empty. */
async function readList (
  sql: Sql, { field, rows }: CachedList<any>,
  { fields, format, snapshotId, collector, grow }: Reading & { grow (bytes: number): void }
) {
  const isFirst = sql`row_number() OVER () = 1`
  const statement = sql`
    SELECT CASE WHEN ${isFirst} THEN ${snapshotId} END, CASE WHEN ${isFirst} THEN ${fields} END, item
    FROM (SELECT) AS one LEFT JOIN (SELECT row_to_json(item) AS item FROM (${rows}) AS item) AS items ON true
  `
  const writer = format ? formatWriter(format, collector, grow) : jsonWriter(field, collector)
  let first: BodyRow | undefined
  // Without batches, the driver would read up to 2 MB of rows before other requests are served.
  await statement.raw().cursor(BATCH_ROWS, batch => {
    for (const columns of batch) {
      const row = toBodyRow(columns as unknown as Buffer[])
      if (!first && row.fields) writer.begin(row.fields)
      first ??= row
      if (first.fields && row.item) writer.add(row.item)
    }
  })
  if (first!.fields) await writer.end(first!.fields)
  return first!
}

/** Names the columns of a row, which the driver returns in the order of the SELECT list. */
function toBodyRow ([snapshot = null, fields = null, item = null]: (Buffer | null)[]): BodyRow {
  return { snapshot, fields, item }
}

/** Writes the rows of a list to a collector. */
interface RowWriter {
  begin (fields: Buffer): void
  add (item: Buffer): void
  end (fields: Buffer): void | Promise<void>
}

/** Copies the JSON that PostgreSQL wrote: `{"field":[item,item],"other":1}`. */
function jsonWriter (field: string, collector: ChunkCollector): RowWriter {
  let isEmpty = true
  return {
    begin: () => collector.add(Buffer.from(`{"${field}":[`)),
    add (item) {
      if (!isEmpty) collector.add(COMMA)
      isEmpty = false
      collector.add(item)
    },
    end (fields) {
      collector.add(LIST_END)
      spliceFields(fields, collector)
    },
  }
}

/** Appends the fields of an object to an open object: `,"a":1}` for `{"a":1}`, and `}` for `{}`. */
function spliceFields (object: Buffer, collector: ChunkCollector) {
  if (object.length > '{}'.length) collector.add(COMMA)
  collector.add(object.subarray('{'.length))
}

/**
 * Writes the items after the last item has arrived, in slices of 5 ms. Otherwise, the items that arrive in one turn of
 * the event loop would block it for about 15 ms.
 */
function formatWriter (format: BodyFormat, collector: ChunkCollector, grow: (bytes: number) => void): RowWriter {
  const writer = format.createWriter()
  const write = (text: string) => collector.add(Buffer.from(text))
  const parse = (json: Buffer) => JSON.parse(String(json))
  const items: Buffer[] = []
  return {
    begin: fields => write(writer.begin(parse(fields))),
    add (item) {
      grow(item.length)
      items.push(item)
    },
    async end () {
      let pause = performance.now() + WRITE_TIME_MS
      for (const item of items) {
        write(writer.add(parse(item)))
        if (performance.now() < pause) continue
        await setImmediate()
        pause = performance.now() + WRITE_TIME_MS
      }
      write(writer.end())
    },
  }
}
