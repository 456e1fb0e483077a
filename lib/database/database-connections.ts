import { Socket } from 'node:net'

/**
 * Time after which the driver closes an unused connection. Otherwise, a firewall may drop it unnoticed, and the next
 * statement would wait until its timeout.
 */
export const IDLE_TIMEOUT_SECONDS = 60

/** Number of checks within the tolerated silence. With a single check, a wait could be twice as long. */
const CHECKS = 10

/** The argument that the driver passes to its option `socket`. */
interface Address {
  host: string[]
  port: number[]
  path: string | false
}

/** The bytes that a connection has read and written, and when it was last heard of. Times are in milliseconds. */
interface State {
  opened: number
  read: number
  written: number
  /** Whether bytes were written since the last ones that were read. */
  isAsked: boolean
  /** Time of the last bytes read, or of the first bytes written after them. */
  since: number
}

/**
 * The connections of the service to PostgreSQL. If the network drops packets, the kernel closes a connection only after
 * 15 minutes. Therefore, this class closes a connection if PostgreSQL does not respond for longer than a statement may
 * take. The statements of this connection then fail.
 *
 * A connection that waits for a response looks idle if its statement was written right after the previous response.
 * Therefore, this class also closes connections that look idle, but a minute later. After an operation or a readiness
 * check has timed out, it closes them as early as all others.
 */
export class DatabaseConnections {
  /** Number of connections closed because PostgreSQL was silent. */
  silent = 0
  /** Number of connections closed because a statement ran in the transaction of a different caller. */
  stray = 0
  readonly #states = new Map<Socket, State>()
  readonly #silenceMs: number
  readonly #connectMs: number
  #suspectUntil = 0

  /**
   * `silenceSeconds` must be longer than a statement may take. After `connectSeconds`, the driver closes a connection
   * that does not open.
   */
  constructor (silenceSeconds: number, connectSeconds = 0) {
    this.#silenceMs = silenceSeconds * 1000
    this.#connectMs = connectSeconds * 1000
    // After a pause of the process, timers run before the bytes are read that have arrived.
    setInterval(() => setImmediate(() => this.#check()), this.#silenceMs / CHECKS).unref()
  }

  /** Number of connections that are open or opening. */
  get open () {
    return [...this.#states.keys()].filter(({ destroyed }) => !destroyed).length
  }

  /** Opens a socket: the option `socket` of postgres.js. */
  readonly connect = ({ host: [host], port: [port], path }: Address) => {
    // The driver reads host and port from the socket when it starts TLS or describes an error.
    const socket = Object.assign(new Socket(), { host, port })
    const now = performance.now()
    this.#states.set(socket, { opened: now, read: 0, written: 0, isAsked: false, since: now })
    return path ? socket.connect(path) : socket.connect(port!, host!)
  }

  /** Call after a timeout. For a while, connections that look idle are closed as early as all others. */
  suspect () {
    this.#suspectUntil = performance.now() + 2 * this.#silenceMs
  }

  // Compares counters, because TLS removes the listeners of the socket.
  #check () {
    const now = performance.now()
    const idleMs = this.#silenceMs + (now < this.#suspectUntil ? 0 : IDLE_TIMEOUT_SECONDS * 1000)
    for (const [socket, state] of this.#states) {
      const { bytesRead: read, bytesWritten: written } = socket
      const isAnswered = read !== state.read
      const isOpening = now - state.opened < this.#connectMs
      if (socket.destroyed) this.#states.delete(socket)
      else if (isAnswered || (!state.isAsked && written !== state.written)) {
        Object.assign(state, { read, written, isAsked: !isAnswered, since: now })
      } else if (!isOpening && now - state.since > (state.isAsked ? this.#silenceMs : idleMs)) {
        this.silent++
        socket.destroy()
      }
    }
  }
}
