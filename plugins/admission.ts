import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

import type { Read } from '../lib/database/keyset.ts'
import { HttpError } from '../lib/errors.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import { TimeoutError } from '../lib/timeout.ts'

/** The message of an operation that is refused because too many others wait. */
export const OVERLOADED = 'The service has too much to do at this moment, please try again in a few seconds'

const overloaded = () => new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a read, of much data or not, when it is the turn of the client's network. */
    inTurn<T> (reply: FastifyReply, read: () => Promise<T>, isLong: boolean): Promise<T>
    /** Runs statements that read much data, each in its turn. */
    readInTurn (reply: FastifyReply): Read
  }

  interface FastifyRequest {
    /** The timer of its operation, until its response begins. */
    timer: NodeJS.Timeout | null
  }

  interface FastifyContextConfig {
    /** Seconds that this operation may take beyond DATABASE_TIMEOUT, for what is not asked of the database. */
    extraTime?: number
  }
}

/** Operations in progress for each connection of the pool. The driver pipelines their statements, at half the cost. */
const PER_CONNECTION = 8

/** How often what nobody waits for any more is taken out of the queues, in milliseconds. */
const CHECK_INTERVAL_MS = 100

/**
 * The gate of operations, which are the routes that declare a `failure`. Probes, metrics and docs declare none: they
 * get through an overload.
 *
 * - Operations wait for their turn, in which networks alternate. A cached read only does so to read from the database:
 *   lists are read on a quarter of the pool. When MAX_REQUESTS wait, the network that has the most of them gets a 503.
 * - After DATABASE_TIMEOUT an operation fails with its declared error, however many statements it has. One that still
 *   waits then, or whose client has gone, never begins. Not by Fastify's `handlerTimeout`, whose time begins before the
 *   body is there.
 * - A place is free when the handler has ended, also after a timeout: its statements may still wait in the driver.
 *
 * A stop waits for all that has begun.
 */
export default fp(async app => {
  const { DATABASE_POOL_SIZE, DATABASE_TIMEOUT, MAX_REQUESTS } = app.config
  const createQueue = (concurrency: number) => new FairQueue({ concurrency, places: MAX_REQUESTS, refusal: overloaded })
  const operations = createQueue(PER_CONNECTION * DATABASE_POOL_SIZE)
  const reads = createQueue(Math.ceil(DATABASE_POOL_SIZE / 4))
  /** Those with extra time, which wait for a password's hash or the provider: they hold no connection meanwhile. */
  const longer = createQueue(MAX_REQUESTS)
  let pending = 0
  let onIdle = () => {}
  app.decorateRequest('timer', null)
  app.decorate('inTurn', (reply, read, isLong) => enter(isLong ? reads : operations, reply, read))
  app.decorate('readInTurn', reply => work => enter(reads, reply, () => work(app.sql)))

  const timer = setInterval(() => {
    for (const queue of [operations, reads, longer]) queue.dropUnwanted()
  }, CHECK_INTERVAL_MS).unref()

  app.addHook('onRoute', route => {
    const { failure, cache, extraTime = 0 } = route.config ?? {}
    if (!failure) return
    const queue = extraTime > 0 ? longer : operations
    const seconds = DATABASE_TIMEOUT + extraTime
    const { handler } = route
    route.handler = async function (request, reply) {
      pending++
      request.timer = setTimeout(fail, seconds * 1000, reply, seconds)
      const run = async () => handler.call(this, request, reply)
      if (cache) return run()
      return enter(queue, reply, run).catch(error => {
        // One that never began, or that would tell its client something: it has its response.
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

  // By now each client has its response, or is gone. What this plugin depends on, the database, closes after it.
  app.addHook('onClose', async () => {
    if (pending > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'admission', dependencies: ['database', 'budget'] })

/** What the handler does from now on reaches no client; Fastify logs it. */
function fail (reply: FastifyReply, seconds: number) {
  reply.send(new TimeoutError(seconds))
}

/** Runs work in a queue, unless nobody waits for it by then. */
function enter<T> (queue: FairQueue, reply: FastifyReply, work: () => Promise<T>) {
  const { request: { held }, raw } = reply
  return queue.run(held!.network, work, () => !raw.writableEnded && !raw.destroyed)
}
