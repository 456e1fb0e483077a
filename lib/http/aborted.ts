import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Status that nginx logs if the client has gone before the response began. It is never sent. */
const CLIENT_CLOSED_REQUEST = 499

/**
 * Calls `listener` if a connection closes before its response is sent, because Fastify runs `onResponse` and logs only
 * for finished responses. A pipelined response that waits for an earlier response is not reported.
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
