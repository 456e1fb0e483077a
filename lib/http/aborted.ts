import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The status of a request whose client has gone before its response began, as nginx logs it; it is never sent. */
const CLIENT_CLOSED_REQUEST = 499

/**
 * Calls back, with the status, when a connection is gone before its response is sent: Fastify runs `onResponse`, and
 * logs, only for responses that are finished. One that waits behind another of its connection is not reported.
 */
export function onAborted (
  app: FastifyInstance, listener: (request: FastifyRequest, reply: FastifyReply, status: number) => void
) {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply
    raw.on('close', () => {
      if (raw.writableFinished || !request.socket.destroyed) return
      listener(request, reply, raw.headersSent ? raw.statusCode : CLIENT_CLOSED_REQUEST)
    })
    done()
  })
}
