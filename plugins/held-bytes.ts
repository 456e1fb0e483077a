import { Readable } from 'node:stream'

import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { ByteAccount, type Holding } from '../lib/http/byte-account.ts'
import { clientNetwork } from '../lib/http/client-network.ts'
import { overloaded } from './pending-operations.ts'

declare module 'fastify' {
  interface FastifyInstance {
    heldBytes: ByteAccount
  }

  interface FastifyRequest {
    /** The bytes that this request holds. */
    holding: Holding | null
  }
}

/**
 * Counts the bytes that each request holds, cached or not, from its first header until the kernel has taken its
 * response, and closes the connections that hold the most past MAX_HELD_BYTES. An operation gets a 503 only while
 * handlers of connections that are gone hold a quarter more than that.
 */
export default fp(async app => {
  const { MAX_HELD_BYTES, MAX_BODY_BYTES } = app.config
  const account = new ByteAccount(MAX_HELD_BYTES)
  /**
   * Bytes that a streamed response holds: a batch that ends with a long row, as text and in the buffers of streams. At
   * most an eighth of all, so that some are sent however the two variables are set.
   */
  const stream = Math.min(4 * MAX_BODY_BYTES, MAX_HELD_BYTES / 8)
  app.decorate('heldBytes', account)
  app.decorateRequest('holding', null)

  app.addHook('onRequest', (request, { raw }, done) => {
    const holding = request.holding = account.begin(request.socket, () => clientNetwork(request.ip))
    // Not by a hook `onResponse`: Fastify would not log the error of a response any more.
    raw.on('finish', () => account.release(holding))
    const length = announcedLength(request)
    if (length > 0) account.hold(holding, length)
    done()
  })

  // After CORS, whose headers let an app read the response.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    done(account.isFull && request.routeOptions.config.failure ? overloaded() : null)
  })

  app.addHook('preValidation', ({ holding }, _reply, done) => {
    account.start(holding!)
    done()
  })

  app.addHook('onSend', ({ holding }, _reply, payload, done) => {
    // Bodies from the cache are shared. When a read had no row, the handler sends one of its own.
    if (!holding!.shared?.bytes) account.hold(holding!, lengthOf(payload))
    account.settle(holding!)
    done()
  })

  function lengthOf (payload: unknown) {
    if (typeof payload === 'string' || payload instanceof Buffer) return Buffer.byteLength(payload)
    return payload instanceof Readable ? stream : 0
  }
}, { name: 'held-bytes' })

/** The bytes of a body as its headers announce it, and no more than are read; in chunks, as many as may be read. */
function announcedLength (request: FastifyRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding !== undefined) return request.routeOptions.bodyLimit
  return length === undefined ? 0 : Math.min(Number(length), request.routeOptions.bodyLimit)
}
