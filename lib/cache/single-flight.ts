import { setImmediate } from 'node:timers/promises'

/** How a read is shared. */
export interface Shared<Caller> {
  /** Those that wait for it. More may join while it runs. */
  readonly callers: Caller[]
  /** The bytes that it has read so far, by its own account. */
  length: number
  /** Set by a read that ends with an error because its callers are gone: from then on none joins. */
  abandoned: boolean
}

/**
 * A read of a key, and the callers that share it. A flight is always in one of these states:
 *
 * - WAITING: the read before it runs, or it is no caller's turn yet. Callers join, each with a turn of its own.
 * - GATHERING: its batch window is open. Callers join; the read begins when they stop coming, or after 1 ms.
 * - READING: the read runs. It may predate a commit that a new caller must see, so that one joins the next flight,
 *   which WAITS. The exception: the caller knows the same version that was known when the read began. Versions change
 *   with every commit, so that read predates none.
 * - SETTLED: its callers have the result, or the error. The next flight is WAITING for a turn, or the key is forgotten.
 */
interface Flight<T, Caller> extends Shared<Caller> {
  state: 'WAITING' | 'GATHERING' | 'READING' | 'SETTLED'
  /** The last version that a caller knew before the read began. */
  version: string | null
  /** Resolves when the read before it is SETTLED. */
  ready: Promise<unknown>
  /** How many callers wait for their turn. */
  waiting: number
  /** Begins the read if it is WAITING. Resolves when it is SETTLED. */
  begin (): Promise<void>
  result: Promise<T>
  next?: Flight<T, Caller> | undefined
}

interface Options<Caller> {
  caller?: Caller
  /** Begins the read when it is the turn of this caller, unless it was that of another before. May refuse. */
  turn?: ((begin: () => Promise<void>) => Promise<void>) | undefined
}

/** How long a flight is GATHERING at most, in milliseconds. */
const BATCH_WINDOW_MS = 1

/**
 * Returns a function by which concurrent callers of a key share reads. A read always begins after the calls that it
 * answers, or has their version (see Flight), and at most one read of a key runs at a time.
 *
 * There is no timeout here: the one of the first caller would fail callers that joined later. A read ends by the
 * timeout of its statements, and each caller has that of its operation.
 */
export function singleFlight<T, Caller = undefined> () {
  type Read = (shared: Shared<Caller>) => Promise<T>
  const flights = new Map<string, Flight<T, Caller>>()

  return function share (
    key: string, read: Read, version: string | null = null, { caller, turn = begin => begin() }: Options<Caller> = {}
  ): Promise<T> {
    const flight = flightFor(key, read, version)
    flight.callers.push(caller!)
    flight.version = version ?? flight.version
    return flight.state === 'WAITING' ? board(key, flight, turn) : flight.result
  }

  /** The flight that a caller with this version may join. */
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
    const flight = { state: 'WAITING', callers: [], length: 0, abandoned: false, version: null, ready, waiting: 0 } as
      unknown as Flight<T, Caller>
    flight.result = new Promise(resolve => {
      flight.begin = async () => {
        if (flight.state !== 'WAITING') return
        const result = gather(flight).then(() => read(flight))
        resolve(result)
        await result.then(settle, settle)
      }
    })
    return flight

    function settle () {
      const { next, callers } = flight
      flight.state = 'SETTLED'
      // Under steady commits each flight has a next one: a chain that V8 would keep, with all callers, once its first
      // flight is in the old generation.
      flight.next = undefined
      callers.length = 0
      if (next) flights.set(key, next)
      else flights.delete(key)
    }
  }

  /** Waits until it is the turn of this caller or of another one, and then for the result. */
  async function board (key: string, flight: Flight<T, Caller>, turn: NonNullable<Options<Caller>['turn']>) {
    flight.waiting++
    await flight.ready
    // Begun by a caller before this one. Beside commits, a turn of each takes a third more of the processor.
    if (flight.state !== 'WAITING') return flight.result
    const taken = turn(flight.begin).catch(error => {
      // Refused. By the turn of another, the read runs nevertheless.
      if (flight.state === 'WAITING') throw error
    }).finally(() => {
      flight.waiting--
      if (flight.state === 'WAITING' && flight.waiting === 0) flights.delete(key)
    })
    return Promise.race([flight.result, taken.then(() => flight.result)])
  }
}

/** Resolves when the read begins: a turn of the event loop has brought no further caller, or the window has closed. */
async function gather (flight: Flight<unknown, unknown>) {
  flight.state = 'GATHERING'
  const end = performance.now() + BATCH_WINDOW_MS
  let callers = 0
  while (flight.callers.length > callers && performance.now() < end) {
    callers = flight.callers.length
    await setImmediate()
  }
  flight.state = 'READING'
}
