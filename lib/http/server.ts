import { type IncomingMessage, type RequestListener, Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { Config } from '../config.ts'
import { trackResponse } from './client-error.ts'

/** How often connections are checked for their timeouts, in milliseconds: they may exceed them by so much. */
const CHECK_INTERVAL_MS = 1000

/** The longest time in which a client takes nothing of its response, in seconds. */
const STALLED_SECONDS = 120

/**
 * The requests of a connection that may wait for their responses: each begins at once. Clients that people use send one
 * after the other.
 */
const PIPELINED = 16

interface Connection {
  /** The bytes that it has taken of its responses, and when that last changed. */
  taken: number
  since: number
  /** How many of its requests are not answered. */
  requests: number
}

/** Creates the HTTP server. It closes connections of clients that send slowly, do not read, or do nothing. */
export function createHttpServer (config: Config, listener: RequestListener) {
  return new HttpServer(config, listener)
}

class HttpServer extends Server {
  readonly #connections = new Map<Socket, Connection>()
  readonly #stalledMs: number

  constructor ({ REQUEST_TIMEOUT, IDLE_TIMEOUT }: Config, listener: RequestListener) {
    super({
      headersTimeout: REQUEST_TIMEOUT * 1000,
      requestTimeout: REQUEST_TIMEOUT * 1000,
      keepAliveTimeout: IDLE_TIMEOUT * 1000,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // plugins/host-header.ts requires it: Node's own response would have no body.
      requireHostHeader: false,
    }, (request, response) => {
      if (this.#isTaken(request, response)) listener(request, response)
    })
    this.#stalledMs = Math.min(IDLE_TIMEOUT, STALLED_SECONDS) * 1000
    // Other expectations than 100-continue may be ignored (RFC 9110, § 10.1.1); Node would send a 417 that is not JSON.
    this.on('checkExpectation', (request, response) => this.emit('request', request, response))
    this.on('connection', (socket: Socket) => {
      this.#connections.set(socket, { taken: 0, since: performance.now(), requests: 0 })
      socket.once('close', () => this.#connections.delete(socket))
    })
    const timer = setInterval(() => {
      this.#closeStalled()
      if (!this.listening) this.closeIdleConnections()
    }, CHECK_INTERVAL_MS).unref()
    this.once('close', () => clearInterval(timer))
  }

  /** Counts a request; returns false, and closes its connection, when that has too many. */
  #isTaken (request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    // Node has parsed what came in the same packet.
    if (socket.destroyed) return false
    trackResponse(request, response)
    const connection = this.#connections.get(socket)!
    connection.requests++
    response.once('close', () => connection.requests--)
    if (connection.requests > PIPELINED) socket.destroy()
    return !socket.destroyed
  }

  /**
   * Closes connections without a request. Node's own method leaves those that never had one, which browsers open ahead
   * of time, and closes one whose response is not sent yet. So while any response is being sent, used ones stay.
   */
  override closeIdleConnections () {
    const sockets = [...this.#connections.keys()]
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    if (sockets.every(socket => socket.writableLength === 0)) super.closeIdleConnections()
  }

  /**
   * Closes connections that take no whole chunk of a response for too long. A trickle of bytes is no progress, unlike
   * for the `timeout` of Node's server. One timer serves all connections.
   */
  #closeStalled () {
    const now = performance.now()
    for (const [socket, connection] of this.#connections) {
      // A chunk counts as taken when the last byte of it is.
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken !== connection.taken) Object.assign(connection, { taken, since: now })
      else if (now - connection.since > this.#stalledMs) socket.destroy()
    }
  }
}
