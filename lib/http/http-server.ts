import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'

import type { Config } from '../config/config.ts'
import { inBatches, type Turn } from './in-batches.ts'
import { sendClientError } from './client-error.ts'
import { clientNetwork, isProxyOf } from './client-network.ts'
import type { Connection, Connections } from './connections.ts'
import { closeTinyChunks } from './join-chunks.ts'

/**
 * Interval at which Node closes connections with slow requests, so a request may exceed its timeout by this time. With
 * an interval of 1000 ms, Node would close so many connections of an attacker at once that others wait 60 to 130 ms.
 */
const CHECK_INTERVAL_MS = 250

/**
 * Longest time without progress in receiving a response. With `IDLE_TIMEOUT` alone, a client that reads nothing would
 * keep its response in memory for ten minutes.
 */
const STALLED_SECONDS = 120

/** Maximum number of pipelined requests per connection, because all of them run at once. Browsers do not pipeline. */
const PIPELINED = 16

/**
 * A request whose URL and headers are longer closes its connection if more requests than this wait for a response,
 * including itself. Alongside 400 connections, each with 16 requests for streams with tokens of 14 KB, requests of
 * others failed in two of eight runs.
 */
const LARGE = { pipelined: 4, length: 4096 }

/**
 * Maximum number of headers of a request, like Apache's. Browsers and proxies together send about 40. With Node's
 * maximum of 2,000, headers of 16 KB could take 220 KB of memory.
 */
const MAX_HEADERS = 100

/** An idle connection that kept its last request held up to 35 KB. */
function forget (connection: Connection, response: ServerResponse) {
  if (connection.last === response) connection.last = undefined
}

const lengthOf = ({ url, rawHeaders }: IncomingMessage) => [url, ...rawHeaders].join('').length

/**
 * Creates the HTTP server, which keeps this table of connections. It closes connections of clients that send slowly, do
 * not read, or are idle. With its defaults, Node would wait five minutes for a slow request, and without end for a
 * client that reads nothing.
 */
export function createHttpServer (config: Config, connections: Connections, listener: RequestListener) {
  const { HEADERS_TIMEOUT, REQUEST_TIMEOUT, IDLE_TIMEOUT } = config
  const isProxy = isProxyOf(config)
  const closing: Turn = { count: 0 }
  const server = createServer({
    headersTimeout: Math.min(HEADERS_TIMEOUT, REQUEST_TIMEOUT) * 1000,
    requestTimeout: REQUEST_TIMEOUT * 1000,
    keepAliveTimeout: IDLE_TIMEOUT * 1000,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    // plugins/request-headers.ts checks it instead, because Node's response would have an empty body.
    requireHostHeader: false,
  }, (request, response) => {
    const { socket } = request
    const connection = connections.count(socket)
    const { responses } = connection
    // The client sends requests after the last response of its connection, such as the 431 below or a 408.
    if (socket.writableEnded) socket.destroy()
    if (!socket.destroyed && request.rawHeaders.length > 2 * MAX_HEADERS) {
      sendClientError({ code: 'HPE_HEADER_OVERFLOW', rawPacket: `${request.method} ` }, socket, connection.last)
      // Otherwise, the chunks of its body stay in a list until the connection has closed.
      closeTinyChunks(request, connections)
      return
    }
    responses.add(response)
    if (responses.size > PIPELINED || (responses.size > LARGE.pipelined && lengthOf(request) > LARGE.length)) {
      connections.closeFlood(socket)
    }
    if (socket.destroyed) {
      // One of up to 590 requests that were read at once. Without this, parsing 10,000 chunks of them takes 11 ms.
      request.destroy()
      return
    }
    connection.last = response
    response.once('close', () => {
      responses.delete(response)
      // Until its end, the rest of a refused upload must not get a second response.
      if (request.complete) forget(connection, response)
      else request.once('end', () => forget(connection, response))
      if (responses.size === 0) connection.bytesRead = socket.bytesRead
      if (!server.listening) server.closeIdleConnections()
    })
    listener(request, response)
  })
  server.on('checkContinue', (request, response) => {
    // A response without a socket waits for an earlier one. Node would send `100 Continue` in the middle of that one.
    if (response.socket) response.writeContinue()
    server.emit('request', request, response)
  })
  // Unknown expectations may be ignored (RFC 9110, § 10.1.1). Node would send a 417 that is not JSON.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connection', socket => {
    const { remoteAddress = '', remotePort } = socket
    // A connection of a proxy carries requests of different clients, so it begins as a network of its own.
    const isShared = isProxy(remoteAddress, 0)
    const network = isShared ? `${remoteAddress}:${remotePort}` : clientNetwork(remoteAddress)
    const { responses } = connections.add(socket, network, isShared)
    // Node reports the close to the first response only. The others would never end: 1,874 streams stayed open.
    socket.once('close', () => {
      inBatches(responses, response => { if (!response.closed) response.destroy().emit('close') }, closing)
    })
  })
  // Node would leave out later headers. A request with one more than the maximum is refused instead.
  server.maxHeadersCount = MAX_HEADERS + 1

  server.timeout = Math.min(IDLE_TIMEOUT, STALLED_SECONDS) * 1000
  server.on('timeout', socket => {
    // A client may also be silent because it waits for its response.
    if (socket.writableLength > 0 || connections.get(socket)!.responses.size === 0) socket.destroy()
  })

  const closeIdleConnections = server.closeIdleConnections.bind(server)
  // Node's method would keep unused connections of browsers open, and cut responses that are still being sent.
  server.closeIdleConnections = () => {
    const sockets = [...connections.keys()].filter(({ destroyed }) => !destroyed)
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    if (sockets.every(socket => socket.writableLength === 0)) closeIdleConnections()
  }
  return server
}
