import { setImmediate } from 'node:timers/promises'

import { Listener, type WatchedList } from './listener.ts'

/** The name of a list. */
export interface ListName {
  /** The path and the query, as the client gave them. */
  readonly url: string
  /** The base URL of links in the response, which can depend on the client. */
  readonly base: string | null
}

/** A list that at least one client watches. */
interface LiveList extends WatchedList, ListName {
  /** The snapshot and the arguments for which `etag` was read. */
  readFor: string | undefined
  /** Bytes of the body that was read last. */
  length: number
  readonly listeners: Set<Listener<LiveList>>
}

/** What the streams of a network take. */
interface Watcher {
  readonly network: string
  readonly streams: Set<Listener<LiveList>>
  /** Bytes that were read for it and are not paid yet, at this time. It pays READ_RATE. */
  debt: number
  at: number
}

/** A snapshot of the database. If the ids of two snapshots are equal, no transaction was committed in between. */
interface Snapshot {
  id: string | null
}

/** Access to the lists. */
interface ListSource {
  /** Reads the snapshot of the database after the call. */
  readSnapshot (): Promise<Snapshot>
  /** Returns the arguments of the query of a list. They change with the time if an argument is a time. */
  argumentsOf (list: ListName): string
  /**
   * Reads the entity tag of a list in this snapshot or a newer one, and the bytes that were read. Waits as a client of
   * this network, and stops waiting if `isWanted` returns false. The entity tag is `undefined` if PostgreSQL refuses
   * the list: only a change of the database can make it readable.
   */
  readEtag (
    list: ListName, snapshot: Snapshot, network: string, isWanted: () => boolean
  ): Promise<{ etag: string | undefined, length: number }>
  /** Tells that a client of this network also waits for the read of a list, which may then come sooner. */
  join (list: ListName, network: string): void
}

interface Options {
  /** Maximum number of clients. Then the network with the most of them loses one to a network with fewer. */
  maxListeners: number
  /** Tells whether the process is stopping. */
  isClosing (): boolean
}

/** Interval at which the service reads the snapshot. A change is told after half of it, on average. */
const TICK_MS = 500

/** Number of ticks between two pings: 15 seconds. Many proxies close connections that are silent for 30 seconds. */
const TICKS_PER_PING = 30

/** Number of clients that are told in a turn of the event loop, because 100 messages take about 2 ms. */
const BATCH = 100

/**
 * Bytes per second that the service reads for the streams of a network. With steady commits, lists beyond it are read
 * less often, in turn. A hundred lists of 0.7 MB that were read after each commit made others wait.
 */
const READ_RATE = 2_000_000

/** Bytes that a list is expected to have before its first read. */
const UNKNOWN_BYTES = 100_000

/** Bytes that the read of a list counts in addition to its body. */
const READ_BYTES = 10_000

/**
 * Tells clients which lists have changed. While a client listens, each process reads the snapshot every half second,
 * and the watched lists if it has changed. It compares entity tags: after any gap, a client hears of the lists that
 * differ from its own. A queue of changes could lose or repeat one.
 */
export class LiveLists {
  readonly counts = { messages: 0, ticks: 0 }
  readonly #source: ListSource
  readonly #options: Options
  readonly #lists = new Map<string, LiveList>()
  readonly #listeners = new Set<Listener<LiveList>>()
  readonly #watchers = new Map<string, Watcher>()
  /** Lists that are being read. */
  readonly #updating = new Set<LiveList>()
  /** Clients to tell. */
  readonly #due = new Set<Listener<LiveList>>()
  #isTelling = false
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
   * this one.
   * `lastEventId` contains the entity tags that the client knows. `unsent` returns the number of bytes that wait for
   * the client.
   */
  open (
    network: string, names: readonly ListName[], lastEventId: string, unsent: () => number
  ): Listener<LiveList> | undefined {
    if (this.#options.isClosing()) {
      // After any other response, EventSource would not connect again.
      const listener = new Listener<LiveList>(network, [], '', unsent)
      listener.end()
      return listener
    }
    if (!this.#makeRoom(network)) return undefined
    const lists = names.map(name => this.#lists.get(keyOf(name)) ?? this.#watch(name))
    const listener = new Listener(network, lists, lastEventId, unsent)
    for (const { listeners } of lists) listeners.add(listener)
    this.#listeners.add(listener)
    const watcher = this.#watchers.get(network) ?? { network, streams: new Set(), debt: 0, at: performance.now() }
    this.#watchers.set(network, watcher)
    watcher.streams.add(listener)
    listener.once('close', () => this.#remove(listener))
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    this.#check(lists, listener)
    return listener
  }

  /** If there are too many streams, ends the newest of the network with the most, unless this network has as many. */
  #makeRoom (network: string) {
    if (this.#listeners.size < this.#options.maxListeners) return true
    let most = this.#watchers.get(network)?.streams ?? new Set()
    const limit = most.size + 1
    for (const { streams } of this.#watchers.values()) {
      if (streams.size > most.size) most = streams
    }
    if (most.size <= limit) return false
    const newest = [...most].at(-1)!
    this.#remove(newest)
    newest.end()
    return true
  }

  #watch ({ url, base }: ListName): LiveList {
    const listeners = new Set<Listener<LiveList>>()
    const list = { url, base, etag: undefined, readAt: -1, readFor: undefined, length: UNKNOWN_BYTES, listeners }
    this.#lists.set(keyOf(list), list)
    return list
  }

  #remove (listener: Listener<LiveList>) {
    if (!this.#listeners.delete(listener)) return
    this.#due.delete(listener)
    const { network, lists } = listener
    const { streams } = this.#watchers.get(network)!
    streams.delete(listener)
    if (streams.size === 0) this.#watchers.delete(network)
    for (const list of lists) {
      list.listeners.delete(listener)
      if (list.listeners.size === 0) this.#lists.delete(keyOf(list))
    }
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #tick () {
    this.counts.ticks++
    if (this.#options.isClosing()) {
      clearInterval(this.#timer)
      inBatches(this.#listeners, listener => listener.end())
      return
    }
    if (this.counts.ticks % TICKS_PER_PING === 0) {
      inBatches(this.#listeners, listener => listener.keepAlive())
    }
    // A slow database gets one of these queries at a time.
    if (this.#isReading) return
    this.#isReading = true
    await this.#check([...this.#lists.values()])
    this.#isReading = false
  }

  /** Reads the snapshot, reads the lists if it has changed, and tells their clients or a new client. */
  async #check (lists: Iterable<LiveList>, newcomer?: Listener<LiveList>) {
    const time = performance.now()
    try {
      const snapshot = await this.#source.readSnapshot()
      await inBatches(lists, list => this.#follow(list, snapshot, time, newcomer))
    } catch {
      // While the database does not answer, the streams stay open. A later tick compares again.
    }
  }

  /** Updates a list and tells its clients. A slow list delays neither other lists nor the next tick. */
  async #follow (list: LiveList, snapshot: Snapshot, time: number, newcomer?: Listener<LiveList>) {
    if (this.#updating.has(list)) {
      if (newcomer) this.#source.join(list, newcomer.network)
      return
    }
    this.#updating.add(list)
    const { etag } = list
    try {
      if (!await this.#update(list, snapshot)) return
      list.readAt = time
      // A new client does not wait for its turn after all others.
      if (newcomer) this.#tell(newcomer)
      if (!newcomer || list.etag !== etag) this.#tellAll(list.listeners)
    } catch {
      // The list is read again by the next tick.
    } finally {
      this.#updating.delete(list)
    }
  }

  #tell (listener: Listener<LiveList>) {
    this.#due.delete(listener)
    this.counts.messages += listener.tell()
  }

  /** Tells clients in batches. A client that is due keeps its place, so that all are told even if changes never end. */
  async #tellAll (listeners: Iterable<Listener<LiveList>>) {
    for (const listener of listeners) this.#due.add(listener)
    if (this.#isTelling) return
    this.#isTelling = true
    while (this.#due.size > 0) await inBatches(this.#due, listener => this.#tell(listener))
    this.#isTelling = false
  }

  /** Reads the entity tag of a list if its snapshot or its arguments have changed. Returns whether it is current. */
  async #update (list: LiveList, snapshot: Snapshot) {
    const readFor = `${snapshot.id} ${this.#source.argumentsOf(list)}`
    if (snapshot.id !== null && list.readFor === readFor) return true
    const reader = this.#readerOf(list)
    // All clients may have gone.
    if (reader === undefined || reader.debt > READ_RATE * TICK_MS / 1000) return false
    const { length } = list
    reader.debt += READ_BYTES + length
    // Lists that were not read come first at the next tick.
    this.#lists.delete(keyOf(list))
    this.#lists.set(keyOf(list), list)
    Object.assign(list, await this.#source.readEtag(list, snapshot, reader.network, () => list.listeners.size > 0))
    reader.debt += list.length - length
    list.readFor = readFor
    return true
  }

  /** Returns the network for which the least was read, of those that watch this list. */
  #readerOf ({ listeners }: LiveList) {
    const now = performance.now()
    let reader: Watcher | undefined
    for (const network of new Set(Array.from(listeners, ({ network }) => network))) {
      const watcher = this.#watchers.get(network)!
      watcher.debt = Math.max(0, watcher.debt - READ_RATE * (now - watcher.at) / 1000)
      watcher.at = now
      if (!reader || watcher.debt < reader.debt) reader = watcher
    }
    return reader
  }
}

/** Runs a task for each item, for a limited number of them in a turn of the event loop. Others are served between. */
async function inBatches<Item> (items: Iterable<Item>, task: (item: Item) => void) {
  let count = 0
  for (const item of items) {
    task(item)
    count++
    if (count % BATCH === 0) await setImmediate()
  }
}

const keyOf = ({ url, base }: ListName) => `${base} ${url}`
