import { setImmediate } from 'node:timers/promises'

import type { Client, FairQueue } from '../http/fair-queue.ts'

/**
 * A read calls this with the bytes that it holds, when it begins and when they have changed. Throws if no client waits
 * any more.
 */
export type Hold = (bytes: number) => void

/** How a body is read, and the queue in which the read waits. */
export interface Read<T> {
  queue: FairQueue
  run (hold: Hold): Promise<T>
}

/** No client waits for the body of a read any more. The server is not at fault. */
class AbortError extends Error {
  override name = 'AbortError'
}

/**
 * A read of a key and the clients that share it. A flight is always in one of these states:
 *
 * - WAITING: the previous read is running, or the queue has not started this read yet. Clients can join. The read is
 *   one entry of the queue. It begins as soon as the network of any client may begin work, and fails if the queue
 *   refuses it for the networks of all clients.
 * - STARTING: the read begins in the next turn of the event loop. Clients can join.
 * - READING: the read is running. It may predate a commit that a new client must see, so new clients join the next
 *   flight. A client that knows the id of a snapshot can still join if this id equals the id at the start of the read,
 *   because every commit changes the id.
 *
 * When the read ends, the next flight becomes current, or the key is deleted.
 */
class Flight<T> {
  next: Flight<T> | undefined
  readonly result: Promise<T>
  #state: 'WAITING' | 'STARTING' | 'READING' = 'WAITING'
  /** Id of the newest snapshot that a client knew when the read began. Clients with this id can join a running read. */
  #snapshot: string | null = null
  readonly #read: Read<T>
  readonly #clients: Client[] = []
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

  /** Adds clients with this snapshot. Returns false if they are too late. */
  join (clients: readonly Client[], snapshot: string | null) {
    const isEarly = this.#state === 'WAITING'
      // The queue drops a read that it refuses. A client that comes later begins a new read, and is not refused by it.
      ? !this.#isQueued || this.#read.queue.join(clients, this.#run)
      : this.#state === 'STARTING' || (snapshot !== null && snapshot === this.#snapshot)
    if (!isEarly) return false
    this.#clients.push(...clients)
    this.#snapshot = snapshot ?? this.#snapshot
    return true
  }

  async #fly (previous: Promise<T> | undefined) {
    await previous?.catch(() => {})
    this.#isQueued = true
    return this.#read.queue.runShared(this.#clients, this.#run)
  }

  readonly #run = async () => {
    this.#state = 'STARTING'
    await setImmediate()
    this.#state = 'READING'
    return this.#read.run(bytes => {
      for (const client of this.#clients) client.hold?.(bytes / this.#clients.length)
      if (this.#clients.some(client => client.isWanted())) return
      // While the driver drops the remaining rows, a client that joins would get the error.
      this.#snapshot = null
      throw new AbortError('No client waits for this body')
    })
  }
}

/**
 * Returns a function with which concurrent clients of a key share reads. Without it, 1,000 pages that load a list after
 * a change would read it 1,000 times instead of once. A client gets the result of a read that began before its call
 * only if it gives the id of the snapshot for which that read began. At most one read per key runs at a time.
 * `createRead` is called only if no other client has created a read to share.
 *
 * This function has no timeout, because the timeout of the first client would also fail later clients. Statements and
 * operations have their own timeouts.
 */
export function singleFlight<T> () {
  const flights = new Map<string, Flight<T>>()

  return function share (
    key: string, createRead: () => Read<T>, clients: readonly Client[], snapshot: string | null = null
  ): Promise<T> {
    let last: Flight<T> | undefined
    for (let flight = flights.get(key); flight; flight = flight.next) {
      if (flight.join(clients, snapshot)) return flight.result
      last = flight
    }
    const flight = new Flight(createRead(), last, ({ next }) => {
      if (next) flights.set(key, next)
      else flights.delete(key)
    })
    flight.join(clients, snapshot)
    if (last) last.next = flight
    else flights.set(key, flight)
    return flight.result
  }
}
