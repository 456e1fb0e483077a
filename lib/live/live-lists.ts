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
  readonly listeners: Set<Listener<LiveList>>
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
   * Reads the entity tag of a list in this snapshot or a newer one. Waits as a client of this network, and stops
   * waiting if `isWanted` returns false. Resolves to `undefined` if PostgreSQL refuses the list: only a change of the
   * database can make it readable.
   */
  readEtag (
    list: ListName, snapshot: Snapshot, network: string, isWanted: () => boolean
  ): Promise<string | undefined>
  /** Tells that a client of this network also waits for the read of a list, which may then come sooner. */
  join (list: ListName, network: string): void
}

interface Options {
  /** Maximum number of clients. A network can have half of them. */
  maxListeners: number
  /** Tells whether the process is stopping. */
  isClosing (): boolean
}

/** Interval at which the service reads the snapshot. A change is told after half of it, on average. */
const TICK_MS = 500

/** Number of ticks between two pings: 15 seconds. Many proxies close connections that are silent for 30 seconds. */
const TICKS_PER_PING = 30

/**
 * If this process stops or a stream is renewed, each client connects again after a random time between these. If 1,000
 * connected at once, other requests would take 500 to 1,000 ms, instead of 90 ms.
 */
const RETRY_MS = { least: 1000, most: 3000 }

/** Number of clients that are told in a turn of the event loop, because 100 messages take about 2 ms. */
const BATCH = 100

/** Maximum number of different lists. After a commit, the service reads each of them. A network can add half. */
const MAX_LISTS = 200

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
  /** The lists that each network watches, and by how many clients. */
  readonly #watched = new Map<string, Map<LiveList, number>>()
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
   * Opens the event stream of a client. Returns `undefined` if too many clients listen or too many lists are watched.
   * `lastEventId` contains the entity tags that the client knows. `unsent` returns the number of bytes that wait for
   * the client.
   */
  open (
    network: string, names: readonly ListName[], lastEventId: string, unsent: () => number
  ): Listener<LiveList> | undefined {
    if (this.#options.isClosing()) {
      // After any other response, EventSource would not connect again.
      const listener = new Listener<LiveList>(network, [], '', unsent)
      endSoon(listener)
      return listener
    }
    if (!this.#hasRoom(network, names)) return undefined
    const lists = names.map(name => this.#lists.get(keyOf(name)) ?? this.#watch(name))
    const listener = new Listener(network, lists, lastEventId, unsent)
    for (const { listeners } of lists) listeners.add(listener)
    this.#listeners.add(listener)
    this.#count(listener, 1)
    listener.once('close', () => this.#remove(listener))
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    this.#check(lists, listener)
    return listener
  }

  #hasRoom (network: string, names: readonly ListName[]) {
    const { maxListeners } = this.#options
    const own = [...this.#listeners].filter(listener => listener.network === network).length
    if (this.#listeners.size >= maxListeners || own >= maxListeners / 2) return false
    const added = names.filter(name => !this.#lists.has(keyOf(name))).length
    if (added === 0) return true
    const watched = this.#watched.get(network)?.size ?? 0
    return this.#lists.size + added <= MAX_LISTS && watched + added <= MAX_LISTS / 2
  }

  #watch ({ url, base }: ListName): LiveList {
    const listeners = new Set<Listener<LiveList>>()
    const list = { url, base, etag: undefined, readAt: -1, readFor: undefined, listeners }
    this.#lists.set(keyOf(list), list)
    return list
  }

  #remove (listener: Listener<LiveList>) {
    this.#listeners.delete(listener)
    this.#due.delete(listener)
    this.#count(listener, -1)
    for (const list of listener.lists) {
      list.listeners.delete(listener)
      if (list.listeners.size === 0) this.#lists.delete(keyOf(list))
    }
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Counts a client of its network. */
  #count ({ network, lists }: Listener<LiveList>, change: 1 | -1) {
    const watched = this.#watched.get(network) ?? new Map<LiveList, number>()
    this.#watched.set(network, watched)
    for (const list of lists) {
      const clients = (watched.get(list) ?? 0) + change
      if (clients > 0) watched.set(list, clients)
      else watched.delete(list)
    }
    if (watched.size === 0) this.#watched.delete(network)
  }

  async #tick () {
    this.counts.ticks++
    if (this.#options.isClosing()) {
      clearInterval(this.#timer)
      inBatches(this.#listeners, endSoon)
      return
    }
    if (this.counts.ticks % TICKS_PER_PING === 0) {
      inBatches(this.#listeners, listener => listener.keepAlive(retryMs()))
    }
    // A slow database gets one of these queries at a time.
    if (this.#isReading) return
    this.#isReading = true
    await this.#check(this.#lists.values())
    this.#isReading = false
  }

  /** Reads the snapshot, reads the lists if it has changed, and tells their clients or a new client. */
  async #check (lists: Iterable<LiveList>, newcomer?: Listener<LiveList>) {
    const time = performance.now()
    try {
      const snapshot = await this.#source.readSnapshot()
      for (const list of lists) this.#follow(list, snapshot, time, newcomer)
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
      await this.#update(list, snapshot)
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

  /** Reads the entity tag of a list if its snapshot or its arguments have changed. */
  async #update (list: LiveList, snapshot: Snapshot) {
    const readFor = `${snapshot.id} ${this.#source.argumentsOf(list)}`
    if (snapshot.id !== null && list.readFor === readFor) return
    const reader = this.#readerOf(list)
    // All clients may have gone.
    if (reader === undefined) return
    list.etag = await this.#source.readEtag(list, snapshot, reader, () => list.listeners.size > 0)
    list.readFor = readFor
  }

  /**
   * Returns the network that watches the fewest lists, of those that watch this list. In the name of another network,
   * the read would wait behind all lists of that network.
   */
  #readerOf ({ listeners }: LiveList) {
    let reader: string | undefined
    let fewest = Infinity
    for (const { network } of listeners) {
      const { size } = this.#watched.get(network)!
      if (size < fewest) [reader, fewest] = [network, size]
    }
    return reader
  }
}

/** Runs a task for each client, for a limited number of them in a turn of the event loop. Others are served between. */
async function inBatches (listeners: Iterable<Listener<LiveList>>, task: (listener: Listener<LiveList>) => void) {
  let count = 0
  for (const listener of listeners) {
    task(listener)
    count++
    if (count % BATCH === 0) await setImmediate()
  }
}

/** Ends a stream. Its client connects again, usually to another instance. */
function endSoon (listener: Listener<LiveList>) {
  listener.end(retryMs())
}

function retryMs () {
  const { least, most } = RETRY_MS
  return Math.round(least + Math.random() * (most - least))
}

const keyOf = ({ url, base }: ListName) => `${base} ${url}`
