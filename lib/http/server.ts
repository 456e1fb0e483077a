import { type IncomingMessage, type RequestListener, Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { Config } from '../config.ts'
import { trackResponse } from './client-error.ts'

/** Interval of checks for timeouts. Connections may exceed a timeout by this time. */
const CHECK_INTERVAL_MS = 1000

/** Longest time without progress in receiving a response. */
const STALLED_SECONDS = 120

/**
 * Maximum number of pipelined requests per connection, because all of them run at once. Ordinary clients do not
 * pipeline.
 */
const PIPELINED = 16

interface Connection {
  /** Number of response bytes that the kernel has accepted, and when it last changed. */
  taken: number
  since: number
  /** Number of requests without a finished response. */
  requests: number
}

/** Creates the HTTP server. It closes connections of clients that send slowly, do not read, or are idle. */
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
      // plugins/host-header.ts checks it instead, because Node's response would have an empty body.
      requireHostHeader: false,
    }, (request, response) => {
      if (this.#isTaken(request, response)) listener(request, response)
    })
    this.#stalledMs = Math.min(IDLE_TIMEOUT, STALLED_SECONDS) * 1000
    // Unknown expectations may be ignored (RFC 9110, § 10.1.1). Node would send a 417 that is not JSON.
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

  /** Counts a request. If its connection has too many, closes the connection and returns false. */
  #isTaken (request: IncomingMessage, response: ServerResponse) {
    const { socket } = request
    // Node may already have parsed further requests in the same packet.
    if (socket.destroyed) return false
    trackResponse(request, response)
    const connection = this.#connections.get(socket)!
    connection.requests++
    response.once('close', () => connection.requests--)
    if (connection.requests > PIPELINED) socket.destroy()
    return !socket.destroyed
  }

  /**
   * Closes idle connections. Unlike Node's method, it also closes unused connections, which browsers open in advance.
   * Node's method would close connections whose response is still being sent, so used connections stay open during that
   * time.
   */
  override closeIdleConnections () {
    const sockets = [...this.#connections.keys()]
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    if (sockets.every(socket => socket.writableLength === 0)) super.closeIdleConnections()
  }

  /**
   * Closes connections that do not receive a whole chunk of a response in time. Single bytes do not count as progress,
   * unlike for the `timeout` of Node's server. One timer serves all connections.
   */
  #closeStalled () {
    const now = performance.now()
    for (const [socket, connection] of this.#connections) {
      // A chunk counts when the kernel has accepted its last byte.
      const taken = socket.bytesWritten - socket.writableLength
      if (socket.writableLength === 0 || taken !== connection.taken) Object.assign(connection, { taken, since: now })
      else if (now - connection.since > this.#stalledMs) socket.destroy()
    }
  }
}
