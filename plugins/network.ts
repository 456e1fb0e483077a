import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

import fp from 'fastify-plugin'

import { clientNetwork } from '../lib/http/client-network.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The network of the client, see `clientNetwork`. */
    network: string
    /** The response that the client waits for; null after its operation has failed. */
    response: ServerResponse | null
    /** Tells whether the client waits for the response: its connection is open, and the response has not ended. */
    isWanted (): boolean
    /** Sets how many bytes the process holds for the response, so that lib/http/memory.ts can weigh its connection. */
    hold (bytes: number): void
  }
}

/**
 * Gives each request the fields of a `Client` (lib/http/fair-queue.ts), and tells its connection the network.
 */
export default fp(async app => {
  app.decorateRequest('network', '')
  app.decorateRequest('response', null)
  // With a function for each request, requests lived until V8 had promoted them, and a hit took 12 % longer.
  app.decorateRequest('isWanted', function () {
    return this.response !== null && !this.response.writableEnded && !this.socket.destroyed
  })
  app.decorateRequest('hold', function (bytes) {
    if (this.response !== null) app.connections.bytesFor.set(this.response, bytes)
  })
  app.addHook('onRequest', (request, { raw }, done) => {
    const connection = app.connections.get(request.socket)
    if (connection && !connection.isShared) {
      request.network = connection.network
    } else {
      // It takes 2 to 8 µs. A request of `inject` has no connection.
      request.network = clientNetwork(request.ip)
      if (connection) connection.network = request.network
    }
    request.response = raw
    done()
  })
  // When a connection closes, lib/http/http-server.ts destroys each response that waits behind another one. A stream
  // that is sent later would stay open: 134 clients that left opened 600 files for good. A handler may also send its
  // response after the error of its timeout. Fastify would append it while the error waits for the rest of the body.
  app.addHook('onSend', (_request, { raw }, payload, done) => {
    if (!raw.destroyed && !raw.headersSent) return done()
    if (payload instanceof Readable) payload.destroy()
    if (!raw.headersSent) done(null, '')
  })
}, { name: 'network' })
