import { setTimeout as sleep } from 'node:timers/promises'

import type { Client } from './http/client-network.ts'

/** Work that is waiting. */
interface Waiting {
  since: number
  isWanted (): boolean
  begin (): void
  refuse (): void
}

interface Options {
  concurrency: number
  maxLength: number
  /** Longest wait. The default is unlimited. */
  maxWaitMs?: number
  /** Creates the error for refused work. */
  createError: () => Error
}

/** Delay of a refusal. */
const REFUSAL_DELAY_MS = 100

/**
 * Runs a limited number of tasks in parallel. Waiting tasks run round robin by network. If the queue is full, a task of
 * the network with the most waiting tasks is refused in favour of a network with fewer. A single network can use the
 * whole queue, but competing networks get equal shares.
 */
export class FairQueue {
  readonly #options: Options
  /** Waiting tasks by network. The next network comes first. Lists are not empty. */
  readonly #waiting = new Map<string, Waiting[]>()
  #running = 0
  #length = 0
  #delayed = 0

  constructor (options: Options) {
    this.#options = options
  }

  get running () { return this.#running }

  get waiting () { return this.#length }

  /** Rejects if the queue is full for the network of this client. */
  async assertNotFull (client: Client) {
    if (!this.#hasRoom(client)) throw await this.#refuse()
  }

  /**
   * Runs the work, after waiting if necessary. Rejects if the queue is full, if the work waited for too long, or if it
   * is no longer wanted.
   */
  async run<T> (client: Client, work: () => Promise<T>, isWanted = () => true): Promise<T> {
    if (!this.#hasRoom(client)) throw await this.#refuse()
    if (this.#running < this.#options.concurrency) this.#running++
    else await this.#wait(client.network, isWanted)
    try {
      return await work()
    } finally {
      this.#running--
      this.#beginNext()
    }
  }

  /** Refuses waiting work that is no longer wanted. */
  dropUnwanted () {
    for (const [network, list] of this.#waiting) {
      const wanted = list.filter(({ isWanted }) => isWanted())
      if (wanted.length === list.length) continue
      this.#length -= list.length - wanted.length
      if (wanted.length > 0) this.#waiting.set(network, wanted)
      else this.#waiting.delete(network)
      for (const waiting of list) if (!wanted.includes(waiting)) waiting.refuse()
    }
  }

  /** Reads the network only if the queue is full, because this runs for each operation. */
  #hasRoom (client: Client) {
    if (this.#length < this.#options.maxLength) return true
    const held = this.#waiting.get(client.network)?.length ?? 0
    return this.#longest().length > held + 1
  }

  /**
   * Delays the refusal, because clients that retry at once would use more processor time than the work. The number of
   * delayed refusals is limited, because each of them uses memory.
   */
  async #refuse () {
    if (this.#delayed < this.#options.maxLength) {
      this.#delayed++
      await sleep(REFUSAL_DELAY_MS)
      this.#delayed--
    }
    return this.#options.createError()
  }

  /** Resolves when this work may run. It then counts as running. */
  #wait (network: string, isWanted: () => boolean) {
    return new Promise<void>((resolve, reject) => {
      // Refuses the newest work of the network with the most waiting work, because it has waited least.
      if (this.#length === this.#options.maxLength) this.#longest().pop()!.refuse()
      else this.#length++
      const list = this.#waiting.get(network) ?? []
      this.#waiting.set(network, list)
      const refuse = () => reject(this.#options.createError())
      list.push({ since: performance.now(), isWanted, begin: resolve, refuse })
    })
  }

  #beginNext () {
    const { concurrency, maxWaitMs = Infinity } = this.#options
    while (this.#length > 0 && this.#running < concurrency) {
      const { since, isWanted, begin, refuse } = this.#shift()
      if (!isWanted() || performance.now() - since > maxWaitMs) {
        refuse()
      } else {
        this.#running++
        begin()
      }
    }
  }

  /** Removes the next work. Its network moves to the end. */
  #shift () {
    const [network, list] = this.#waiting.entries().next().value!
    const next = list.shift()!
    this.#waiting.delete(network)
    if (list.length > 0) this.#waiting.set(network, list)
    this.#length--
    return next
  }

  /** Returns the waiting work of the network that has the most. */
  #longest () {
    return [...this.#waiting.values()].reduce((one, other) => other.length > one.length ? other : one)
  }
}
