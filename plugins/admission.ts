import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

import { retryConflict } from '../lib/database/conflicts.ts'
import type { Read } from '../lib/database/keyset.ts'
import { HttpError } from '../lib/errors.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import { TimeoutError } from '../lib/timeout.ts'

/** Error message if the queue of operations is full. */
export const OVERLOADED = 'The service is overloaded, please try again in a few seconds'

const overloaded = () => new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a short read after admission. */
    admit<T> (reply: FastifyReply, read: () => Promise<T>): Promise<T>
    /** Returns a function that runs statements that read much data, each after admission in a separate queue. */
    admitReads (reply: FastifyReply): Read
  }

  interface FastifyRequest {
    /** The timeout of the operation, until its response begins. */
    timer: NodeJS.Timeout | null
  }

  interface FastifyContextConfig {
    /** Seconds that this operation may take in addition to DATABASE_TIMEOUT, for work outside the database. */
    extraSeconds?: number
    /**
     * Seconds that this operation may also wait in a queue of its own, until a stop. Its handler admits its statements
     * by `admit`, so that it holds no place meanwhile.
     */
    waitSeconds?: number
  }
}

/** Parallel operations per connection of the pool. The driver pipelines their statements, which halves their cost. */
const PER_CONNECTION = 8

/** Interval at which the queues drop operations whose clients have gone. */
const CHECK_INTERVAL_MS = 100

/**
 * Admission of operations, which are the routes that declare a `failure`. Probes, metrics and docs bypass it, so that
 * they work during an overload.
 *
 * - Operations wait in a queue that is fair by network. When MAX_REQUESTS operations wait, the network with the most of
 *   them gets a 503.
 * - Cached reads wait only if they have to read from the database. Lists use a quarter of the pool.
 * - After DATABASE_TIMEOUT, an operation fails with its declared error. If it is still waiting then, or if its client
 *   has gone, it never runs. Fastify's `handlerTimeout` is not suitable, because it begins before the body has arrived.
 * - An operation counts as running until its handler has ended, even after a timeout, because its statements may still
 *   wait in the driver. An `onRoute` hook wraps the handler, because a `preHandler` cannot see its end.
 * - A handler runs a second time after a deadlock or a serialization failure. What its other statements have written is
 *   then committed, so statements that belong together are one statement or one transaction.
 *
 * A stop waits until every operation has responded.
 */
export default fp(async app => {
  const { DATABASE_POOL_SIZE, DATABASE_TIMEOUT, MAX_REQUESTS } = app.config
  const createQueue = (concurrency: number) =>
    new FairQueue({ concurrency, maxLength: MAX_REQUESTS, createError: overloaded })
  const operations = createQueue(PER_CONNECTION * DATABASE_POOL_SIZE)
  const reads = createQueue(Math.ceil(DATABASE_POOL_SIZE / 4))
  /**
   * Operations with extra time, which wait for a password hash or the identity provider without a database connection.
   */
  const longer = createQueue(MAX_REQUESTS)
  let pending = 0
  let onIdle = () => {}
  app.decorateRequest('timer', null)
  app.decorate('admit', (reply, read) => enter(operations, reply, read))
  app.decorate('admitReads', reply => work => enter(reads, reply, () => work(app.sql)))

  const timer = setInterval(() => {
    for (const queue of [operations, reads, longer]) queue.dropUnwanted()
  }, CHECK_INTERVAL_MS).unref()

  app.addHook('onRoute', route => {
    const { failure, cache, extraSeconds = 0, waitSeconds = 0 } = route.config ?? {}
    if (!failure) return
    const queue = extraSeconds > 0 ? longer : operations
    const seconds = DATABASE_TIMEOUT + extraSeconds + waitSeconds
    const { handler } = route
    route.handler = async function (request, reply) {
      pending++
      request.timer = setTimeout(fail, seconds * 1000, reply, seconds)
      const run = () => retryConflict(async () => handler.call(this, request, reply))
      if (cache || waitSeconds) return run()
      return enter(queue, reply, run).catch(error => {
        // After a timeout, the client already has a response, so a refusal is ignored.
        if (!(reply.sent && error instanceof HttpError)) throw error
      })
    }
  })

  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (request.timer) {
      clearTimeout(request.timer)
      request.timer = null
      pending--
      if (pending === 0) onIdle()
    }
    done()
  })

  // All clients have their responses or have gone. The database closes later, because this plugin depends on it.
  app.addHook('onClose', async () => {
    if (pending > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'admission', dependencies: ['database', 'network'] })

/** Sends the failure. Fastify logs later results of the handler. */
function fail (reply: FastifyReply, seconds: number) {
  reply.send(new TimeoutError(seconds))
}

/** Runs work in a queue, unless its client has gone by then. */
function enter<T> (queue: FairQueue, reply: FastifyReply, work: () => Promise<T>) {
  const { request, raw } = reply
  return queue.run(request, work, () => !raw.writableEnded && !raw.destroyed)
}
