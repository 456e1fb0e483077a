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
  version: string | undefined
  readonly listeners: Set<Listener<LiveList>>
}

/** A snapshot of the database. If the ids of two snapshots are equal, no transaction was committed in between. */
interface Snapshot {
  id: string | null
}

/** Access to the lists. */
export interface ListSource {
  /** Reads the snapshot of the database after the call. */
  readSnapshot (): Promise<Snapshot>
  /** Returns the arguments of the query of a list. They change with the time if an argument is a time. */
  argumentsOf (list: ListName): string
  /** Reads the entity tag of a list in this snapshot or a newer one. Waits as a client of this network. */
  readEtag (list: ListName, snapshot: Snapshot, network: string): Promise<string | undefined>
}

interface Options {
  /** Maximum number of clients. A network can have half of them. */
  maxListeners: number
  /** Tells whether the process is stopping. */
  isClosing (): boolean
}

/** Interval at which the service asks for the snapshot. */
const TICK_MS = 500

/** Number of ticks between two comments: 15 seconds. Many proxies close connections that are silent for 30 seconds. */
const TICKS_PER_COMMENT = 30

/** Time after which a client connects again if this process stops. */
const RETRY_MS = 1000

/** Maximum number of different lists, because a commit makes the service read each of them. A network can add half. */
const MAX_LISTS = 200

/**
 * Tells clients which lists have changed. While a client listens, each process asks for the snapshot every half second
 * and reads the watched lists if it has changed. It compares entity tags, so there is no queue that could lose or
 * repeat a change: after any gap, a client hears of the lists that differ from its own.
 */
export class LiveLists {
  readonly counts = { messages: 0, ticks: 0 }
  readonly #source: ListSource
  readonly #options: Options
  readonly #lists = new Map<string, LiveList>()
  readonly #listeners = new Set<Listener<LiveList>>()
  /** Clients for which the first read of their lists is running. */
  readonly #opening = new Set<Listener<LiveList>>()
  /** Lists that a tick is reading. */
  readonly #updating = new Set<LiveList>()
  #isAsking = false
  #timer: NodeJS.Timeout | undefined

  constructor (source: ListSource, options: Options) {
    this.#source = source
    this.#options = options
  }

  /** Number of clients that listen. */
  get clients () { return this.#listeners.size }

  /**
   * Opens the event stream of a client. Returns `undefined` if too many clients listen, if too many lists are watched,
   * or if the process is stopping. `lastEventId` contains the entity tags that the client knows. `unsent` returns the
   * number of bytes that wait for the client.
   */
  open (
    network: string, names: readonly ListName[], lastEventId: string, unsent: () => number
  ): Listener<LiveList> | undefined {
    if (this.#options.isClosing() || !this.#hasRoom(network, names)) return undefined
    const lists = names.map(name => this.#lists.get(keyOf(name)) ?? this.#watch(name))
    const listener = new Listener(network, lists, lastEventId, unsent)
    for (const { listeners } of lists) listeners.add(listener)
    this.#listeners.add(listener)
    listener.once('close', () => this.#remove(listener))
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    this.#begin(listener)
    return listener
  }

  /** Reads the lists first. Otherwise, the client could hear of an entity tag that is older than its own. */
  async #begin (listener: Listener<LiveList>) {
    this.#opening.add(listener)
    try {
      const snapshot = await this.#source.readSnapshot()
      await Promise.all(listener.lists.map(list => this.#update(list, snapshot)))
    } catch {
      // The database does not answer. A later tick tells the client.
    }
    this.#opening.delete(listener)
    this.#tell(listener)
  }

  #hasRoom (network: string, names: readonly ListName[]) {
    const { maxListeners } = this.#options
    const own = [...this.#listeners].filter(listener => listener.network === network)
    const added = new Set(names.map(keyOf).filter(key => !this.#lists.has(key))).size
    const watched = new Set(own.flatMap(({ lists }) => lists)).size
    return this.#listeners.size < maxListeners && own.length < maxListeners / 2 &&
      (added === 0 || (this.#lists.size + added <= MAX_LISTS && watched + added <= MAX_LISTS / 2))
  }

  #watch ({ url, base }: ListName): LiveList {
    const list = { url, base, etag: undefined, version: undefined, listeners: new Set<Listener<LiveList>>() }
    this.#lists.set(keyOf(list), list)
    return list
  }

  #remove (listener: Listener<LiveList>) {
    this.#listeners.delete(listener)
    for (const list of listener.lists) {
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
      for (const listener of this.#listeners) listener.end(RETRY_MS)
      return
    }
    if (this.counts.ticks % TICKS_PER_COMMENT === 0) for (const listener of this.#listeners) listener.keepAlive()
    // A slow database gets a single question at a time.
    if (this.#isAsking) return
    this.#isAsking = true
    try {
      const snapshot = await this.#source.readSnapshot()
      for (const list of this.#lists.values()) this.#follow(list, snapshot)
    } catch {
      // While the database does not answer, the streams stay open. A later tick compares again.
    } finally {
      this.#isAsking = false
    }
  }

  /** Updates a list and tells its clients. A slow list delays neither other lists nor the next tick. */
  async #follow (list: LiveList, snapshot: Snapshot) {
    if (this.#updating.has(list)) return
    this.#updating.add(list)
    try {
      await this.#update(list, snapshot)
      for (const listener of list.listeners) this.#tell(listener)
    } catch {
      // The list is read again by the next tick.
    } finally {
      this.#updating.delete(list)
    }
  }

  /** Reads the entity tag of a list if its snapshot or its arguments have changed. */
  async #update (list: LiveList, snapshot: Snapshot) {
    const version = `${snapshot.id} ${this.#source.argumentsOf(list)}`
    if (snapshot.id !== null && list.version === version) return
    // All clients may have gone.
    const [listener] = list.listeners
    if (!listener) return
    list.etag = await this.#source.readEtag(list, snapshot, listener.network)
    list.version = version
  }

  #tell (listener: Listener<LiveList>) {
    if (!this.#opening.has(listener)) this.counts.messages += listener.tell()
  }
}

const keyOf = ({ url, base }: ListName) => `${base} ${url}`
