import { maxHeaderSize } from 'node:http'
import { Readable } from 'node:stream'

import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { Budget, type Held, sizeOfHeaders } from '../lib/http/budget.ts'
import { clientNetwork, isProxyOf } from '../lib/http/client-network.ts'
import { MAX_HEADERS } from '../lib/http/server.ts'

declare module 'fastify' {
  interface FastifyInstance {
    budget: Budget
  }

  interface FastifyContextConfig {
    /** Bytes that a response of this route holds, if it is a stream that stays open. */
    openStreamBytes?: number
  }

  interface FastifyRequest {
    /** The bytes that this request holds. */
    held: Held | null
  }
}

/** Interval of counts. Node parses headers of at most about 20 MB in this time. */
const COUNT_INTERVAL_MS = 250

/**
 * Counts the bytes that each connection holds, and each request from its first byte until the kernel has accepted its
 * response. Beyond MAX_HELD_BYTES, closes the connections that hold the most.
 */
export default fp(async app => {
  const { MAX_HELD_BYTES, MAX_BODY_BYTES } = app.config
  const budget = new Budget(MAX_HELD_BYTES, { count: MAX_HEADERS, bytes: maxHeaderSize })
  const isProxy = isProxyOf(app.config)
  /**
   * Bytes that a streamed response holds: a batch that ends with a long row, as text and in the buffers of streams. At
   * most an eighth of the limit, so that several responses can be streamed with any configuration.
   */
  const stream = Math.min(4 * MAX_BODY_BYTES, MAX_HELD_BYTES / 8)
  app.decorate('budget', budget)
  app.decorateRequest('held', null)

  app.server.on('connection', socket => {
    const { remoteAddress = '', remotePort } = socket
    // A connection of a proxy carries requests of different clients, so it begins as a network of its own.
    const network = isProxy(remoteAddress, 0) ? `${remoteAddress}:${remotePort}` : clientNetwork(remoteAddress)
    budget.open(socket, { network })
  })
  const timer = setInterval(() => budget.enforce(), COUNT_INTERVAL_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  app.addHook('onRequest', (request, { raw }, done) => {
    const { socket } = request
    const held = request.held = budget.begin(socket, request)
    raw.once('close', () => budget.end(socket, held))
    budget.hold(held, sizeOfHeaders(request.raw.rawHeaders) + announcedLength(request))
    done()
  })

  app.addHook('onSend', ({ held, routeOptions }, _reply, payload, done) => {
    budget.answer(held!, lengthOf(payload, routeOptions.config.openStreamBytes))
    done()
  })

  function lengthOf (payload: unknown, streamBytes = stream) {
    if (typeof payload === 'string' || payload instanceof Buffer) return Buffer.byteLength(payload)
    return payload instanceof Readable ? streamBytes : 0
  }
}, { name: 'budget', dependencies: ['network'] })

/** Returns the announced length of a body, at most `bodyLimit`. A chunked body counts as `bodyLimit`. */
function announcedLength (request: FastifyRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined) return request.routeOptions.bodyLimit
  return length === undefined ? 0 : Math.min(Number(length), request.routeOptions.bodyLimit)
}
