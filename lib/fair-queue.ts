/** A client of the service, or the service itself. Shares count by its network. */
export interface Client {
  readonly network: string
}

/** Work of one or several clients. */
export interface Task<T = unknown> {
  run (): Promise<T>
  /** Tells whether a client still waits for it. */
  isWanted (): boolean
}

/** What a network uses and wants. */
interface Share {
  readonly network: string
  /** Milliseconds for which it lately held places, times their number. It fades, see `FADE_MS`. */
  used: number
  /** The time for which `used` was computed. */
  at: number
  /** Places that it holds. */
  running: number
  /** Tasks that are waiting. */
  readonly waiting: Waiting[]
}

/** A task that is waiting, perhaps for clients of several networks. */
interface Waiting {
  readonly task: Task
  readonly places: number
  readonly since: number
  readonly shares: Set<Share>
  /** Begins the work, which counts for this network. */
  begin (share: Share): void
  refuse (): void
}

interface Options {
  concurrency: number
  maxLength: number
  /** Longest wait. The default is unlimited. */
  maxWaitMs?: number
  /** For this time after a task of a network, other networks leave it half of the places. The default is 0. */
  presentMs?: number
  /** Creates the error for refused work. */
  createError: () => Error
}

/** Time in which the use of a network fades to 37 %. */
const FADE_MS = 1000

/** Use that no longer matters, in milliseconds. */
const FADED = 1

/**
 * Runs a limited number of tasks in parallel, fair by network: the next place goes to the network whose tasks held
 * places for the least time lately. While others are present, a network with half of the places begins no further task.
 * With `presentMs`, a client that sends one request after the other finds a place free, although it never waits.
 *
 * If the queue is full, the newest task of the network with the most waiting tasks is refused.
 */
export class FairQueue {
  readonly #options: Options
  /** Maximum number of places of a network while others are present. */
  readonly #half: number
  /** The networks that used something lately. The network that began a task last is the last one. */
  readonly #shares = new Map<string, Share>()
  readonly #tasks = new Map<Task, Waiting>()
  #running = 0

  constructor (options: Options) {
    this.#options = options
    this.#half = Math.ceil(options.concurrency / 2)
  }

  get running () { return this.#running }

  get waiting () { return this.#tasks.size }

  /** Throws if the queue is full for the network of this client. */
  assertNotFull ({ network }: Client) {
    const own = this.#shares.get(network)?.waiting.length ?? 0
    const isFull = this.#tasks.size >= this.#options.maxLength
    if (isFull && this.#longest().waiting.length <= own + 1) throw this.#options.createError()
  }

  /**
   * Runs the work on so many places, after waiting if necessary. Rejects if the queue is full, if the work waited too
   * long, or if it is no longer wanted.
   */
  run<T> (client: Client, work: () => Promise<T>, isWanted = () => true, places = 1) {
    return this.runShared(client, { run: work, isWanted }, places)
  }

  /** Runs the task like `run`. Other clients can join it. */
  runShared<T> (client: Client, task: Task<T>, places = 1) {
    return new Promise<T>((resolve, reject) => {
      const begin = (share: Share) => resolve(this.#perform(share, task, places))
      const refuse = () => reject(this.#options.createError())
      this.#tasks.set(task, { task, places, since: performance.now(), shares: new Set(), begin, refuse })
      this.join(client, task)
      this.#shorten(client.network)
    })
  }

  /** Tells that this client also waits for the task. It stays one entry, and begins when any of its networks may. */
  join ({ network }: Client, task: Task) {
    const waiting = this.#tasks.get(task)
    const share = this.#shares.get(network) ?? { network, used: 0, at: performance.now(), running: 0, waiting: [] }
    if (!waiting || waiting.shares.has(share)) return
    this.#shares.set(network, share)
    waiting.shares.add(share)
    share.waiting.push(waiting)
    this.beginNext()
  }

  /** Refuses waiting work that is no longer wanted. */
  dropUnwanted () {
    for (const waiting of this.#tasks.values()) if (!waiting.task.isWanted()) this.#refuse(waiting)
  }

  /** Begins waiting work while places are free. Call it regularly, because nothing tells that a network has left. */
  beginNext () {
    const { concurrency, maxWaitMs = Infinity } = this.#options
    const now = performance.now()
    for (let share = this.#next(now); share; share = this.#next(now)) {
      const waiting = share.waiting[0]!
      const { task, places, since, begin } = waiting
      if (!task.isWanted() || now - since > maxWaitMs) {
        this.#refuse(waiting)
      } else if (this.#running > 0 && this.#running + places > concurrency) {
        // Smaller work of other networks waits as well. Otherwise, it would take each place that becomes free.
        return
      } else {
        this.#remove(waiting)
        this.#shares.delete(share.network)
        this.#shares.set(share.network, share)
        begin(share)
      }
    }
  }

  /** Returns the network that used least, of those that wait and may begin work. Forgets networks that have left. */
  #next (now: number) {
    const { concurrency, presentMs = 0 } = this.#options
    if (this.#running >= concurrency) return
    let next: Share | undefined
    let alone: Share | undefined
    let present = 0
    for (const share of this.#shares.values()) {
      const { network, at, used, running, waiting: [first] } = share
      const idleMs = running === 0 && !first ? now - at : -1
      if (idleMs < presentMs) present++
      else if (used * fading(idleMs) < FADED) this.#shares.delete(network)
      if (!first) continue
      this.#fade(share, now)
      if (running > 0 && running + first.places > this.#half) alone = share
      else if (!next || share.used < next.used) next = share
    }
    return next ?? (present === 1 ? alone : undefined)
  }

  /** Refuses the newest work of the network with the most, because it has waited least, while the queue is too long. */
  #shorten (network: string) {
    while (this.#tasks.size > this.#options.maxLength) {
      const longest = this.#longest()
      const own = this.#shares.get(network)!
      const share = longest.waiting.length > own.waiting.length ? longest : own
      const waiting = share.waiting.pop()!
      waiting.shares.delete(share)
      // A refusal concerns one network only.
      if (waiting.shares.size === 0) this.#refuse(waiting)
    }
  }

  #refuse (waiting: Waiting) {
    this.#remove(waiting)
    waiting.refuse()
  }

  #remove (waiting: Waiting) {
    this.#tasks.delete(waiting.task)
    for (const share of waiting.shares) share.waiting.splice(share.waiting.indexOf(waiting), 1)
  }

  async #perform<T> (share: Share, task: Task<T>, places: number) {
    this.#hold(share, places)
    try {
      return await task.run()
    } finally {
      this.#hold(share, -places)
      this.beginNext()
    }
  }

  #hold (share: Share, places: number) {
    this.#fade(share, performance.now())
    share.running += places
    this.#running += places
  }

  /** Computes the use of a network: the time of its running work is added, and earlier use fades. */
  #fade (share: Share, now: number) {
    const rest = fading(now - share.at)
    share.used = share.used * rest + share.running * FADE_MS * (1 - rest)
    share.at = now
  }

  #longest () {
    return [...this.#shares.values()].reduce((one, other) => other.waiting.length > one.waiting.length ? other : one)
  }
}

const fading = (milliseconds: number) => Math.exp(-milliseconds / FADE_MS)
