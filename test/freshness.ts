// Helpers of the tests that look for stale responses: older than a commit that was acknowledged before the request.
import { setImmediate } from 'node:timers/promises'

import fc, { type Arbitrary } from 'fast-check'
import type { Test } from 'tap'

/**
 * Plays random scripts: `few`, or FRESHNESS_RUNS. Does not shrink a failing script, because failures depend on timing.
 */
export async function holds<Scripts> (
  t: Test, few: number, scripts: Arbitrary<Scripts>, play: (scripts: Scripts) => Promise<void>
) {
  const { failed, numRuns, seed, counterexample, errorInstance } = await fc.check(
    fc.asyncProperty(scripts, play), { numRuns: Number(process.env.FRESHNESS_RUNS ?? few), endOnFailure: true })
  t.notOk(failed, `${numRuns} scripts`, { seed, counterexample, found: errorInstance })
}

/** Yields to other tasks for some turns of the event loop. */
export async function turns (count: number) {
  for (let turn = 0; turn < count; turn++) await setImmediate()
}

/** The values that a read may return. They grow; each is registered before its write and at its acknowledgement. */
export class Bounds {
  #begun = 0
  #acknowledged = 0

  /** The next value to write. */
  next () {
    return ++this.#begun
  }

  /** Registers a value that the database acknowledged or that a response had: later reads must not return less. */
  acknowledge (value: number) {
    this.#acknowledged = Math.max(this.#acknowledged, value)
  }

  /** Throws unless the value is between the one acknowledged before the read and the last one begun after it. */
  async check (read: () => Promise<number>) {
    const least = this.#acknowledged
    const value = await read()
    if (value >= least && value <= this.#begun) {
      this.acknowledge(value)
      return
    }
    throw new Error(`read ${value}, but ${least} was acknowledged before and ${this.#begun} begun in all`)
  }
}
