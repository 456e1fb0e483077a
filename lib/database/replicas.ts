import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import type { Config } from '../config.ts'
import { hostUrls } from '../formats.ts'
import { withTimeout } from '../timeout.ts'
import { address, connect, describe, expectOne, type Sql } from './client.ts'

/** How far the primary has flushed its log: what it has acknowledged is before that. */
export interface WalPosition {
  /** The history that the LSN belongs to, in hexadecimal digits. Each promotion begins a new one. */
  timeline: string
  lsn: string
}

/** Reads on replicas, and reads that fell back to the primary. */
export interface ReplicaCounts {
  reads: number
  fallbacks: number
}

/** Standbys of the database that reads may be sent to. */
export interface Replicas {
  counts: ReplicaCounts
  /** How many are in use. */
  available (): number
  /** The position of the primary, an expression for the statement that asks for its snapshot. */
  position: typeof walPosition
  /**
   * Resolves as `work` does in a transaction on a replica that has all that the primary had flushed at this position.
   * If there is none in time, or anything fails, `otherwise` is called, for the primary.
   */
  read<T> (position: WalPosition | null, work: (sql: Sql) => Promise<T>, otherwise: () => Promise<T>): Promise<T>
  /** The same with all that the primary had flushed at some time after the call. */
  readFresh<T> (work: (sql: Sql) => Promise<T>, otherwise: () => Promise<T>): Promise<T>
  close (): Promise<void>
}

/** How long a replica that failed is left out before it is tried again, in milliseconds. */
export interface Backoff {
  /** At first, and between attempts to reach it. */
  shortest: number
  /** The backoff doubles up to this when a replica fails again within this time after it was back. */
  longest: number
}

const BACKOFF_MS: Backoff = { shortest: 1000, longest: 30_000 }

/** The interval at which a replica that lags is checked, in milliseconds: it is back as soon as it has caught up. */
const CATCH_UP_INTERVAL_MS = 50

/** A replica is too far behind the primary for a read. */
class LagError extends Error {
  override name = 'LagError'
}

/** How often a replica is asked how far it is, in milliseconds; at first sooner. */
const POLL_INTERVAL_MS = 8

/** Each statement has a snapshot of its own: that of a read is newer than the check before it. */
const TRANSACTION = 'ISOLATION LEVEL READ COMMITTED READ ONLY'

/**
 * The position of the primary, to be asked for in the statement that asks for its snapshot. Null on a standby, and
 * where `synchronous_commit` is off: commits are then visible, and acknowledged, before they are flushed.
 */
export const walPosition = (sql: Sql) => sql`
  CASE WHEN NOT pg_is_in_recovery() AND current_setting('synchronous_commit') <> 'off' THEN (
    SELECT json_build_object('timeline', left(pg_walfile_name(lsn), 8), 'lsn', lsn)
    FROM pg_current_wal_flush_lsn() AS lsn
  ) END
`

/** Names a database, the same on all replicas of its server. */
const identity = (sql: Sql) => sql`(
  SELECT concat_ws(' ', system_identifier, current_database()) FROM pg_control_system()
)`

interface ReplicaOptions {
  /** Asks the primary. */
  probe: Sql
  config: Config
  log: Pick<FastifyBaseLogger, 'info' | 'warn' | 'debug'>
  backoff?: Backoff
}

/**
 * Opens a pool for each host of DATABASE_REPLICA_URL. A replica takes part once it is found to be a standby that keeps
 * up with the primary, which `probe` asks. One that fails is left out until it is found so again; both are in the
 * log. Throws nothing: without replicas, the primary is read.
 */
export function createReplicas (
  url: string, { backoff = BACKOFF_MS, ...options }: ReplicaOptions
): Replicas {
  const { probe } = options
  const replicas = hostUrls(url).map(url => new Replica(url, { backoff, ...options }))
  const counts: ReplicaCounts = { reads: 0, fallbacks: 0 }
  let turn = 0
  return { counts, position: walPosition, read, readFresh, available: () => inUse().length, close }

  async function readFresh<T> (work: (sql: Sql) => Promise<T>, otherwise: () => Promise<T>) {
    const { position } = expectOne(await probe<{ position: WalPosition | null }[]>`
      SELECT ${walPosition(probe)} AS position
    `)
    return read(position, work, otherwise)
  }

  async function read<T> (
    position: WalPosition | null, work: (sql: Sql) => Promise<T>, otherwise: () => Promise<T>
  ): Promise<T> {
    const replica = choose()
    if (position && replica) {
      try {
        const result = await replica.read(position, work)
        counts.reads++
        return result
      } catch {
        // The primary is read instead; an error of the read itself occurs there, too.
      }
    }
    counts.fallbacks++
    return otherwise()
  }

  function inUse () {
    return replicas.filter(({ available }) => available)
  }

  /** The one with the fewest reads; of several, one after the other. */
  function choose () {
    const candidates = inUse()
    turn++
    return candidates.map((_, n) => candidates[(turn + n) % candidates.length]!)
      .sort((one, other) => one.pending - other.pending)[0]
  }

  async function close () {
    await Promise.all(replicas.map(replica => replica.close()))
  }
}

/** How far a read has come: it waits for a connection, asks how far the replica is, waits for it, or reads. */
interface Progress {
  stage: 'waits' | 'asks' | 'lags' | 'reads'
}

/** One host of DATABASE_REPLICA_URL. There may be several servers behind it. */
class Replica {
  available = false
  /** Reads that have begun, and those that wait for a connection. */
  pending = 0
  #running = 0
  readonly #sql: Sql
  readonly #name: string
  readonly #options: Required<ReplicaOptions>
  readonly #closing = new AbortController()
  /** Brings it back while it is left out. */
  #restoring: Promise<void>
  /** The current backoff. */
  #pause: number
  /** When it was back, in milliseconds of `performance.now()`. */
  #since = 0

  constructor (url: string, options: Required<ReplicaOptions>) {
    const { config, log, backoff } = options
    // The primary has the other half of the time if a replica falls silent.
    this.#sql = connect(url, { config, log, max: config.DATABASE_POOL_SIZE, timeout: config.DATABASE_TIMEOUT / 2 })
    this.#name = `Replica ${address(url)}`
    this.#options = options
    this.#pause = backoff.shortest
    this.#restoring = this.#start()
  }

  /** Reads in a transaction on a server that has replayed up to this position, or rejects. */
  async read<T> (position: WalPosition, work: (sql: Sql) => Promise<T>): Promise<T> {
    this.pending++
    try {
      return await this.#attempt(position, work)
    } finally {
      this.pending--
    }
  }

  async close () {
    this.#closing.abort()
    this.available = false
    await this.#sql.end({ timeout: this.#options.config.DATABASE_TIMEOUT })
    await this.#restoring
  }

  /** Leaves the replica out if it is its fault that a read fails. */
  async #attempt<T> (position: WalPosition, work: (sql: Sql) => Promise<T>): Promise<T> {
    const progress: Progress = { stage: 'waits' }
    try {
      return await this.#transact(position, work, progress)
    } catch (error) {
      const { stage } = progress
      const isBusy = stage === 'waits' && this.#running >= this.#options.config.DATABASE_POOL_SIZE
      // The read failed, not the replica: a conflict with the replay, a statement timeout, or a client that has gone.
      const isOfRead = stage === 'reads' && (error instanceof postgres.PostgresError
        ? !error.code.startsWith('57P')
        : (error as Error).name === 'AbortError')
      if (!isBusy && !isOfRead) this.#leaveOut(error)
      throw error
    }
  }

  async #transact<T> (
    position: WalPosition, work: (sql: Sql) => Promise<T>, progress: Progress = { stage: 'waits' }
  ): Promise<T> {
    const { REPLICA_WAIT } = this.#options.config
    const deadline = performance.now() + REPLICA_WAIT
    let ready!: () => void
    const readiness = new Promise<void>(resolve => { ready = resolve })
    const transaction = this.#sql.begin(TRANSACTION, async transaction => {
      // Reads use a pool for nothing else.
      const sql = transaction as unknown as Sql
      progress.stage = 'asks'
      this.#running++
      try {
        await awaitReplay(sql, position, deadline, progress)
        progress.stage = 'reads'
        ready()
        const result = await work(sql)
        // Promoted meanwhile, it could have shown what others write there.
        await assertStandby(sql)
        return result
      } finally {
        this.#running--
      }
    }) as Promise<T>
    // It may fail after its read has fallen back to the primary.
    transaction.catch(() => {})
    try {
      await Promise.race([transaction, withTimeout(readiness, REPLICA_WAIT / 1000)])
      return await withTimeout(transaction, this.#options.config.DATABASE_TIMEOUT / 2)
    } catch (error) {
      throw progress.stage === 'lags' ? new LagError(`it lags by more than ${REPLICA_WAIT} ms`) : error
    }
  }

  #leaveOut (reason: unknown) {
    if (!this.available) return
    this.available = false
    this.#warn(reason)
    this.#restoring = this.#restore(reason instanceof LagError ? CATCH_UP_INTERVAL_MS : this.#nextBackoff())
  }

  #nextBackoff () {
    const { shortest, longest } = this.#options.backoff
    this.#pause = performance.now() - this.#since > longest ? shortest : Math.min(2 * this.#pause, longest)
    return this.#pause
  }

  async #start () {
    try {
      await this.#admit()
    } catch (error) {
      if (this.#closing.signal.aborted) return
      this.#warn(error)
      await this.#restore(this.#pause)
    }
  }

  #warn (reason: unknown) {
    this.#options.log.warn(`${this.#name} is left out: ${describe(reason)}`)
  }

  /** Tries to take it into use again: after the backoff if it failed, and soon, however often it lagged. */
  async #restore (pause: number) {
    const { signal } = this.#closing
    while (!this.available && !signal.aborted) {
      try {
        await sleep(pause, undefined, { signal, ref: false })
        await this.#admit()
      } catch (error) {
        this.#options.log.debug({ err: error }, `${this.#name} is still left out`)
        pause = error instanceof LagError ? CATCH_UP_INTERVAL_MS : this.#options.backoff.shortest
      }
    }
  }

  /** Takes it into use if it keeps up with the primary. */
  async #admit () {
    // It may take longer to connect than a read waits.
    const own = expectOne(await this.#sql<{ identity: string }[]>`SELECT ${identity(this.#sql)} AS identity`)
    const { probe } = this.#options
    const primary = expectOne(await probe<{ identity: string, position: WalPosition | null }[]>`
      SELECT ${identity(probe)} AS identity, ${walPosition(probe)} AS position
    `)
    if (own.identity !== primary.identity) throw new Error('it has another database')
    if (!primary.position) throw new Error('the primary takes no writes, or its synchronous_commit is off')
    await this.#transact(primary.position, async () => {})
    this.#since = performance.now()
    this.available = true
    this.#options.log.info(`${this.#name} is in use`)
  }
}

/**
 * Waits until the server has replayed everything up to this position. Rejects when it has not by the deadline, in
 * milliseconds of `performance.now()`, or is no standby on the same timeline.
 *
 * The highest timeline that it is known to have reached is that of its last restart point, of its last write of a page,
 * or of what it receives, which only roles with `pg_read_all_stats` may see. The first two follow after a while.
 */
async function awaitReplay (sql: Sql, { timeline, lsn }: WalPosition, deadline: number, progress: Progress) {
  for (let pause = 1; performance.now() < deadline; pause = Math.min(2 * pause, POLL_INTERVAL_MS)) {
    const row = expectOne(await sql<{ isStandby: boolean, timeline: number, isReplayed: boolean | null }[]>`
      SELECT
        pg_is_in_recovery() AS "isStandby",
        greatest(
          (pg_control_checkpoint()).timeline_id, (pg_control_recovery()).min_recovery_end_timeline,
          (SELECT received_tli FROM pg_stat_wal_receiver)
        ) AS timeline,
        pg_last_wal_replay_lsn() >= ${lsn}::pg_lsn AS "isReplayed"
    `)
    if (!row.isStandby) throw notStandby()
    if (row.timeline !== parseInt(timeline, 16)) throw new Error('it is on another timeline than the primary')
    if (row.isReplayed) return
    progress.stage = 'lags'
    await sleep(pause)
  }
  // The caller has already fallen back to the primary.
  throw new Error('late')
}

async function assertStandby (sql: Sql) {
  const { isStandby } = expectOne(await sql<{ isStandby: boolean }[]>`SELECT pg_is_in_recovery() AS "isStandby"`)
  if (!isStandby) throw notStandby()
}

function notStandby () {
  return new Error('it is no standby')
}
