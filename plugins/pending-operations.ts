import type { TObject } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { TimeoutError } from '../lib/timeout.ts'
import { HttpError } from '../lib/errors.ts'
import { either, Message, PlainText, RetryAfter } from '../lib/schemas.ts'

/** The message of an operation that is refused because too many others are pending. */
export const OVERLOADED = 'The service has too much to do at this moment, please try again in a few seconds'

declare module 'fastify' {
  interface FastifyInstance {
    /** Limits the operations of this scope, and adds the 503 of an overload to their schemas. */
    limitOperations (scope: FastifyInstance): void
    /** Marks an operation as done: what remains is to send its response. */
    endOperation (request: FastifyRequest): void
  }

  interface FastifyRequest {
    /** Its operation while that is pending. */
    operation: Operation | null
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
  /** Its place among the pending ones. */
  index: number
  seconds: number
  /** When it times out, in milliseconds of `performance.now()`. */
  deadline: number
}

/**
 * Limits pending operations, in number and in time:
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
  // Not a Map: V8 keeps what was in one that changes all the time until the next full garbage collection, which takes
  // a tenth of the processor time at full load.
  const pending: Operation[] = []
  let onIdle = () => {}
  app.decorateRequest('operation', null)

  const timer = setInterval(() => {
    const now = performance.now()
    for (const { reply, seconds } of pending.filter(({ deadline }) => deadline <= now)) {
      endOperation(reply.request)
      reply.send(new TimeoutError(seconds))
    }
  }, CHECK_INTERVAL).unref()

  app.decorate('limitOperations', scope => scope.addHook('onRoute', route => {
    const { extraTime = 0, plainTextErrors } = route.config ?? {}
    const responses = { ...route.schema?.response as Record<number, TObject> }
    const overloaded = plainTextErrors ? PlainText(OVERLOADED) : either(Message(OVERLOADED), responses[503])
    route.schema = { ...route.schema, response: { ...responses, 503: { ...overloaded, headers: RetryAfter } } }
    const seconds = DATABASE_TIMEOUT + extraTime
    route.preHandler = [begin, ...[route.preHandler ?? []].flat()]
    route.onSend = [end, ...[route.onSend ?? []].flat()]

    function begin (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) {
      if (pending.length >= MAX_REQUESTS) return done(new HttpError(503, OVERLOADED, {}, { 'retry-after': 2 }))
      const deadline = performance.now() + seconds * 1000
      request.operation = { reply, index: pending.length, seconds, deadline }
      pending.push(request.operation)
      done()
    }
  }))

  app.decorate('endOperation', endOperation)

  function endOperation (request: FastifyRequest) {
    if (!request.operation) return
    const { index } = request.operation
    request.operation = null
    const last = pending.pop()!
    // The last one takes the place that is free.
    if (index < pending.length) {
      last.index = index
      pending[index] = last
    }
    if (pending.length === 0) onIdle()
  }

  function end (request: FastifyRequest, _reply: FastifyReply, _payload: unknown, done: () => void) {
    endOperation(request)
    done()
  }

  // By now each client has its response, or is gone. What this plugin depends on, the database, closes after it.
  app.addHook('onClose', async () => {
    if (pending.length > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'pending-operations', dependencies: ['database'] })
