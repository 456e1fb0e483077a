import { setTimeout as sleep } from 'node:timers/promises'

/** Work that waits for its turn. */
interface Waiting {
  since: number
  isWanted (): boolean
  begin (): void
  refuse (): void
}

interface Options {
  /** How many pieces of work run at once. */
  concurrency: number
  /** How many may wait for their turn. */
  places: number
  /** For how long one may wait, in milliseconds; any time unless given. */
  maxWaitMs?: number
  /** Makes the error of work that is refused. */
  refusal: () => Error
}

/** For how long a refusal is held back, in milliseconds. */
const REFUSAL_DELAY = 100

/**
 * Runs so many pieces of work at once; those that wait take turns by their key, one of each (round robin). When all
 * places are taken, the key that holds the most of them gives one up to a key that holds fewer. So a key alone may have
 * them all, and beside others it has its share.
 */
export class FairQueue {
  readonly #options: Options
  /** Whose turn is next comes first. No list is empty. */
  readonly #waiting = new Map<string, Waiting[]>()
  #running = 0
  #length = 0
  #held = 0

  constructor (options: Options) {
    this.#options = options
  }

  /** How many run at this moment. */
  get running () { return this.#running }

  /** How many wait at this moment. */
  get waiting () { return this.#length }

  /** Rejects with the refusal when work of this key would find no place. */
  async assertPlace (key: () => string) {
    if (!this.#hasPlace(key)) throw await this.#refusal()
  }

  /**
   * Runs the work when it is its turn. Rejects with the refusal when there is no place, when it waited for too long, or
   * when nobody wants it any more.
   */
  async run<T> (key: () => string, work: () => Promise<T>, isWanted = () => true): Promise<T> {
    if (!this.#hasPlace(key)) throw await this.#refusal()
    if (this.#running < this.#options.concurrency) this.#running++
    else await this.#turn(key(), isWanted)
    try {
      return await work()
    } finally {
      this.#running--
      this.#beginNext()
    }
  }

  /** Refuses the work that nobody wants any more. */
  dropUnwanted () {
    for (const [key, list] of this.#waiting) {
      const wanted = list.filter(({ isWanted }) => isWanted())
      if (wanted.length === list.length) continue
      this.#length -= list.length - wanted.length
      if (wanted.length > 0) this.#waiting.set(key, wanted)
      else this.#waiting.delete(key)
      for (const waiting of list) if (!wanted.includes(waiting)) waiting.refuse()
    }
  }

  #hasPlace (key: () => string) {
    if (this.#length < this.#options.places) return true
    const held = this.#waiting.get(key())?.length ?? 0
    return this.#longest().length > held + 1
  }

  /**
   * Clients that come back at once would take more of the processor than the work does, so their refusal is held back.
   * Only so many are, since each of them occupies memory.
   */
  async #refusal () {
    if (this.#held < this.#options.places) {
      this.#held++
      await sleep(REFUSAL_DELAY)
      this.#held--
    }
    return this.#options.refusal()
  }

  /** Resolves when it is the turn of this work, and it counts as running. */
  #turn (key: string, isWanted: () => boolean) {
    return new Promise<void>((resolve, reject) => {
      // The newest of the key with the most places is refused: it has waited least.
      if (this.#length === this.#options.places) this.#longest().pop()!.refuse()
      else this.#length++
      const list = this.#waiting.get(key) ?? []
      this.#waiting.set(key, list)
      const refuse = () => reject(this.#options.refusal())
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

  /** Takes the next one; its key goes to the end of the line. */
  #shift () {
    const [key, list] = this.#waiting.entries().next().value!
    const next = list.shift()!
    this.#waiting.delete(key)
    if (list.length > 0) this.#waiting.set(key, list)
    this.#length--
    return next
  }

  /** The waiting jobs of the key that holds the most places. */
  #longest () {
    return [...this.#waiting.values()].reduce((one, other) => other.length > one.length ? other : one)
  }
}
