/** A client that waits for work, such as a request. Queues are fair by its network. */
export interface Client {
  readonly network: string
  /** Tells whether it still waits. */
  isWanted (): boolean
  /** Sets how many bytes the process holds for it. */
  hold? (bytes: number): void
}

/** What a network uses and wants. */
interface Share {
  readonly network: string
  /** Milliseconds for which it recently held places, times their number. It fades, see `FADE_MS`. */
  used: number
  /** The time for which `used` was computed. */
  at: number
  /** Places that it holds. */
  running: number
  readonly waiting: Waiting[]
}

/** Work that is waiting, perhaps for clients of several networks. */
interface Waiting {
  readonly work: () => Promise<unknown>
  readonly clients: Client[]
  readonly shares: Set<Share>
  readonly places: number
  /** Milliseconds for which it will hold its places, if known. */
  readonly expected: number
  readonly since: number
  /** Begins the work, which counts for this network. */
  begin (share: Share): void
  refuse (): void
}

interface Options {
  concurrency: number
  maxLength: number
  /** Creates the error for refused work. */
  createError: () => Error
}

/** Time in which the use of a network fades to 37 %, and after which a network without work is forgotten. */
const FADE_MS = 1000

/**
 * Shares places fairly between networks. Without it, a flood of one network delays all others. Runs a limited number of
 * tasks in parallel: the next place goes to the network whose tasks held places for the least time recently. While
 * other networks are there, a network begins no task beyond half of the places: alongside 40 clients that want slow
 * lists, nine of ten requests of others took 125 ms, and 381 ms without this rule. If the queue is full, the newest
 * task of the network with the most waiting tasks is refused.
 */
export class FairQueue {
  /** Number of tasks that were refused, or whose clients had gone. */
  refused = 0
  readonly #options: Options
  /** Maximum number of places of a network while others are there. */
  readonly #half: number
  /** The networks that are there. The network that began a task last is the last one. */
  readonly #shares = new Map<string, Share>()
  readonly #waiting = new Map<Waiting['work'], Waiting>()
  #running = 0

  constructor (options: Options) {
    this.#options = options
    this.#half = Math.ceil(options.concurrency / 2)
  }

  /** Number of places that are taken. */
  get running () { return this.#running }

  /** Number of tasks that are waiting. */
  get waiting () { return this.#waiting.size }

  /** Runs the work on so many places when they are free. Rejects if the queue is full or the client has gone. */
  run<T> (client: Client, work: () => Promise<T>, places = 1) {
    // Each call is a task, even if the work is the same function.
    return this.runShared([client], () => work(), places)
  }

  /**
   * Runs work for several clients like `run`: one task, which begins as soon as any of their networks may begin it.
   * `expected` is the number of milliseconds that the work will take, if this is known. Networks with short work come
   * first. While long work waits, its length counts less and less, until each network could have done as much.
   */
  runShared<T> (clients: readonly Client[], work: () => Promise<T>, places = 1, expected = 0) {
    return new Promise<T>((resolve, reject) => {
      const waiting: Waiting = {
        work,
        clients: [],
        shares: new Set(),
        places,
        expected,
        since: performance.now(),
        begin: share => resolve(this.#perform(share, work, places)),
        refuse: () => reject(this.#options.createError()),
      }
      this.#waiting.set(work, waiting)
      this.join(clients, work)
      this.#shorten(waiting)
    })
  }

  /** Tells that these clients also wait for the work. Returns false if it is not waiting. */
  join (clients: readonly Client[], work: () => Promise<unknown>) {
    const waiting = this.#waiting.get(work)
    if (!waiting) return false
    waiting.clients.push(...clients)
    for (const { network } of clients) {
      const share = this.#shares.get(network) ?? { network, used: 0, at: performance.now(), running: 0, waiting: [] }
      if (waiting.shares.has(share)) continue
      this.#shares.set(network, share)
      waiting.shares.add(share)
      share.waiting.push(waiting)
    }
    this.#beginNext()
    return true
  }

  /** Tells whether the queue would refuse further work for these clients at once. */
  isFullFor (clients: Iterable<Client>) {
    if (this.waiting < this.#options.maxLength) return false
    const most = this.#longest().waiting.length
    for (const { network } of clients) {
      if ((this.#shares.get(network)?.waiting.length ?? 0) + 1 < most) return false
    }
    return true
  }

  /**
   * Refuses work whose clients have gone, and forgets networks that have left. Call it regularly, because nothing tells
   * either.
   */
  check () {
    for (const waiting of this.#waiting.values()) if (!isWanted(waiting)) this.#refuse(waiting)
    for (const { network, at, running, waiting } of this.#shares.values()) {
      if (running === 0 && waiting.length === 0 && performance.now() - at >= FADE_MS) this.#shares.delete(network)
    }
    this.#beginNext()
  }

  /** Begins waiting work while places are free. */
  #beginNext () {
    const { concurrency } = this.#options
    const now = performance.now()
    for (let share; this.#running < concurrency && (share = this.#next(now));) {
      const waiting = share.waiting[0]!
      if (!isWanted(waiting)) {
        this.#refuse(waiting)
      } else if (this.#running > 0 && this.#running + waiting.places > concurrency) {
        // Smaller work of other networks waits as well. Otherwise, it would take each place that becomes free.
        return
      } else {
        this.#remove(waiting)
        this.#shares.delete(share.network)
        this.#shares.set(share.network, share)
        waiting.begin(share)
      }
    }
  }

  /** Of the networks that may begin their next work, returns the one that will have used least after it. */
  #next (now: number) {
    let next: Share | undefined
    let least = Infinity
    for (const share of this.#shares.values()) {
      const { running, waiting: [first] } = share
      if (!first) continue
      this.#fade(share, now)
      const isAllowed = running === 0 || running + first.places <= this.#half || this.#shares.size === 1
      const waited = (now - first.since) * this.#options.concurrency / this.#shares.size
      const used = share.used + first.places * Math.max(0, first.expected - waited)
      if (isAllowed && used < least) [next, least] = [share, used]
    }
    return next
  }

  /**
   * While the queue is too long, refuses the newest work of the network with the most work, because it has waited
   * least. If a network of `newest` has as much, refuses `newest`. A refusal concerns a single network.
   */
  #shorten (newest: Waiting) {
    while (this.waiting > this.#options.maxLength) {
      const longest = this.#longest()
      const share = [...newest.shares].find(own => own.waiting.length === longest.waiting.length) ?? longest
      const waiting = share.waiting.pop()!
      waiting.shares.delete(share)
      if (waiting.shares.size === 0) this.#refuse(waiting)
    }
  }

  #refuse (waiting: Waiting) {
    this.#remove(waiting)
    this.refused++
    waiting.refuse()
  }

  #remove (waiting: Waiting) {
    this.#waiting.delete(waiting.work)
    for (const share of waiting.shares) share.waiting.splice(share.waiting.indexOf(waiting), 1)
  }

  async #perform<T> (share: Share, work: () => Promise<T>, places: number) {
    this.#take(share, places)
    try {
      return await work()
    } finally {
      this.#take(share, -places)
      this.#beginNext()
    }
  }

  #take (share: Share, places: number) {
    this.#fade(share, performance.now())
    share.running += places
    this.#running += places
  }

  /** Computes the use of a network: the time of its running work is added, and earlier use fades. */
  #fade (share: Share, now: number) {
    const rest = Math.exp((share.at - now) / FADE_MS)
    share.used = share.used * rest + share.running * FADE_MS * (1 - rest)
    share.at = now
  }

  #longest () {
    return [...this.#shares.values()].reduce((one, other) => other.waiting.length > one.waiting.length ? other : one)
  }
}

const isWanted = ({ clients }: Waiting) => clients.some(client => client.isWanted())

/** Sums up weights by network, the largest sum first. */
export function sumByNetwork (items: Iterable<{ readonly network: string, readonly weight?: number }>) {
  const sums = new Map<string, number>()
  for (const { network, weight = 1 } of items) sums.set(network, (sums.get(network) ?? 0) + weight)
  return [...sums].sort(([, one], [, other]) => other - one)
}
