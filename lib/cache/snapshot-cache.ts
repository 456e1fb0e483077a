import { setImmediate } from 'node:timers/promises'

import { LRUCache } from 'lru-cache'
import type { PendingQuery, Row, Sql } from 'postgres'

import { CachedBody, type Chunks, hashChunks } from './cached-body.ts'
import { type AddBytes, type CachedQuery, readBody } from './cached-query.ts'
import { type Hold, singleFlight } from './single-flight.ts'
import { type Client, FairQueue } from '../http/fair-queue.ts'

/** A snapshot of the primary. */
export interface Snapshot {
  /** If the ids of two snapshots are equal, no transaction was committed in between. `null` never matches. */
  id: string | null
  /** The values that `lookUp` found in this snapshot, by key. */
  found?: Record<string, unknown> | null
}

export interface SnapshotCacheOptions {
  /** Runs the queries. */
  sql: Sql
  /** Reads the current snapshot on a separate connection, so that long reads do not delay it. */
  shortSql: Sql
  /** Limit for all entries. Evicts the least recently used entries first. */
  maxBytes: number
  /** Seconds within which the primary must respond. While an older read of the snapshot exceeds it, new ones fail. */
  timeoutSeconds?: number
  /** The queues of reads with a list, and of other reads. By default, reads do not wait. */
  queues?: { lists: FairQueue, operations: FairQueue }
  /** If running reads hold more bytes together, only the oldest one continues. */
  maxReading?: number
  /** Throws if a body of so many bytes is too large, while it is read. */
  assertSize? (bytes: number): void
  /** SQL expression that is read together with the snapshot: a JSON object by key, or null. */
  lookUp? (sql: Sql, keys: string[]): PendingQuery<Row[]>
}

interface CacheEntry {
  /** `undefined` if the query had no row. */
  body: CachedBody | undefined
  /** The id of the snapshot in which the body was read. */
  snapshot: string | null
}

/**
 * SQL: the id of the current snapshot. If two ids are equal, no transaction was committed in between:
 *
 * - `pg_current_snapshot()` identifies the finished transactions. Every commit of a write changes it before the client
 *   gets the response to its commit. On a standby it omits transactions, so the id is null there.
 * - The name of the database and the start time of the server distinguish it from a replacement server, which assigns
 *   its own transaction ids.
 * - After a crash, PostgreSQL reuses the ids of lost transactions, and the start time may stay the same. However, it
 *   resets the statistics or, in PostgreSQL 14, writes a new checkpoint.
 *
 * Each function costs several microseconds on an idle backend. Therefore, the version comes from the start of the
 * connection. A replacement server has the same version or a newer one.
 */
const snapshotId = (sql: Sql) => sql`
  CASE WHEN NOT pg_is_in_recovery() THEN (
    pg_current_snapshot(), current_database(), pg_postmaster_start_time(),
    ${parseInt(String(sql.parameters.server_version)) >= 15
      ? sql`pg_stat_get_bgwriter_stat_reset_time()`
      : sql`(pg_control_checkpoint()).checkpoint_lsn`}
  )::text END
`

/** Approximate bytes of an entry besides its body. */
const ENTRY_OVERHEAD = 500

export const JSON_TYPE = 'application/json; charset=utf-8'

/**
 * A read of at most so many bytes never waits for older ones. Without this, others got half as many responses alongside
 * six members who read 49 MB of drafts each.
 */
const SHORT = 2 ** 20

/** Size multiplier: identity, gzip and brotli. */
const ENCODED_FORMS = 3

const unlimited = () => new FairQueue({ concurrency: Infinity, maxLength: Infinity, createError: Error })

/**
 * Creates a cache of response bodies that is never stale, for any writer and any number of instances. Without it, every
 * visitor costs a query: in two comparisons, the service sent 5 and 7 times as many pictures per second from memory. It
 * does not use triggers, notifications or expiry times:
 *
 * 1. One statement reads a body and its snapshot id. Both are cached.
 * 2. After a request has arrived, the cache reads the current snapshot. Requests in the same turn of the event loop
 *    share this read. If the ids are equal, no transaction was committed in between, so the bytes are current.
 * 3. Otherwise, a statement that begins after the arrival of the request reads the body again. All requests that found
 *    the same new snapshot share this read.
 */
export function createSnapshotCache ({
  sql, shortSql, maxBytes, maxReading = Infinity, timeoutSeconds = Infinity, lookUp, assertSize = () => {},
  queues = { lists: unlimited(), operations: unlimited() },
}: SnapshotCacheOptions) {
  const entries = new LRUCache<string, CacheEntry>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }, key) => ENTRY_OVERHEAD + key.length + (body ? formsOf(body) * body.length : 0),
  })
  const currentId = snapshotId(sql)
  const shareRead = singleFlight<CacheEntry>()
  /** Validations are reads of the snapshot. */
  const counts = { hits: 0, misses: 0, validations: 0 }
  /** The next read of the snapshot, which callers can still join. */
  let next: Promise<Snapshot> | undefined
  /** The keys to look up with it. */
  let keys = new Set<string>()
  /** The running reads of bodies, oldest first, with the bytes that they hold. */
  const reads = new Set<{ bytes: number }>()
  /** Each lets a read that waits look whether it can continue. */
  const waiting: (() => void)[] = []
  /** The running reads of the snapshot, oldest first, with their start time in milliseconds. */
  const running = new Set<{ since: number }>()

  return { readSnapshot, get, counts, bytes: () => entries.calculatedSize }

  /**
   * Reads the snapshot of the primary after the call, including the value of this key. Calls in one turn of the event
   * loop share the read. Rejects while an older read exceeds the timeout. Otherwise, reads would accumulate during an
   * outage: 2,400 in 20 seconds.
   */
  function readSnapshot (key?: string) {
    if (key) keys.add(key)
    next ??= setImmediate().then(async () => {
      next = undefined
      const andFound = lookUp && keys.size > 0 ? sql`, ${lookUp(sql, [...keys])} AS found` : sql``
      keys = new Set()
      const own = { since: performance.now() }
      const [oldest = own] = running
      if (own.since - oldest.since > timeoutSeconds * 1000) throw new Error('The database does not respond')
      counts.validations++
      running.add(own)
      try {
        const [snapshot] = await shortSql<[Snapshot]>`SELECT ${currentId} AS id ${andFound}`
        return snapshot
      } finally {
        running.delete(own)
      }
    })
    return next
  }

  /**
   * Returns the body of the query with this key, at least as new as the call or, if given, as this snapshot.
   * Returns `undefined` if the query has no row.
   */
  async function get (
    key: string, query: (sql: Sql) => CachedQuery, clients: readonly Client[], snapshot?: Snapshot | null
  ): Promise<CachedBody | undefined> {
    const { id } = snapshot ?? await readSnapshot()
    const entry = entries.get(key)
    if (entry && id !== null && entry.snapshot === id) {
      counts.hits++
      return entry.body
    }
    const createRead = () => {
      const made = query(sql)
      return {
        queue: made.list ? queues.lists : queues.operations,
        run: (hold: Hold) => read(key, made, hold),
      }
    }
    // The clients may join a running read that was started for the same snapshot.
    const { body } = await shareRead(key, createRead, clients, id)
    return body
  }

  async function read (key: string, query: CachedQuery, hold: Hold): Promise<CacheEntry> {
    counts.misses++
    const { keys } = query.list ?? {}
    if (keys) {
      // Otherwise, each request for a long list would read rows until they exceed the limit. Four requests for 98 MB
      // took 356 MB instead of 231 in a process of 512 MB, and in a process of 256 MB three of them were closed.
      const [total] = await sql`SELECT coalesce(sum(size), 0)::float8 AS bytes FROM (${keys}) AS keys`
      assertSize(total!.bytes)
    }
    const own = { bytes: 0 }
    const addBytes: AddBytes = bytes => {
      own.bytes += bytes
      assertSize(own.bytes)
      hold(own.bytes)
      return mustWait(own) ? waitFor(own) : undefined
    }
    reads.add(own)
    try {
      const { chunks, snapshot } = await readBody(sql, query, currentId, addBytes)
      const { contentType } = query.format ?? { contentType: JSON_TYPE }
      const entry = { snapshot, body: chunks && await toBody(chunks, contentType, entries.get(key)?.body) }
      assertSize(entry.body?.length ?? 0)
      entries.set(key, entry)
      return entry
    } finally {
      reads.delete(own)
      for (const wake of waiting.splice(0)) wake()
    }
  }

  /** Tells whether a read must not continue: it is neither short nor the oldest one, and the reads hold too much. */
  function mustWait (read: { bytes: number }) {
    const [oldest] = reads
    return read !== oldest && read.bytes > SHORT && [...reads].reduce((sum, { bytes }) => sum + bytes, 0) > maxReading
  }

  /** Never rejects, because the driver does not wait for the last batch of a cursor. */
  async function waitFor (read: { bytes: number }) {
    while (mustWait(read)) await new Promise<void>(resolve => { waiting.push(resolve) })
  }
}

/** The number of forms in which a body may be stored. */
const formsOf = ({ isCompressible }: CachedBody) => isCompressible ? ENCODED_FORMS : 1

/** Creates a body. Reuses the previous body and its encodings if the bytes are equal. */
async function toBody (chunks: Chunks, contentType: string, before: CachedBody | undefined) {
  const hash = await hashChunks(chunks)
  return before?.hash === hash ? before : new CachedBody(chunks, hash, contentType)
}
