import { Readable } from 'node:stream'

import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { Budget, type Held } from '../lib/http/budget.ts'
import { clientNetwork } from '../lib/http/client-network.ts'

declare module 'fastify' {
  interface FastifyInstance {
    budget: Budget
  }

  interface FastifyRequest {
    /** What this request holds, in bytes. */
    held: Held | null
  }
}

/**
 * Counts the bytes that each request holds, cached or not, from its headers until the kernel has taken its response,
 * and closes the connections that hold the most past MAX_HELD_BYTES.
 */
export default fp(async app => {
  const { MAX_HELD_BYTES, MAX_BODY_BYTES } = app.config
  const budget = new Budget(MAX_HELD_BYTES)
  /**
   * Bytes that a streamed response holds: a batch that ends with a long row, as text and in the buffers of streams. At
   * most an eighth of all, so that some are sent however the two variables are set.
   */
  const stream = Math.min(4 * MAX_BODY_BYTES, MAX_HELD_BYTES / 8)
  app.decorate('budget', budget)
  app.decorateRequest('held', null)

  app.addHook('onRequest', (request, { raw }, done) => {
    const { socket } = request
    let network: string | undefined
    const held = request.held = budget.begin(socket, () => (network ??= clientNetwork(request.ip)))
    raw.once('close', () => budget.end(socket, held))
    hold(held, announcedLength(request))
    done()
  })

  app.addHook('onSend', ({ held }, _reply, payload, done) => {
    // Bodies from the cache are shared. When a read had no row, the handler sends one of its own.
    if (!held!.shared?.length) hold(held!, lengthOf(payload))
    done()
  })

  function hold (held: Held, bytes: number) {
    held.own += bytes
    budget.grow(bytes)
  }

  function lengthOf (payload: unknown) {
    if (typeof payload === 'string' || payload instanceof Buffer) return Buffer.byteLength(payload)
    return payload instanceof Readable ? stream : 0
  }
}, { name: 'budget' })

/** The bytes of a body as its headers announce it, and no more than are read; in chunks, as many as may be read. */
function announcedLength (request: FastifyRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined) return request.routeOptions.bodyLimit
  return length === undefined ? 0 : Math.min(Number(length), request.routeOptions.bodyLimit)
}
