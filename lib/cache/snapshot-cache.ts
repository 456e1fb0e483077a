import { setImmediate } from 'node:timers/promises'

import { LRUCache } from 'lru-cache'
import type { PendingQuery, Row, Sql } from 'postgres'

import { CachedBody, type Chunks, hashChunks } from './cached-body.ts'
import { type CachedQuery, readBody } from './cached-query.ts'
import { type Shared, singleFlight } from './single-flight.ts'

/** Identifies a snapshot. Equal ids mean that nothing was committed in between. `null` never matches. */
export type SnapshotId = string | null

/** The state of the primary. */
export interface PrimaryState {
  snapshot: SnapshotId
  /** By key, the values that `lookUp` found in this snapshot for all who shared the question. */
  found?: Record<string, unknown> | null
}

export interface SnapshotCacheOptions<Caller = unknown> {
  /** Runs the queries. */
  sql: Sql
  /** Asks for the current snapshot, on a connection of its own: long reads must not delay it. */
  shortSql: Sql
  /** Bounds all entries, in bytes; the least recently used one goes first. */
  maxBytes: number
  /** Seconds within which the primary answers, any number unless given. While an older question waits, others fail. */
  timeout?: number
  /** Looks these keys up together with the snapshot: an expression whose value is a JSON object by key, or null. */
  lookUp? (sql: Sql, keys: string[]): PendingQuery<Row[]>
  /** Begins a read, of a list or not, when it is this caller's turn; the first turn of those that share it counts. */
  turn?(caller: Caller, begin: () => Promise<void>, isList: boolean): Promise<void>
  /**
   * Called when these callers hold a body, all or a part of it, and its length in bytes may have grown by so many: when
   * its read begins, while it goes on, and before it is sent. Others may hold the same.
   */
  hold?(callers: readonly Caller[], body: { readonly length: number }, bytes: number): void
  /** Whether a caller still waits. A read without such a caller is abandoned. */
  isWaiting?(caller: Caller): boolean
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

/** Approximate bytes of an entry besides its body. */
const ENTRY_OVERHEAD = 500

const JSON_TYPE = 'application/json; charset=utf-8'

/** Size multiplier: identity, gzip and brotli. */
const ENCODED_FORMS = 3

/** Hits, misses, and validations: questions for the current snapshot. */
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
 * 2. The current snapshot is asked for after the request arrived; requests of one turn of the event loop share the
 *    question. Equal ids mean that nothing was committed in between: the cached bytes are what a
 *    read would give.
 * 3. Otherwise the body is read again by a statement that begins after the request arrived. All requests that found
 *    the same new snapshot share that read.
 */
export function createSnapshotCache<Caller = undefined> ({
  sql, shortSql, maxBytes, timeout = Infinity, lookUp, turn, hold, isWaiting = () => true,
}: SnapshotCacheOptions<Caller>) {
  const entries = new LRUCache<string, CacheEntry>({
    maxSize: maxBytes,
    sizeCalculation: ({ body }, key) => ENTRY_OVERHEAD + key.length + ENCODED_FORMS * (body?.length ?? 0),
  })
  const currentId = snapshotId(sql)
  const shareRead = singleFlight<CacheEntry, Caller>()
  const counts: CacheCounts = { hits: 0, misses: 0, validations: 0 }
  /** Asked, but not sent yet: others may join. */
  let question: Promise<PrimaryState> | undefined
  /** The keys that are looked up with it. */
  let keys = new Set<string>()
  /** The questions that are not answered, the oldest first, with their time in milliseconds. */
  const unanswered = new Set<{ since: number }>()

  return { currentState, get, counts, bytes: () => entries.calculatedSize }

  /**
   * The state of the primary at some time after the call, with the value of this key. Calls of one turn of the event
   * loop share the question. None is asked while one waits for longer than `timeout`: in an outage they would pile up.
   */
  function currentState (key?: string) {
    if (key) keys.add(key)
    question ??= setImmediate().then(async () => {
      question = undefined
      const andFound = lookUp && keys.size > 0 ? sql`, ${lookUp(sql, [...keys])} AS found` : sql``
      keys = new Set()
      const asked = { since: performance.now() }
      const [oldest = asked] = unanswered
      if (asked.since - oldest.since > timeout * 1000) throw new Error('The database does not answer')
      counts.validations++
      unanswered.add(asked)
      try {
        const [state] = await shortSql<[PrimaryState]>`SELECT ${currentId} AS snapshot ${andFound}`
        return state
      } finally {
        unanswered.delete(asked)
      }
    })
    return question
  }

  /**
   * The body of the query that the key identifies, as the database would give it at some time after the call, or after
   * the caller asked for the state that it knows; `undefined` when the query has no row.
   */
  async function get (
    key: string, query: (sql: Sql) => CachedQuery<any>, known?: PrimaryState | null, caller?: Caller
  ): Promise<CachedBody | undefined> {
    const state = known ?? await currentState()
    const entry = entries.get(key)
    if (entry && state.snapshot !== null && entry.snapshot === state.snapshot) {
      counts.hits++
      return entry.body
    }
    // Built at most once for a caller, and only if its turn or its read needs it.
    let made: CachedQuery<any> | undefined
    const make = () => {
      made ??= query(sql)
      return made
    }
    // Or joins a running read that was started for the same snapshot.
    const { body } = await shareRead(key, shared => read(key, make(), shared), state.snapshot, {
      caller: caller!, turn: turn && (begin => turn(caller!, begin, Boolean(make().list))),
    })
    return body
  }

  async function read (key: string, query: CachedQuery<any>, shared: Shared<Caller>): Promise<CacheEntry> {
    counts.misses++
    const { chunks, snapshot } = await readBody(sql, query, currentId, bytes => {
      shared.length += bytes
      hold?.(shared.callers, shared, bytes)
      shared.abandoned = !shared.callers.some(isWaiting)
      return !shared.abandoned
    })
    const { contentType } = query.format ?? { contentType: JSON_TYPE }
    const entry = { snapshot, body: chunks && await toBody(chunks, contentType, entries.get(key)?.body) }
    entries.set(key, entry)
    return entry
  }
}

/** The body with these bytes: that of before if it has the same, with its encodings. */
async function toBody (chunks: Chunks, contentType: string, before: CachedBody | undefined) {
  const hash = await hashChunks(chunks)
  return before?.hash === hash ? before : new CachedBody(chunks, { hash, contentType })
}
