import { Socket } from 'node:net'

/** Seconds after which the driver closes a connection that nothing uses. */
export const IDLE_TIMEOUT = 60

/** How often connections are looked at while a server may be silent. */
const LOOKS = 10

/** What the driver passes to its option `socket`. */
interface Address {
  host: string[]
  port: number[]
  path: string | false
}

/**
 * The connections of the service to PostgreSQL. Where the network drops packets, the kernel would wait for a quarter of
 * an hour until a connection ends. So a connection on which nothing arrives is closed: soon after an operation or a
 * readiness check has timed out, else after a minute. Then the statements on it fail.
 */
export class Connections {
  /** Connections that were closed because PostgreSQL was silent. */
  silent = 0
  /** Connections that were closed because a statement ran in the transaction of another caller. */
  stray = 0
  /** The bytes that each connection has read, and the time when that was seen first, in milliseconds. */
  readonly #read = new Map<Socket, { bytes: number, since: number }>()
  readonly #silenceMs: number
  #suspectUntil = 0
  #timer: NodeJS.Timeout | undefined

  /** `silence` is longer than a statement may take, in seconds. */
  constructor (silence: number) {
    this.#silenceMs = silence * 1000
  }

  /** The connections that are open, or being opened. */
  get open () {
    return [...this.#read.keys()].filter(({ destroyed }) => !destroyed).length
  }

  /** Opens a socket: the option `socket` of postgres.js. */
  readonly connect = ({ host: [host], port: [port], path }: Address) => {
    // The driver asks the socket for them when it begins TLS, or describes an error.
    const socket = Object.assign(new Socket(), { host, port })
    this.#read.set(socket, { bytes: 0, since: performance.now() })
    this.#timer ??= setInterval(() => this.#look(), this.#silenceMs / LOOKS).unref()
    return path ? socket.connect(path) : socket.connect(port!, host!)
  }

  /** Something has timed out: for a while, connections are closed that have been silent for longer than a statement. */
  suspect () {
    this.#suspectUntil = performance.now() + 2 * this.#silenceMs
  }

  // Counters rather than events: TLS takes over the handle of the socket, and removes its listeners.
  #look () {
    const now = performance.now()
    const limit = this.#silenceMs + (now < this.#suspectUntil ? 0 : IDLE_TIMEOUT * 1000)
    for (const [socket, { bytes, since }] of this.#read) {
      if (socket.destroyed) this.#read.delete(socket)
      else if (socket.bytesRead !== bytes) this.#read.set(socket, { bytes: socket.bytesRead, since: now })
      else if (now - since > limit) {
        this.silent++
        socket.destroy()
      }
    }
    if (this.#read.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
