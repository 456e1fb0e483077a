// What the tests share that try to catch an answer that is older than what was committed before it was asked for.
import { setImmediate } from 'node:timers/promises'

import fc, { type Arbitrary } from 'fast-check'
import type { Test } from 'tap'

/**
 * Tries a few scripts at random; FRESHNESS_RUNS=1000 tries as many, for as long as it takes. What fails depends on time
 * as well, so that no shorter script is looked for.
 */
export async function holds<Scripts> (
  t: Test, few: number, scripts: Arbitrary<Scripts>, play: (scripts: Scripts) => Promise<void>
) {
  const { failed, numRuns, seed, counterexample, errorInstance } = await fc.check(
    fc.asyncProperty(scripts, play), { numRuns: Number(process.env.FRESHNESS_RUNS ?? few), endOnFailure: true })
  t.notOk(failed, `${numRuns} scripts`, { seed, counterexample, found: errorInstance })
}

/** Lets others go on for so many turns of the event loop. */
export async function turns (count: number) {
  for (let turn = 0; turn < count; turn++) await setImmediate()
}

/** What may be answered. Values only grow, and each is told here before it is written, and when it is acknowledged. */
export class Bounds {
  #begun = 0
  #acknowledged = 0

  /** The next value to write. */
  next () {
    return ++this.#begun
  }

  /** This value, or a higher one, was acknowledged by the database or seen in an answer: nobody may see less. */
  acknowledge (value: number) {
    this.#acknowledged = Math.max(this.#acknowledged, value)
  }

  /** Reads a value; throws when it is not between what was acknowledged before and what was begun afterwards. */
  async check (read: () => Promise<number>) {
    const least = this.#acknowledged
    const value = await read()
    if (value >= least && value <= this.#begun) return this.acknowledge(value)
    throw new Error(`answered ${value}, when ${least} was acknowledged before and ${this.#begun} begun in all`)
  }
}
