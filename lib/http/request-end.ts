import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Status that nginx logs if the client has gone before the response began. It is never sent. */
const CLIENT_CLOSED_REQUEST = 499

/**
 * Calls `listener` once when a request ends: when its response is sent, or when its connection closes first. Fastify's
 * `onResponse` runs for sent responses only, and with such a hook Fastify would no longer log errors of responses. If
 * the connection closes while a response waits for an earlier one, that request is not reported.
 */
export function onEnd (
  app: FastifyInstance,
  listener: (request: FastifyRequest, reply: FastifyReply, status: number, isSent: boolean) => void
) {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply
    raw.once('finish', () => listener(request, reply, raw.statusCode, true))
    raw.once('close', () => {
      if (raw.writableFinished || !request.socket.destroyed) return
      listener(request, reply, raw.headersSent ? raw.statusCode : CLIENT_CLOSED_REQUEST, false)
    })
    done()
  })
}
