import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { HttpError } from '../lib/errors.ts'
import { TimeoutError } from '../lib/timeout.ts'

/** The message of an operation that is refused because too many others are pending. */
export const OVERLOADED = 'The service has too much to do at this moment, please try again in a few seconds'

/** The error of such an operation. */
export const overloaded = () => new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })

declare module 'fastify' {
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
const CHECK_INTERVAL_MS = 100

interface Operation {
  reply: FastifyReply
  /** Its place among the pending ones. */
  index: number
  seconds: number
  /** When it times out, in milliseconds of `performance.now()`. */
  deadline: number
  /** The network of its client, once it is asked for. */
  network?: string
}

/**
 * Limits the pending operations of routes that declare a `failure`, in number and in time. Probes, metrics and docs
 * declare none: they must get through an overload.
 *
 * - Past MAX_REQUESTS an operation is refused at once, before it touches the database, so that the others are done in
 *   time: one of the network that has the most of them. A client that is slow to send its request, or to read its
 *   response, is not counted meanwhile.
 * - After DATABASE_TIMEOUT an operation fails with its declared error, however many statements it has. One timer serves
 *   all operations.
 *
 * A stop waits for all of them.
 */
export default fp(async app => {
  const { MAX_REQUESTS, DATABASE_TIMEOUT } = app.config
  // Not a Map: in one that changes all the time, V8 keeps removed entries until the next full garbage collection, which
  // takes a tenth of the processor time at full load.
  const pending: Operation[] = []
  let onIdle = () => {}
  app.decorateRequest('operation', null)

  const timer = setInterval(() => {
    const now = performance.now()
    for (const { reply, seconds } of pending.filter(({ deadline }) => deadline <= now)) {
      fail(reply, new TimeoutError(seconds))
    }
  }, CHECK_INTERVAL_MS).unref()

  app.addHook('preHandler', (request, reply, done) => {
    const { failure, extraTime = 0 } = request.routeOptions.config
    if (!failure) return done()
    if (pending.length >= MAX_REQUESTS && !makePlace(request)) return done(overloaded())
    const seconds = DATABASE_TIMEOUT + extraTime
    request.operation = { reply, index: pending.length, seconds, deadline: performance.now() + seconds * 1000 }
    pending.push(request.operation)
    done()
  })

  app.addHook('onSend', (request, _reply, _payload, done) => {
    endOperation(request)
    done()
  })

  /** Refuses an operation of the network that has the most, and returns true if that is not the one of the request. */
  function makePlace (request: FastifyRequest) {
    const networks = new Map<string, Operation[]>()
    let most: Operation[] = []
    for (const operation of pending) {
      operation.network ??= operation.reply.request.holding!.network()
      const operations = networks.get(operation.network) ?? []
      networks.set(operation.network, operations)
      operations.push(operation)
      if (operations.length > most.length) most = operations
    }
    const own = networks.get(request.holding!.network())?.length ?? 0
    if (most.length <= own + 1) return false
    fail(most.at(-1)!.reply, overloaded())
    return true
  }

  function fail (reply: FastifyReply, error: Error) {
    endOperation(reply.request)
    reply.send(error)
    // Fastify would log an error when the handler sends or throws too late.
    reply.log = reply.log.child({}, { level: 'silent' })
  }

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

  // By now each client has its response, or is gone. What this plugin depends on, the database, closes after it.
  app.addHook('onClose', async () => {
    if (pending.length > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'pending-operations', dependencies: ['database', 'held-bytes'] })
