import { setImmediate } from 'node:timers/promises'

import type { Caller, SharedRead } from './caller.ts'

/** A read calls this when it begins, and when it has read `bytes` more. Throws if no client waits any more. */
export type AddBytes = (bytes: number) => void

/** How a body is read. */
export interface Read<T> {
  isList: boolean
  run (addBytes: AddBytes): Promise<T>
}

/** No client waits for the body of a read any more. The server is not at fault. */
class AbortError extends Error {
  override name = 'AbortError'
}

/**
 * A read of a key and the callers that share it. A flight is always in one of these states:
 *
 * - WAITING: the previous read is running, or admission has not started this read yet. Callers can join. The read is
 *   one entry of the queue, and begins when the first of them is admitted. It fails if all of them are refused.
 * - GATHERING: the read begins in the next turn of the event loop. Callers can join.
 * - READING: the read is running. It may predate a commit that a new caller must see, so new callers join the next
 *   flight. A caller with the id of a snapshot can still join if it equals the id at the start, because every commit
 *   changes it.
 *
 * When the read ends, the next flight becomes current, or the key is deleted.
 */
class Flight<T> implements SharedRead<T> {
  state: 'WAITING' | 'GATHERING' | 'READING' = 'WAITING'
  next: Flight<T> | undefined
  /** Id of the newest snapshot that a caller knew when the read began. Callers with this id can join a running read. */
  snapshot: string | null = null
  /** Number of bytes read so far. */
  length = 0
  readonly result: Promise<T>
  readonly #read: Read<T>
  readonly #callers: Caller[] = []
  /** Whether `admit` was called. Before, a caller that joins would not find this read in a queue. */
  #isQueued = false

  constructor (read: Read<T>, previous: Flight<T> | undefined, onSettled: (flight: Flight<T>) => void) {
    this.#read = read
    this.result = this.#fly(previous?.result).finally(() => {
      onSettled(this)
      // With steady commits, flights form a chain. V8 would keep the chain in memory once the first flight is in the
      // old generation.
      this.next = undefined
    })
  }

  get isList () { return this.#read.isList }

  canJoin (snapshot: string | null) {
    return this.state === 'WAITING' || this.state === 'GATHERING' || (snapshot !== null && snapshot === this.snapshot)
  }

  add (caller: Caller, snapshot: string | null) {
    this.#callers.push(caller)
    this.snapshot = snapshot ?? this.snapshot
    this.#join(caller)
  }

  #join (caller: Caller) {
    if (this.#isQueued && this.state === 'WAITING') caller.join(this)
  }

  isWanted () {
    return this.#callers.some(caller => caller.isWanted())
  }

  async run () {
    this.state = 'GATHERING'
    await setImmediate()
    this.state = 'READING'
    return this.#read.run(bytes => this.#addBytes(bytes))
  }

  #addBytes (bytes: number) {
    this.length += bytes
    for (const caller of this.#callers) caller.hold(this)
    if (this.isWanted()) return
    // While the driver drops the remaining rows, a caller that joins would get the error.
    this.snapshot = null
    throw new AbortError('No client waits for this body')
  }

  async #fly (previous: Promise<T> | undefined) {
    await previous?.catch(() => {})
    let refusal: unknown
    // A refusal concerns one caller, so the others are tried, also those that have joined in the meantime.
    for (const caller of this.#callers) {
      if (!caller.isWanted() && this.isWanted()) continue
      try {
        const admitted = caller.admit(this)
        this.#isQueued = true
        for (const other of this.#callers) if (other !== caller && other.isWanted()) this.#join(other)
        return await admitted
      } catch (error) {
        // The read has failed, or else the queue has refused the caller.
        if (this.state !== 'WAITING') throw error
        refusal = error
      }
    }
    throw refusal
  }
}

/**
 * Returns a function with which concurrent callers of a key share reads. A caller gets the result of a read that
 * began before its call only if it gives the id of the snapshot for which that read began. At most one read per key
 * runs at a time. `createRead` is called only if no other caller has created a read to share.
 *
 * This function has no timeout, because the timeout of the first caller would also fail later callers. Statements and
 * operations have their own timeouts.
 */
export function singleFlight<T> () {
  const flights = new Map<string, Flight<T>>()

  return function share (
    key: string, createRead: () => Read<T>, caller: Caller, snapshot: string | null = null
  ): Promise<T> {
    const flight = flightFor(key, createRead, snapshot)
    flight.add(caller, snapshot)
    return flight.result
  }

  /** Returns the flight that a caller with this snapshot can join. */
  function flightFor (key: string, createRead: () => Read<T>, snapshot: string | null) {
    const current = flights.get(key)
    if (current?.canJoin(snapshot)) return current
    if (current?.next) return current.next
    const flight = new Flight(createRead(), current, ({ next }) => {
      if (next) flights.set(key, next)
      else flights.delete(key)
    })
    if (current) current.next = flight
    else flights.set(key, flight)
    return flight
  }
}
