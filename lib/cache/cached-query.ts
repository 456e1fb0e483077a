import { setImmediate } from 'node:timers/promises'

import type { Static, TSchema } from '@sinclair/typebox'
import type { PendingQuery, Row, Sql } from 'postgres'

import { ChunkCollector, type Chunks } from './cached-body.ts'

/** The body of a success, by the schema of its route. */
export type Body<Schema extends { response: { 200: TSchema } }> = Static<Schema['response'][200]>

/**
 * Builds a response body, a JSON object unless there is a format. It depends on the tables and its arguments, and on
 * nothing else.
 */
export interface CachedQuery<Body extends object> {
  list?: CachedList<Body>
  /** The query for the other fields: the columns of its one row. Without a row there is no body. */
  fields?: PendingQuery<Row[]>
  /** The format that a list and the other fields are written in, once for each read. */
  format?: BodyFormat
}

/** A field that is a list. */
export interface CachedList<Body extends object> {
  field: keyof Body & string
  /** The query for its items: each row becomes an object. */
  rows: PendingQuery<Row[]>
}

/** A format of bodies other than JSON. */
export interface BodyFormat {
  contentType: string
  /** Creates the writer of one body. */
  createWriter (): BodyWriter
}

/** Writes a body when its rows are read: the strings that its methods return, in the order of the calls. */
export interface BodyWriter<Fields = any, Item = any> {
  /** Called first, with the other fields. */
  begin (fields: Fields): string
  /** Called for each item; other requests are served in between. */
  add (item: Item): string
  end (): string
}

/** A row of the statement that reads a body, its columns as bytes. */
interface BodyRow {
  /** The id of the snapshot; in the first row only. */
  snapshot: Buffer | null
  /** The other fields as a JSON object; in the first row only. */
  fields: Buffer | null
  /** An item of the list as a JSON object; null when the list is empty. */
  item: Buffer | null
}

/** Rows that are read before other requests are served. */
const BATCH_ROWS = 50

/** For how long items are written in a format before other requests are served, in milliseconds. */
const WRITE_TIME_MS = 5

/** No client waits for a body any more: its read is given up, through no fault of the server that it runs on. */
class AbortError extends Error {
  override name = 'AbortError'
}

/** Watches a body grow while it is read: by so many bytes more. Returns whether a client waits for it. */
export type OnProgress = (bytes: number) => boolean

const COMMA = Buffer.from(',')
const LIST_END = Buffer.from(']')

/**
 * Reads a body and the id of its snapshot in one statement; no chunks when the query has no row. The rows of a list are
 * written as they arrive, so that no more is in memory than the body, however long a row is; a format is written when
 * all have arrived. Rejects with an AbortError when no client waits for the body any more.
 */
export async function readBody (
  sql: Sql, query: CachedQuery<any>, snapshotId: PendingQuery<Row[]>, onProgress: OnProgress
): Promise<{ snapshot: string | null, chunks: Chunks | undefined }> {
  const abandoned = new AbortError('No client waits for this body')
  const grow = (bytes: number) => {
    // It fails the statement; the driver reads the remaining rows and drops them. The statement is not cancelled:
    // PostgreSQL cancels what the connection runs, which by then may be the statement of another request.
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
  /** The column of the other fields. */
  fields: PendingQuery<Row[]>
  format?: BodyFormat | undefined
  snapshotId: PendingQuery<Row[]>
  collector: ChunkCollector
}

/** Reads a body without a list. */
async function readFields (sql: Sql, { fields, snapshotId, collector }: Reading) {
  const [columns] = await sql`SELECT ${snapshotId}, ${fields}`.raw()
  const row = toBodyRow(columns!)
  if (row.fields) collector.add(row.fields)
  return row
}

/** Reads a body with a list. Returns the first row, which is there when the list is empty, too. */
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
  // In batches: the driver would read up to 2 MB of rows before anything else runs.
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

/** Names the columns of a row, which the driver gives in the order of the SELECT list. */
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

/** Adds the fields of an object to one that is not closed yet: of `{"a":1}` this is `,"a":1}`, of `{}` it is `}`. */
function spliceFields (object: Buffer, collector: ChunkCollector) {
  if (object.length > '{}'.length) collector.add(COMMA)
  collector.add(object.subarray('{'.length))
}

/**
 * Writes the items after the last has arrived, in slices of 5 ms: those that arrive in one turn of the event loop would
 * take three times as long.
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
