import fp from 'fastify-plugin'

import { databaseTime } from '../lib/database-time.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it arrived, and how long the database took for it, in milliseconds; null in production. */
    timing: { start: number, database: { total: number } } | null
  }
}

/**
 * Names each request to whoever sent it, by the id under which the log has it, and tells outside production how long it
 * took. Both are set last: a response that is repeated to others has neither.
 */
export default fp(async app => {
  const isTimed = app.config.NODE_ENV !== 'production'
  app.decorateRequest('timing', null)

  if (isTimed) {
    app.addHook('onRequest', (request, _reply, done) => {
      request.timing = { start: performance.now(), database: { total: 0 } }
      done()
    })
    // After the body has arrived: reading it would lose track.
    app.addHook('preHandler', (request, _reply, done) => databaseTime.run(request.timing!.database, done))
  }

  app.addHook('onSend', (request, reply, _payload, done) => {
    reply.header('x-request-id', request.id)
    if (request.timing) {
      const { start, database } = request.timing
      const total = performance.now() - start
      reply.header('server-timing', `db;dur=${database.total.toFixed(1)}, total;dur=${total.toFixed(1)}`)
    }
    done()
  })
}, { name: 'tracing' })
