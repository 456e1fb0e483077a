import { setImmediate } from 'node:timers/promises'

/** A read that runs, or is about to. */
interface Flight<T> {
  begun: boolean
  /** How many callers share it. */
  callers: number
  /** The last version that a caller knew before the read began. */
  version: string | null
  result: Promise<T>
  /** Resolves when the read has settled, either way. */
  settled: Promise<void>
  /** The read that follows, once somebody waits for it. */
  next?: Flight<T>
}

/** How long a read waits at most for more callers to share it, in milliseconds. */
const BATCH_WINDOW = 1

/**
 * Calls with the same key that arrive within 1 ms share one read; it starts sooner when a turn of the event loop brings
 * no further call. A later call never joins a running read, which may predate a commit; it shares the next one. The
 * exception: a call with the same `version` that was known when the running read began. Versions change with every
 * commit, so that read predates none.
 *
 * At most one read of a key runs at a time. There is no timeout here: the one of the first caller would fail callers
 * that joined later. A read ends by the timeout of its statements, and each caller has that of its operation.
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
    if (!current.begun) return join(current, version)
    if (version !== null && current.version === version) return current.result
    if (current.next) return join(current.next, version)

    const next = current.next = createFlight<T>(version)
    next.result = current.settled.then(() => takeOff(key, next, read))
    return next.result
  }

  /** Begins the read of a flight after its batch window. */
  function takeOff (key: string, flight: Flight<T>, read: () => Promise<T>) {
    flights.set(key, flight)
    const result = batch(flight).then(read)
    flight.settled = result.then(settle, settle)
    return result

    function settle () {
      if (!flight.next) flights.delete(key)
    }
  }
}

function createFlight<T> (version: string | null) {
  return { begun: false, callers: 1, version } as Flight<T>
}

function join<T> (flight: Flight<T>, version: string | null) {
  flight.callers++
  flight.version = version ?? flight.version
  return flight.result
}

/** Marks a read as begun when no more callers join it. */
async function batch (flight: Flight<unknown>) {
  const end = performance.now() + BATCH_WINDOW
  let callers = 0
  while (flight.callers > callers && performance.now() < end) {
    callers = flight.callers
    await setImmediate()
  }
  flight.begun = true
}
