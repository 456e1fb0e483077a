import { Socket } from 'node:net'

/** Time after which the driver closes an unused connection. */
export const IDLE_TIMEOUT_SECONDS = 60

/** Number of checks within the tolerated silence. */
const CHECKS = 10

/** The argument that the driver passes to its option `socket`. */
interface Address {
  host: string[]
  port: number[]
  path: string | false
}

/**
 * The connections of the service to PostgreSQL. If the network drops packets, the kernel closes a connection only after
 * 15 minutes. Therefore, this class closes silent connections: soon after an operation or readiness check has timed
 * out, or else after a minute. Their statements then fail.
 */
export class Connections {
  /** Number of connections closed because PostgreSQL was silent. */
  silent = 0
  /** Number of connections closed because a statement ran in the transaction of a different caller. */
  stray = 0
  /** The number of bytes that each connection has read, and when it last changed, in milliseconds. */
  readonly #read = new Map<Socket, { bytes: number, since: number }>()
  readonly #silenceMs: number
  #suspectUntil = 0
  #timer: NodeJS.Timeout | undefined

  /** `silenceSeconds` must be longer than a statement may take. */
  constructor (silenceSeconds: number) {
    this.#silenceMs = silenceSeconds * 1000
  }

  /** Number of connections that are open or opening. */
  get open () {
    return [...this.#read.keys()].filter(({ destroyed }) => !destroyed).length
  }

  /** Opens a socket: the option `socket` of postgres.js. */
  readonly connect = ({ host: [host], port: [port], path }: Address) => {
    // The driver reads host and port from the socket when it starts TLS or describes an error.
    const socket = Object.assign(new Socket(), { host, port })
    this.#read.set(socket, { bytes: 0, since: performance.now() })
    this.#timer ??= setInterval(() => this.#check(), this.#silenceMs / CHECKS).unref()
    return path ? socket.connect(path) : socket.connect(port!, host!)
  }

  /** Call after a timeout. For a while, connections that are silent for longer than a statement may take are closed. */
  suspect () {
    this.#suspectUntil = performance.now() + 2 * this.#silenceMs
  }

  // Compares counters, because TLS removes the listeners of the socket.
  #check () {
    const now = performance.now()
    const limit = this.#silenceMs + (now < this.#suspectUntil ? 0 : IDLE_TIMEOUT_SECONDS * 1000)
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
