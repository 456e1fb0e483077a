import fp from 'fastify-plugin'

import { HttpError } from '../lib/http-error.ts'

/** What an operation answers when too many others are being worked on. */
export const OVERLOADED = 'The service has too much to do at this moment, please try again in a few seconds'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether an operation is at work on it. */
    isRunning: boolean
  }
}

/**
 * Refuses operations past MAX_REQUESTS at a time, at once and before they touch the database: the others are then done
 * in time. A client that is slow to send its request, or to take its answer, is not counted meanwhile. A stop waits for
 * all of them.
 */
export default fp(async app => {
  let running = 0
  let onIdle = () => {}
  app.decorateRequest('isRunning', false)

  app.addHook('preHandler', (request, _reply, done) => {
    // Probes must get through.
    if (!request.routeOptions.config.failure) return done()
    if (running >= app.config.MAX_REQUESTS) return done(new HttpError(503, OVERLOADED, {}, { 'retry-after': 2 }))
    request.isRunning = true
    running++
    done()
  })

  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (request.isRunning && --running === 0) onIdle()
    request.isRunning = false
    done()
  })

  // By now each client has its answer, or is gone. What this plugin depends on, the database, closes after it.
  app.addHook('onClose', async () => {
    if (running > 0) await new Promise<void>(resolve => { onIdle = resolve })
  })
}, { name: 'overload', dependencies: ['database'] })
