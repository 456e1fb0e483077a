import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { DeadlineError } from '../lib/deadline.ts'
import { HttpError } from '../lib/http-error.ts'

/** The message of an operation that is refused because too many others are pending. */
export const OVERLOADED = 'The service has too much to do at this moment, please try again in a few seconds'

declare module 'fastify' {
  interface FastifyInstance {
    /** Marks an operation as done: what remains is to send its response. */
    endOperation (request: FastifyRequest): void
  }

  interface FastifyContextConfig {
    /** Seconds that this operation may take beyond DATABASE_TIMEOUT, for what is not asked of the database. */
    extraTime?: number
  }
}

/** How often the pending operations are looked at, in milliseconds: a timeout may be late by so much. */
const CHECK_INTERVAL = 100

interface Operation {
  reply: FastifyReply
  seconds: number
  /** When it times out, in milliseconds of `performance.now()`. */
  deadline: number
}

/**
 * Bounds the pending operations, in number and in time:
 *
 * - Past MAX_REQUESTS an operation is refused at once, before it touches the database, so that the others are done in
 *   time. A client that is slow to send its request, or to read its response, is not counted meanwhile.
 * - After DATABASE_TIMEOUT an operation fails with its declared error, however many statements it has. One timer serves
 *   all operations.
 *
 * A stop waits for all of them.
 */
export default fp(async app => {
  const { MAX_REQUESTS, DATABASE_TIMEOUT } = app.config
  const pending = new Map<FastifyRequest, Operation>()
  let onIdle = () => {}

  const timer = setInterval(() => {
    const now = performance.now()
    for (const [request, { reply, seconds, deadline }] of pending) {
      if (deadline > now) continue
      pending.delete(request)
      reply.send(new DeadlineError(seconds))
    }
  }, CHECK_INTERVAL).unref()

  app.addHook('onRoute', route => {
    const { failure, extraTime = 0 } = route.config ?? {}
    // Probes and metrics must get through.
    if (!failure) return
    const seconds = DATABASE_TIMEOUT + extraTime
    route.preHandler = [begin, ...[route.preHandler ?? []].flat()]
    route.onSend = [end, ...[route.onSend ?? []].flat()]

    function begin (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) {
      if (pending.size >= MAX_REQUESTS) return done(new HttpError(503, OVERLOADED, {}, { 'retry-after': 2 }))
      pending.set(request, { reply, seconds, deadline: performance.now() + seconds * 1000 })
      done()
    }
  })

  app.decorate('endOperation', endOperation)

  function endOperation (request: FastifyRequest) {
    pending.delete(request)
    if (pending.size === 0) onIdle()
  }

  function end (request: FastifyRequest, _reply: FastifyReply, _payload: unknown, done: () => void) {
    endOperation(request)
    done()
  }

  // By now each client has its response, or is gone. What this plugin depends on, the database, closes after it.
  app.addHook('onClose', async () => {
    if (pending.size > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'pending-operations', dependencies: ['database'] })
