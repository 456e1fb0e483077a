import { setImmediate } from 'node:timers/promises'

/** How a read is shared. */
export interface Shared<Caller> {
  /** Those that wait for it. More may join while it runs. */
  readonly callers: Caller[]
  /** Set by a read that ends with an error because its callers are gone: from then on none joins. */
  abandoned: boolean
}

/**
 * A read of a key, and the callers that share it. A flight is always in one of these states:
 *
 * - WAITING: the read before it runs, or it is not its turn. Callers join.
 * - GATHERING: its batch window is open. Callers join; the read begins when they stop coming, or after 1 ms.
 * - READING: the read runs. It may predate a commit that a new caller must see, so that one joins the next flight,
 *   which WAITS. The exception: the caller knows the same version that was known when the read began. Versions change
 *   with every commit, so that read predates none.
 * - SETTLED: its callers have the result, or the error. The next flight is GATHERING, or the key is forgotten.
 */
interface Flight<T, Caller> extends Shared<Caller> {
  state: 'WAITING' | 'GATHERING' | 'READING' | 'SETTLED'
  /** The last version that a caller knew before the read began. */
  version: string | null
  result: Promise<T>
  /** Resolves when the flight is SETTLED. */
  settled: Promise<void>
  next?: Flight<T, Caller>
}

interface Options<T, Caller> {
  caller?: Caller
  /** Begins the read when it is its turn. */
  turn?: ((begin: () => Promise<T>) => Promise<T>) | undefined
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
export function singleFlight<T, Caller = undefined> () {
  type Read = (shared: Shared<Caller>) => Promise<T>
  const flights = new Map<string, Flight<T, Caller>>()

  return function share (
    key: string, read: Read, version: string | null = null, { caller, turn }: Options<T, Caller> = {}
  ): Promise<T> {
    const current = flights.get(key)
    if (!current) {
      const flight = createFlight<T, Caller>(caller!, version)
      flight.result = takeOff(key, flight, read, turn)
      return flight.result
    }
    if (current.state === 'WAITING' || current.state === 'GATHERING') return join(current, caller!, version)
    if (version !== null && current.version === version && !current.abandoned) return join(current, caller!, version)
    if (current.next) return join(current.next, caller!, version)

    const next = current.next = createFlight<T, Caller>(caller!, version)
    next.result = current.settled.then(() => takeOff(key, next, read, turn))
    return next.result
  }

  function takeOff (key: string, flight: Flight<T, Caller>, read: Read, turn: Options<T, Caller>['turn']) {
    flights.set(key, flight)
    const begin = () => gather(flight).then(() => read(flight))
    const result = turn ? turn(begin) : begin()
    flight.settled = result.then(settle, settle)
    return result

    function settle () {
      flight.state = 'SETTLED'
      if (!flight.next) flights.delete(key)
    }
  }
}

function createFlight<T, Caller> (caller: Caller, version: string | null) {
  return { state: 'WAITING', callers: [caller], abandoned: false, version } as unknown as Flight<T, Caller>
}

function join<T, Caller> (flight: Flight<T, Caller>, caller: Caller, version: string | null) {
  flight.callers.push(caller)
  flight.version = version ?? flight.version
  return flight.result
}

/** Resolves when the read begins: a turn of the event loop has brought no further caller, or the window has closed. */
async function gather (flight: Flight<unknown, unknown>) {
  flight.state = 'GATHERING'
  const end = performance.now() + BATCH_WINDOW
  let callers = 0
  while (flight.callers.length > callers && performance.now() < end) {
    callers = flight.callers.length
    await setImmediate()
  }
  flight.state = 'READING'
}
