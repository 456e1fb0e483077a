import { setImmediate } from 'node:timers/promises'

/** A shared read. */
export interface Shared<Caller> {
  /** The callers that wait for the read. More callers may join during the read. */
  readonly callers: Caller[]
  /** Number of bytes read so far, maintained by the read. */
  length: number
  /** Set by a read that fails because its callers have gone. Then new callers cannot join. */
  abandoned: boolean
}

/**
 * A read of a key and the callers that share it. A flight is always in one of these states:
 *
 * - WAITING: the previous read is running, or admission has not started this read yet. Callers can join; each of them
 *   waits for admission.
 * - GATHERING: the read begins in the next turn of the event loop. Callers can join.
 * - READING: the read is running. It may predate a commit that a new caller must see, so new callers join the next
 *   flight. A caller can still join if its version equals the version at the start, because every commit changes it.
 * - SETTLED: the callers have the result or the error. The next flight becomes current, or the key is deleted.
 */
interface Flight<T, Caller> extends Shared<Caller> {
  state: 'WAITING' | 'GATHERING' | 'READING' | 'SETTLED'
  /** The newest version known to a caller when the read began. */
  version: string | null
  /** Resolves when the previous flight is SETTLED. */
  ready: Promise<unknown>
  /** Number of callers that wait for admission. */
  waiting: number
  /** Begins the read if the flight is WAITING. Resolves when it is SETTLED. */
  begin (): Promise<void>
  result: Promise<T>
  next?: Flight<T, Caller> | undefined
}

interface Options<Caller> {
  caller?: Caller
  /** Waits for admission of this caller, then calls `begin`. Rejects if admission refuses the caller. */
  admit?: ((begin: () => Promise<void>) => Promise<void>) | undefined
}

/**
 * Returns a function with which concurrent callers of a key share reads. A read begins after the calls that it answers,
 * or has the same version (see Flight). At most one read per key runs at a time.
 *
 * This function has no timeout, because the timeout of the first caller would also fail later callers. Statements and
 * operations have their own timeouts.
 */
export function singleFlight<T, Caller = undefined> () {
  type Read = (shared: Shared<Caller>) => Promise<T>
  const flights = new Map<string, Flight<T, Caller>>()

  return function share (
    key: string, read: Read, version: string | null = null, { caller, admit = begin => begin() }: Options<Caller> = {}
  ): Promise<T> {
    const flight = flightFor(key, read, version)
    flight.callers.push(caller!)
    flight.version = version ?? flight.version
    return flight.state === 'WAITING' ? board(key, flight, admit) : flight.result
  }

  /** Returns the flight that a caller with this version can join. */
  function flightFor (key: string, read: Read, version: string | null) {
    const current = flights.get(key)
    if (!current) {
      const flight = createFlight(key, read, Promise.resolve())
      flights.set(key, flight)
      return flight
    }
    if (current.state === 'WAITING' || current.state === 'GATHERING') return current
    if (version !== null && current.version === version && !current.abandoned) return current
    current.next ??= createFlight(key, read, current.result.catch(() => {}))
    return current.next
  }

  function createFlight (key: string, read: Read, ready: Promise<unknown>) {
    let begin!: (result: Promise<T>) => void
    const flight: Flight<T, Caller> = {
      state: 'WAITING',
      callers: [],
      length: 0,
      abandoned: false,
      version: null,
      ready,
      waiting: 0,
      result: new Promise(resolve => { begin = resolve }),
      async begin () {
        if (flight.state !== 'WAITING') return
        flight.state = 'GATHERING'
        const result = setImmediate().then(() => {
          flight.state = 'READING'
          return read(flight)
        })
        begin(result)
        await result.then(settle, settle)
      },
    }
    return flight

    function settle () {
      const { next, callers } = flight
      flight.state = 'SETTLED'
      // With steady commits, flights form a chain. V8 would keep the chain and all callers in memory once the first
      // flight is in the old generation.
      flight.next = undefined
      callers.length = 0
      if (next) flights.set(key, next)
      else flights.delete(key)
    }
  }

  /** Waits until a caller of the flight is admitted, then for the result. */
  async function board (key: string, flight: Flight<T, Caller>, admit: NonNullable<Options<Caller>['admit']>) {
    flight.waiting++
    await flight.ready
    // An earlier caller began the read. Admission of every caller would cost a third more processor time.
    if (flight.state !== 'WAITING') return flight.result
    const taken = admit(flight.begin).catch(error => {
      // This caller was refused, but the read may have begun by the admission of another caller.
      if (flight.state === 'WAITING') throw error
    }).finally(() => {
      flight.waiting--
      if (flight.state === 'WAITING' && flight.waiting === 0) flights.delete(key)
    })
    return Promise.race([flight.result, taken.then(() => flight.result)])
  }
}
