import { setImmediate } from 'node:timers/promises'

import type { Static, TSchema } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import type { PendingQuery, Row } from 'postgres'

import type { Sql } from '../database/client.ts'
import { type Replicas, type WalPosition, walPosition } from '../database/replicas.ts'
import { CachedBody, ChunkCollector, hashChunks } from './cached-body.ts'
import { singleFlight } from './single-flight.ts'

/** The body of a success, by the schema of its route. */
export type Body<Schema extends { response: { 200: TSchema } }> = Static<Schema['response'][200]>

/**
 * Builds a response body, a JSON object unless there is a format. It depends on what the tables hold, and on nothing
 * else.
 */
export interface CachedQuery<Body extends object> {
  /** A field that is a list, and the query for its items: each row becomes an object. */
  list?: [field: keyof Body & string, rows: PendingQuery<Row[]>]
  /** The query for the other fields: the columns of its one row. Without a row there is no body. */
  fields?: PendingQuery<Row[]>
  /** What a list and the other fields are written as, once for each read. */
  format?: BodyFormat
}

/** A format of bodies other than JSON. */
export interface BodyFormat {
  contentType: string
  /** Makes what writes one body. */
  createWriter (): BodyWriter
}

/** Writes a body while its rows are read; what its methods return makes up the body, in the order of the calls. */
export interface BodyWriter<Fields = any, Item = any> {
  /** Called first, with the other fields. */
  begin (fields: Fields): string
  /** Called for a few items at a time: other requests are served in between. */
  add (items: Item[]): string
  end (): string
}

/** Identifies a snapshot. Equal ids mean that nothing was committed in between. `null` never matches. */
export type SnapshotId = string | null

/** What the primary says of itself. */
interface PrimaryState {
  snapshot: SnapshotId
  /** Where a replica must be to have what was committed before; null when that cannot be said. */
  position: WalPosition | null
}

interface CacheEntry {
  /** `undefined` when the query had no row. */
  body: CachedBody | undefined
  /** The snapshot that it was read in. */
  snapshot: SnapshotId
}

/**
 * The id of the current snapshot. Two equal ids mean that nothing was committed in between:
 *
 * - `pg_current_snapshot()` says which transactions have ended. Every commit of a write changes it before the client
 *   hears of the commit. On a standby it leaves some out, so there the id is null.
 * - The name of the database and the start time of the server tell it from another that took its place, with
 *   transaction ids of its own.
 * - After a crash, the ids of lost transactions are assigned again, and the start time may stay the same. But the
 *   statistics are reset; or, where that shows in a file only (PostgreSQL 14), a new checkpoint is written.
 *
 * Each function costs several microseconds on a backend that was idle, so there are few: the version is the one that
 * the server reported when the connection was made. A server that takes its place is as new, or newer.
 */
const snapshotId = (sql: Sql) => sql`
  CASE WHEN NOT pg_is_in_recovery() THEN (
    pg_current_snapshot(), current_database(), pg_postmaster_start_time(),
    ${parseInt(String(sql.parameters.server_version)) >= 15
      ? sql`pg_stat_get_bgwriter_stat_reset_time()`
      : sql`(pg_control_checkpoint()).checkpoint_lsn`}
  )::text END
`

/** A row: the snapshot id and the other fields, in the first row, and an item of the list. */
type Columns = [snapshot: Buffer | null, fields: Buffer | null, item?: Buffer | null]

const COMMA = Buffer.from(',')

/** Approximate bytes of an entry besides its body. */
const ENTRY_OVERHEAD = 500

/** Rows that are fetched at a time: a few milliseconds of work. */
const BATCH_ROWS = 500

/** The same where each row is parsed and written in another format. */
const FORMATTED_BATCH_ROWS = 50

const JSON_TYPE = 'application/json; charset=utf-8'

/** Size multiplier: identity, gzip and brotli. */
const ENCODED_FORMS = 3

/** Hits, misses, and how often the current snapshot was asked for. */
export interface CacheCounts {
  hits: number
  misses: number
  validations: number
}

/**
 * A cache of response bodies that is never stale, without triggers, notifications or expiry times, for any writer and
 * any number of instances:
 *
 * 1. A body is cached with the snapshot that it was read in. Both come from one statement.
 * 2. When there is a body, the current snapshot is asked for after the request arrived; requests of one turn of the
 *    event loop share the question. Equal ids mean that nothing was committed in between: the cached bytes are what a
 *    read would give.
 * 3. Otherwise the body is read again by a statement that begins after the request arrived. All requests that found
 *    the same new snapshot share that read.
 *
 * The snapshot is asked for on `sqlProbe`, which long reads do not occupy. `maxBytes` bounds all entries; the least
 * recently used one goes first.
 *
 * With replicas, bodies are read there: the question for the snapshot also brings the position that a replica must have
 * replayed to have everything that is in the snapshot. What was read is cached with that snapshot.
 */
export function createSnapshotCache (
  sql: Sql, sqlProbe: Sql, maxBytes: number, replicas?: Replicas
) {
  const entries = new LRUCache<string, CacheEntry>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }, key) => ENTRY_OVERHEAD + key.length + ENCODED_FORMS * (body?.length ?? 0),
  })
  const currentId = snapshotId(sql)
  const andPosition = replicas ? sql`, ${walPosition(sql)} AS position` : sql``
  const shareRead = singleFlight<CacheEntry>()
  const counts: CacheCounts = { hits: 0, misses: 0, validations: 0 }
  /** Not sent yet. */
  let question: Promise<PrimaryState> | undefined
  /** What was found out last. */
  let latest: PrimaryState = { snapshot: null, position: null }

  return { currentState, get, readFresh, counts, bytes: () => entries.calculatedSize }

  /** The state of the primary at some time after the call. Calls of one turn of the event loop share the question. */
  function currentState () {
    question ??= setImmediate().then(async () => {
      question = undefined
      counts.validations++
      const [state] = await sqlProbe<[PrimaryState]>`SELECT ${currentId} AS snapshot ${andPosition}`
      latest = state
      return state
    })
    return question
  }

  /**
   * The body of the query that the key identifies, as the database would give it at some time after the call;
   * `undefined` when the query has no row.
   */
  async function get (key: string, query: (sql: Sql) => CachedQuery<any>): Promise<CachedBody | undefined> {
    let snapshot: SnapshotId = null
    // With replicas everybody asks before they share a read, so that its replica has what each of them must see.
    if (replicas || entries.has(key)) {
      snapshot = (await currentState()).snapshot
      const entry = entries.get(key)
      if (entry && snapshot !== null && entry.snapshot === snapshot) {
        counts.hits++
        return entry.body
      }
    }
    // Or joins a running read that was started for the same snapshot.
    const { body } = await shareRead(key, () => read(key, query(sql)), snapshot)
    return body
  }

  /** Runs statements that only read, on a replica or on the primary, some time after the call. */
  async function readFresh<T> (work: (sql: Sql) => Promise<T>): Promise<T> {
    if (!replicas) return work(sql)
    const { position } = await currentState()
    return replicas.read(position, work, () => work(sql))
  }

  async function read (key: string, query: CachedQuery<any>): Promise<CacheEntry> {
    counts.misses++
    const { chunks, snapshot } = await readSomewhere(query)
    const hash = chunks && await hashChunks(chunks)
    const cached = entries.get(key)?.body
    // A commit elsewhere leaves the bytes as they are: keep the body, and what it was encoded to.
    const { contentType } = query.format ?? { contentType: JSON_TYPE }
    const body = chunks && hash ? cached?.hash === hash ? cached : new CachedBody(chunks, hash, contentType) : undefined
    const entry = { body, snapshot }
    entries.set(key, entry)
    return entry
  }

  async function readSomewhere (query: CachedQuery<any>) {
    const onPrimary = () => readChunks(sql, query, currentId)
    if (!replicas) return onPrimary()
    // Not that of the first who shares this read: the others may have asked later.
    const { snapshot, position } = latest
    const known = sql`${snapshot}::text`
    return replicas.read(position, replica => readChunks(replica, query, known), onPrimary)
  }
}

/**
 * Reads a body and its snapshot in one statement. The rows of a list are fetched in batches, so that other requests are
 * served in between, however many there are.
 */
async function readChunks (sql: Sql, { list, fields, format }: CachedQuery<any>, currentId: PendingQuery<Row[]>) {
  const others = sql`(SELECT row_to_json(fields) FROM (${fields ?? sql`SELECT`}) AS fields)`
  const collector = new ChunkCollector()
  let first: Columns
  if (list) {
    const [name, rows] = list
    const isFirst = sql`row_number() OVER () = 1`
    const read = sql`
      SELECT CASE WHEN ${isFirst} THEN ${currentId} END, CASE WHEN ${isFirst} THEN ${others} END, item
      FROM (SELECT) AS one LEFT JOIN (SELECT row_to_json(item) AS item FROM (${rows}) AS item) AS items ON true
    `.raw() as unknown as PendingQuery<Columns[]>
    first = format ? await writeFormat(read, format, collector) : await writeList(read, name, collector)
  } else {
    // Without a cursor, whose round trips take as much time again.
    [first] = await sql`SELECT ${currentId}, ${others}`.raw() as unknown as [Columns]
    if (first[1]) collector.add(first[1])
  }
  const [snapshot, rest] = first
  return { snapshot: snapshot && String(snapshot), chunks: rest ? collector.end() : undefined }
}

/** Copies rows as PostgreSQL wrote them. Returns the first one. */
async function writeList (read: PendingQuery<Columns[]>, name: string, collector: ChunkCollector) {
  let first: Columns | undefined
  collector.add(Buffer.from(`{"${name}":[`))
  await read.cursor(BATCH_ROWS, rows => {
    for (const columns of rows) {
      if (first) collector.add(COMMA)
      first ??= columns
      const [, , item] = columns
      if (item) collector.add(item)
    }
  })
  const [, rest] = first!
  if (rest) {
    collector.add(Buffer.from(rest.length > '{}'.length ? '],' : ']'))
    collector.add(rest.subarray('{'.length))
  }
  return first!
}

/** Writes rows in a format. Returns the first one. */
async function writeFormat (read: PendingQuery<Columns[]>, format: BodyFormat, collector: ChunkCollector) {
  const writer = format.createWriter()
  let first: Columns | undefined
  await read.cursor(FORMATTED_BATCH_ROWS, rows => {
    const begins = !first
    first ??= rows[0]!
    const [, rest] = first
    // There is no body.
    if (!rest) return
    if (begins) collector.add(Buffer.from(writer.begin(JSON.parse(String(rest)))))
    const items = rows.flatMap(([, , item]) => item ? [JSON.parse(String(item))] : [])
    collector.add(Buffer.from(writer.add(items)))
  })
  collector.add(Buffer.from(writer.end()))
  return first!
}
