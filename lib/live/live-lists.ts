import { setTimeout as sleep } from 'node:timers/promises'

import { inBatches, type Turn } from '../http/in-batches.ts'
import { type Client, type FairQueue, sumByNetwork } from '../http/fair-queue.ts'
import { Listener, type WatchedList } from './listener.ts'

/** The name of a list. */
export interface ListName {
  /** The path and the query, as the client gave them. */
  readonly url: string
  /** The base URL of pictures in the response, which can depend on the client. */
  readonly picturesUrl: string | null
  /** A short text that differs for each list. */
  readonly key: string
}

/** A list that at least one client watches. */
interface LiveList extends WatchedList, ListName {
  /** The snapshot and the minute for which `etag` was read. */
  readFor: string | undefined
  /** Bytes of the body that was read last. */
  length: number
  /** Whether a tick reads it. */
  isReading: boolean
  readonly listeners: Map<Listener<LiveList>, Client>
}

/** Access to the lists. */
interface ListSource {
  /**
   * Reads the snapshot of the database after the call. If the ids of two snapshots are equal, no transaction was
   * committed in between.
   */
  readSnapshot (): Promise<{ id: string | null }>
  /** Returns the current minute, which can be an argument of the query of a list. */
  currentMinute (): string
  /**
   * Reads the entity tag of a list for these clients, in this snapshot or a newer one, and the length of its body. The
   * entity tag is `undefined` if PostgreSQL refuses the list: only a change of the database can make it readable.
   */
  readEtag (
    list: ListName, clients: readonly Client[], snapshot: { id: string | null }
  ): Promise<{ etag: string | undefined, length: number }>
}

interface Options {
  /** The queue of time for reads, see `READ_RATE`. */
  queue: FairQueue
  /** Maximum number of clients. Then the network with the most of them loses one to a network with fewer. */
  maxListeners: number
  /** Tells whether the process is stopping. */
  isClosing (): boolean
}

/** Interval at which the service reads the snapshot. A change is told after half of it, on average. */
const TICK_MS = 500

/** Number of ticks between two pings: 15 seconds. Many proxies close connections that are silent for 30 seconds. */
const TICKS_PER_PING = 30

/**
 * A list pays for each read by holding a place of the queue: a second per READ_RATE bytes, in slices of at most
 * SLICE_MS. It is read again only after it has paid. So with steady commits, long lists are read less often. Without
 * this, reads of a hundred lists of 0.7 MB after each commit delayed others by 31 ms instead of 6.
 */
const READ_RATE = 2_000_000
const SLICE_MS = 100

/** Bytes that a list is expected to have before its first read, and bytes that a read counts in addition. */
const UNKNOWN_BYTES = 100_000
const READ_BYTES = 10_000

/**
 * Tells clients which lists have changed. Without it, a thousand open pages would send 2,000 requests per second to be
 * as up to date. While a client listens, each process reads the snapshot every half second, and the watched lists if it
 * has changed. It compares entity tags: after any gap, a client hears of the lists that differ from its own. A queue of
 * changes could lose or repeat one.
 */
export class LiveLists {
  readonly counts = { messages: 0, ticks: 0 }
  readonly #source: ListSource
  readonly #options: Options
  readonly #lists = new Map<string, LiveList>()
  readonly #listeners = new Set<Listener<LiveList>>()
  /** If each new client counted its own tasks, hundreds of them would be a single turn. */
  readonly #newcomers: Turn = { count: 0 }
  #isReading = false
  #timer: NodeJS.Timeout | undefined

  constructor (source: ListSource, options: Options) {
    this.#source = source
    this.#options = options
  }

  /** Number of clients that listen. */
  get clients () { return this.#listeners.size }

  /**
   * Opens the event stream of a client. Returns `undefined` if too many clients listen, and no network has more than
   * this one. `lastEventId` contains the entity tags that the client knows. `unsent` returns the number of bytes that
   * wait for the client.
   */
  open (
    client: Client, names: readonly ListName[], lastEventId: string, unsent: () => number
  ): Listener<LiveList> | undefined {
    const { network } = client
    if (!this.#makeRoom(network)) return undefined
    const lists = names.map(name => this.#lists.get(name.key) ?? this.#watch(name))
    const listener = new Listener(network, lists, lastEventId, unsent)
    for (const { listeners } of lists) listeners.set(listener, client)
    this.#listeners.add(listener)
    listener.once('close', () => this.#remove(listener))
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    this.#check(lists, listener)
    return listener
  }

  /** If there are too many streams, ends the newest of the network with the most, unless this network has as many. */
  #makeRoom (network: string) {
    if (this.#listeners.size < this.#options.maxListeners) return true
    const [most] = sumByNetwork([{ network }, ...this.#listeners])[0]!
    if (most === network) return false
    const newest = [...this.#listeners].findLast(({ network }) => network === most)!
    this.#remove(newest)
    newest.end()
    return true
  }

  #watch (name: ListName): LiveList {
    const list: LiveList = {
      ...name,
      etag: undefined,
      readAt: -1,
      readFor: undefined,
      length: UNKNOWN_BYTES,
      isReading: false,
      listeners: new Map(),
    }
    this.#lists.set(name.key, list)
    return list
  }

  #remove (listener: Listener<LiveList>) {
    if (!this.#listeners.delete(listener)) return
    for (const list of listener.lists) {
      list.listeners.delete(listener)
      if (list.listeners.size === 0) this.#lists.delete(list.key)
    }
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #tick () {
    this.counts.ticks++
    if (this.#options.isClosing()) {
      // Also streams that opened since, because EventSource would not connect again after a refusal.
      inBatches(this.#listeners, listener => listener.end())
      return
    }
    if (this.counts.ticks % TICKS_PER_PING === 0) {
      inBatches(this.#listeners, listener => listener.keepAlive())
    }
    // A slow database gets one of these queries at a time.
    if (this.#isReading) return
    this.#isReading = true
    await this.#check(this.#lists.values())
    this.#isReading = false
  }

  /**
   * Reads the snapshot, begins to read the lists that were read for a different snapshot or minute, and tells all
   * clients or a new client.
   */
  async #check (lists: Iterable<LiveList>, newcomer?: Listener<LiveList>) {
    const time = performance.now()
    try {
      const snapshot = await this.#source.readSnapshot()
      const readFor = `${snapshot.id} ${this.#source.currentMinute()}`
      await inBatches(lists, list => {
        const client = newcomer && list.listeners.get(newcomer)
        const read = (clients: Client[]) => this.#read(list, clients, snapshot, { readFor, readAt: time })
        if (snapshot.id !== null && list.readFor === readFor) list.readAt = time
        // A new client waits like a request for the list. After an error, the next tick reads the list again.
        else if (client) read([client]).then(() => this.#tell(newcomer), () => {})
        else if (!newcomer && !list.isReading && !this.#options.queue.isFullFor(list.listeners.values())) {
          // Errors of refusals are garbage: of 2,000 streams of 8 lists, a process of 512 MB closed 1,844, not 750.
          this.#readAndPay(list, read).catch(() => {})
        }
      }, newcomer && this.#newcomers)
      await inBatches(newcomer ? [newcomer] : this.#listeners, this.#tell)
    } catch {
      // While the database does not answer, the streams stay open. A later tick compares again.
    }
  }

  /**
   * Reads a list when its networks begin to pay, and ends when they have paid for its bytes. Rejects if all clients of
   * the list leave before that, because the queue refuses work that nobody wants.
   */
  async #readAndPay (list: LiveList, read: (clients: Client[]) => Promise<void>) {
    const clients = () => [...list.listeners.values()]
    const owed = () => (READ_BYTES + list.length) / READ_RATE * 1000 - paid
    let reading: Promise<void> | undefined
    let paid = 0
    list.isReading = true
    try {
      for (; owed() > 0; paid += SLICE_MS) {
        const slice = Math.min(owed(), SLICE_MS)
        await this.#options.queue.runShared(clients(), () => {
          reading ??= read(clients()).catch(() => {})
          return sleep(slice)
        }, 1, slice)
      }
      await reading
    } finally {
      list.isReading = false
    }
  }

  /** Reads a list, and tells its clients if it has changed. A slow list delays no other list and no tick. */
  async #read (
    list: LiveList, clients: Client[], snapshot: { id: string | null }, as: Pick<LiveList, 'readFor' | 'readAt'>
  ) {
    const read = await this.#source.readEtag(list, clients, snapshot)
    const isNewest = as.readAt > list.readAt
    const hasChanged = isNewest && list.etag !== read.etag
    Object.assign(list, isNewest && { ...read, ...as })
    if (hasChanged) inBatches(list.listeners.keys(), this.#tell)
  }

  readonly #tell = (listener: Listener<LiveList>) => { this.counts.messages += listener.tell() }
}
