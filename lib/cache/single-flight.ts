import { setImmediate } from 'node:timers/promises'

/**
 * A read of a key, and the callers that share it. A flight is always in one of these states:
 *
 * - WAITING: the read before it runs. Callers join.
 * - GATHERING: its batch window is open. Callers join; the read begins when they stop coming, or after 1 ms.
 * - READING: the read runs. It may predate a commit that a new caller must see, so that one joins the next flight,
 *   which WAITS. The exception: the caller knows the same version that was known when the read began. Versions change
 *   with every commit, so that read predates none.
 * - SETTLED: its callers have the result, or the error. The next flight is GATHERING, or the key is forgotten.
 */
interface Flight<T> {
  state: 'WAITING' | 'GATHERING' | 'READING' | 'SETTLED'
  /** How many callers share it. */
  callers: number
  /** The last version that a caller knew before the read began. */
  version: string | null
  result: Promise<T>
  /** Resolves when the flight is SETTLED. */
  settled: Promise<void>
  next?: Flight<T>
}

/** How long a flight is GATHERING at most, in milliseconds. */
const BATCH_WINDOW = 1

/**
 * Returns a function by which concurrent callers of a key share reads. A read always begins after the calls that it
 * answers, or has their version (see Flight), and at most one read of a key runs at a time.
 *
 * There is no timeout here: the one of the first caller would fail callers that joined later. A read ends by the
 * timeout of its statements, and each caller has that of its operation.
 */
export function singleFlight<T> () {
  const flights = new Map<string, Flight<T>>()

  return function share (key: string, read: () => Promise<T>, version: string | null = null): Promise<T> {
    const current = flights.get(key)
    if (!current) {
      const flight = createFlight<T>(version)
      flight.result = takeOff(key, flight, read)
      return flight.result
    }
    if (current.state === 'GATHERING') return join(current, version)
    if (version !== null && current.version === version) return current.result
    if (current.next) return join(current.next, version)

    const next = current.next = createFlight<T>(version)
    next.result = current.settled.then(() => takeOff(key, next, read))
    return next.result
  }

  function takeOff (key: string, flight: Flight<T>, read: () => Promise<T>) {
    flights.set(key, flight)
    const result = gather(flight).then(read)
    flight.settled = result.then(settle, settle)
    return result

    function settle () {
      flight.state = 'SETTLED'
      if (!flight.next) flights.delete(key)
    }
  }
}

function createFlight<T> (version: string | null) {
  return { state: 'WAITING', callers: 1, version } as Flight<T>
}

function join<T> (flight: Flight<T>, version: string | null) {
  flight.callers++
  flight.version = version ?? flight.version
  return flight.result
}

/** Resolves when the read begins: a turn of the event loop has brought no further caller, or the window has closed. */
async function gather (flight: Flight<unknown>) {
  flight.state = 'GATHERING'
  const end = performance.now() + BATCH_WINDOW
  let callers = 0
  while (flight.callers > callers && performance.now() < end) {
    callers = flight.callers
    await setImmediate()
  }
  flight.state = 'READING'
}
