import { setTimeout as sleep } from 'node:timers/promises'

/** A client of the service, or the service itself. Shares of queues and of the memory budget count by its network. */
export interface Client {
  readonly network: string
}

/** Work of one or several clients. */
export interface Task<T = unknown> {
  run (): Promise<T>
  /** Tells whether a client still waits for it. */
  isWanted (): boolean
}

/** A task that is waiting. */
interface Waiting {
  task: Task
  since: number
  /** Begins the work, which counts for this network. */
  begin (network: string): void
  refuse (): void
}

interface Options {
  concurrency: number
  maxLength: number
  /** Longest wait. The default is unlimited. */
  maxWaitMs?: number
  /** For this time after a task of a network, other networks leave it half of the places. The default is 0. */
  reservedMs?: number
  /** Creates the error for refused work. */
  createError: () => Error
}

/** Delay of a refusal. */
const REFUSAL_DELAY_MS = 100

/**
 * Runs a limited number of tasks in parallel, fair by network:
 *
 * - Waiting tasks run round robin by network. While others wait, a network with half of the places begins no
 *   further task.
 * - For `reservedMs` after a different network sent a task, a network with half of the places begins no further task,
 *   even if nobody waits. Otherwise, a client that sends one request after the other would always find all places
 *   taken, because it never waits between.
 * - If the queue is full, a task of the network with the most waiting tasks is refused in favour of a network with
 *   fewer.
 *
 * A single network can use the whole queue, but competing networks get equal shares.
 */
export class FairQueue {
  readonly #options: Options
  /** Maximum number of running tasks of a network while others wait. */
  readonly #share: number
  /** Waiting tasks by network. The next network comes first. Lists are not empty. */
  readonly #waiting = new Map<string, Waiting[]>()
  /** Numbers of running tasks by network. */
  readonly #runningOf = new Map<string, number>()
  /** The network of the latest task and the latest different network, each with the time of its task. */
  #latest = { network: '', at: -Infinity }
  #other = this.#latest
  #running = 0
  #length = 0

  constructor (options: Options) {
    this.#options = options
    this.#share = Math.ceil(options.concurrency / 2)
  }

  get running () { return this.#running }

  get waiting () { return this.#length }

  /** Rejects if the queue is full for the network of this client. */
  async assertNotFull ({ network }: Client) {
    if (!this.#hasRoom(network)) throw await this.#refuse()
  }

  /**
   * Runs the work, after waiting if necessary. Rejects if the queue is full, if the work waited for too long, or if it
   * is no longer wanted.
   */
  run<T> (client: Client, work: () => Promise<T>, isWanted = () => true) {
    return this.runShared(client, { run: work, isWanted })
  }

  /** Runs the task like `run`. Other clients can join it. */
  async runShared<T> ({ network }: Client, task: Task<T>): Promise<T> {
    this.#see(network)
    if (!this.#waiting.has(network) && this.#mayBegin(network)) this.#count(network, 1)
    else if (!this.#hasRoom(network)) throw await this.#refuse()
    // A client that joins can move the task to a different network.
    else network = await this.#wait(network, task)
    try {
      return await task.run()
    } finally {
      this.#count(network, -1)
      this.beginNext()
    }
  }

  /**
   * Tells that this client also waits for the task. If its network would run the task sooner, the task moves to that
   * network. It stays one entry, also if clients leave.
   */
  join ({ network }: Client, task: Task) {
    for (const [holder, list] of this.#waiting) {
      const index = list.findIndex(waiting => waiting.task === task)
      if (index < 0) continue
      const own = this.#waiting.get(network)?.length ?? 0
      if (this.#turns(network, own) < this.#turns(holder, index)) {
        const [waiting] = list.splice(index, 1)
        if (list.length === 0) this.#waiting.delete(holder)
        this.#append(network, waiting!)
        this.beginNext()
      }
      return
    }
  }

  /** Refuses waiting work that is no longer wanted. */
  dropUnwanted () {
    for (const [network, list] of this.#waiting) {
      const wanted = list.filter(({ task }) => task.isWanted())
      if (wanted.length === list.length) continue
      this.#length -= list.length - wanted.length
      if (wanted.length > 0) this.#waiting.set(network, wanted)
      else this.#waiting.delete(network)
      for (const waiting of list) if (!wanted.includes(waiting)) waiting.refuse()
    }
  }

  /**
   * Begins waiting work while places are free. Call it regularly if places are reserved, because nothing tells that a
   * reservation has ended.
   */
  beginNext () {
    const { concurrency, maxWaitMs = Infinity } = this.#options
    while (this.#running < concurrency) {
      const network = this.#nextNetwork()
      if (network === undefined) return
      const { task, since, begin, refuse } = this.#shift(network)
      if (!task.isWanted() || performance.now() - since > maxWaitMs) {
        refuse()
      } else {
        this.#count(network, 1)
        begin(network)
      }
    }
  }

  #hasRoom (network: string) {
    if (this.#length < this.#options.maxLength) return true
    const held = this.#waiting.get(network)?.length ?? 0
    return this.#longest().length > held + 1
  }

  /**
   * Delays the refusal, because clients that retry at once would use more processor time than the work: during a flood
   * of 120 clients, sign-ins of others took 152 to 333 ms without the delay, and 84 to 183 ms with it.
   */
  async #refuse () {
    await sleep(REFUSAL_DELAY_MS)
    return this.#options.createError()
  }

  /** Resolves to the network for which this task may run. It then counts as running. */
  #wait (network: string, task: Task) {
    return new Promise<string>((resolve, reject) => {
      // Refuses the newest work of the network with the most waiting work, because it has waited least.
      if (this.#length === this.#options.maxLength) this.#longest().pop()!.refuse()
      else this.#length++
      const refuse = () => reject(this.#options.createError())
      this.#append(network, { task, since: performance.now(), begin: resolve, refuse })
      this.beginNext()
    })
  }

  #append (network: string, waiting: Waiting) {
    const list = this.#waiting.get(network)
    if (list) list.push(waiting)
    else this.#waiting.set(network, [waiting])
  }

  /** Removes the next work of this network, which moves to the end. */
  #shift (network: string) {
    const list = this.#waiting.get(network)!
    const next = list.shift()!
    this.#waiting.delete(network)
    if (list.length > 0) this.#waiting.set(network, list)
    this.#length--
    return next
  }

  /** Returns the network whose work begins next: the first below its share, or else the first that may exceed it. */
  #nextNetwork () {
    let other: string | undefined
    for (const network of this.#waiting.keys()) {
      if (!this.#hasShare(network)) return network
      if (this.#mayBegin(network)) other ??= network
    }
    return other
  }

  /** Tells whether a place is free for work of this network, and not reserved for a different network. */
  #mayBegin (network: string) {
    const { concurrency, reservedMs = 0 } = this.#options
    if (this.#running === concurrency) return false
    const rival = this.#latest.network === network ? this.#other : this.#latest
    return !this.#hasShare(network) || performance.now() - rival.at >= reservedMs
  }

  #see (network: string) {
    if (this.#latest.network !== network) this.#other = this.#latest
    this.#latest = { network, at: performance.now() }
  }

  #hasShare (network: string) {
    return (this.#runningOf.get(network) ?? 0) >= this.#share
  }

  /** Returns after how many rounds the work at this index of a network's list begins. */
  #turns (network: string, index: number) {
    return this.#hasShare(network) ? Infinity : index
  }

  /** Counts running work. */
  #count (network: string, change: 1 | -1) {
    this.#running += change
    const running = (this.#runningOf.get(network) ?? 0) + change
    if (running > 0) this.#runningOf.set(network, running)
    else this.#runningOf.delete(network)
  }

  /** Returns the waiting work of the network that has the most. */
  #longest () {
    return [...this.#waiting.values()].reduce((one, other) => other.length > one.length ? other : one)
  }
}
