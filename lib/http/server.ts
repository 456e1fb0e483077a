import { createServer, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'

import type { Config } from '../config.ts'
import { trackResponse } from './framework-errors.ts'
import { limitPipelining } from './pipelining.ts'

/** How often connections are checked for their timeouts, in milliseconds: they may exceed them by so much. */
const CHECK_INTERVAL_MS = 1000

/** The bytes that a connection has taken of its responses, and when that last changed. */
interface Taken {
  bytes: number
  since: number
}

/** Creates the HTTP server. It closes connections of clients that send slowly, do not read, or do nothing. */
export function createHttpServer (config: Config, listener: RequestListener) {
  const { MAX_HEADER_BYTES, REQUEST_TIMEOUT, IDLE_TIMEOUT } = config
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: REQUEST_TIMEOUT * 1000,
    requestTimeout: REQUEST_TIMEOUT * 1000,
    keepAliveTimeout: IDLE_TIMEOUT * 1000,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    // plugins/host-header.ts requires it: Node's own response would have no body.
    requireHostHeader: false,
  }, limitPipelining(listener))
  // Other expectations than 100-continue may be ignored (RFC 9110, § 10.1.1); Node would send a 417 that is not JSON.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('request', trackResponse)

  const connections = new Map<Socket, Taken>()
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { bytes: 0, since: 0 })
    socket.once('close', () => connections.delete(socket))
  })
  const timer = setInterval(() => {
    closeStalled(connections, IDLE_TIMEOUT * 1000)
    if (!server.listening) closeUnused(connections)
  }, CHECK_INTERVAL_MS).unref()
  server.once('close', () => clearInterval(timer))
  return server
}

/**
 * Closes connections that take no whole chunk of a response within `timeout` milliseconds. A trickle of bytes is no
 * progress, unlike for the `timeout` of Node's server. One timer serves all connections.
 */
function closeStalled (connections: Map<Socket, Taken>, timeout: number) {
  const now = performance.now()
  for (const [socket, taken] of connections) {
    // A chunk counts as taken when the last byte of it is.
    const bytes = socket.bytesWritten - socket.writableLength
    if (socket.writableLength === 0 || bytes !== taken.bytes) Object.assign(taken, { bytes, since: now })
    else if (now - taken.since > timeout) socket.destroy()
  }
}

/**
 * Closes connections without a request. Browsers open such ahead of time, and neither Node nor Fastify counts them as
 * idle: one of them would hold up a stop until all connections are closed (25 seconds).
 */
function closeUnused (connections: Map<Socket, Taken>) {
  for (const socket of connections.keys()) if (socket.bytesRead === 0) socket.destroy()
}
