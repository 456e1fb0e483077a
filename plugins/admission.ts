import { setTimeout as sleep } from 'node:timers/promises'

import fp from 'fastify-plugin'

import { createPasswordQueue } from '../lib/auth/passwords.ts'
import { PER_CONNECTION } from '../lib/database/pools.ts'
import { retryConflict } from '../lib/database/conflicts.ts'
import { FairQueue } from '../lib/http/fair-queue.ts'
import { HttpError, overloaded } from '../lib/http/errors.ts'
import { pathOf } from '../lib/http/logger.ts'
import { tooManyUploads } from '../lib/pictures/refusals.ts'
import { TimeoutError, withTimeout } from '../lib/config/timeout.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The queues of work, by what the work waits for. */
    queues: Record<'operations' | 'lists' | 'streams' | 'outside' | 'passwords' | 'provider' | 'pictures', FairQueue>
  }

  interface FastifyContextConfig {
    /** Seconds that this operation may take in addition to DATABASE_TIMEOUT, for work outside the database. */
    extraSeconds?: number
    /**
     * Seconds that this operation may also wait in the queue of pictures. A stop ends this wait. The operation admits
     * its statements by itself (plugins/pictures.ts), so it holds no place of the database during the wait.
     */
    waitSeconds?: number
    /** The operation runs a transaction, which holds a connection of its own. */
    transaction?: true
    /** `reads`: the handler only reads, and admits each read by itself. Routes with `cache` do so without this. */
    admission?: 'reads'
  }
}

/**
 * Delay of the response to a refusal, because clients that retry at once would use more processor time than the work:
 * during a flood of 120 clients, sign-ins of others took 152 to 333 ms without the delay, and 84 to 183 ms with it.
 */
const REFUSAL_DELAY_MS = 100

/**
 * Number of codes that are exchanged at once. Alongside 100 clients with 16 pipelined callbacks each, half of the
 * requests of others took 0.4 to 0.7 seconds without this limit.
 */
const EXCHANGES = 32

/** Log message of an error after the timeout. */
const FAILED_LATE = 'The operation failed after its timeout'

/** Interval at which the queues drop operations whose clients have gone, and notice that networks have left. */
const CHECK_INTERVAL_MS = 100

/**
 * Admission of operations, which are the routes that declare a `failure`. Without it, 6,000 sign-ins that waited for a
 * provider that did not answer ended a process with 256 MB of memory. Probes, metrics and docs bypass it, so that they
 * work during an overload.
 *
 * - Operations wait in a queue that is fair by network. When MAX_REQUESTS operations wait, the network with the most of
 *   them gets a 503.
 * - A transaction holds a connection, so it takes as many places as a connection has.
 * - An operation that holds a place of the database, in the queue of operations or lists, never waits for a different
 *   queue. So handlers that read lists hold no place: they admit each of their reads, as cached reads do. A hit reads
 *   nothing, and does not wait.
 * - After DATABASE_TIMEOUT and the additional seconds of its route, an operation fails with its declared error. If it
 *   still waits then, or if its client has gone, it never runs. Fastify's `handlerTimeout` is not suitable, because it
 *   begins before the body has arrived.
 * - An operation counts as running until its handler has ended, even after a timeout, because its statements may still
 *   wait in the driver. An `onRoute` hook wraps the handler, because a `preHandler` cannot see its end.
 * - A handler runs a second time after a deadlock or a serialization failure, if its client still waits. Statements
 *   that it committed before are not undone, so statements that belong together are one statement or one transaction.
 *
 * A stop waits until every operation has responded.
 */
export default fp(async app => {
  const { DATABASE_POOL_SIZE, DATABASE_TIMEOUT, MAX_REQUESTS } = app.config
  const createQueue = (concurrency: number, createError = overloaded) =>
    new FairQueue({ concurrency, maxLength: MAX_REQUESTS, createError })
  /** Without a queue, the driver would run statements in their order, so a flood would delay all networks. */
  const operations = createQueue(PER_CONNECTION * DATABASE_POOL_SIZE)
  /** Without a queue of their own, lists that read for seconds would take the connections of short operations. */
  const lists = createQueue(Math.ceil(DATABASE_POOL_SIZE / 4))
  /** Time of reads for streams, see lib/live/live-lists.ts. While others are there, a network has one of two places. */
  const streams = createQueue(2)
  /**
   * Operations with `extraSeconds`: they also wait for a password, the identity provider or a pause. In the queue of
   * operations, they would hold places of the database while they wait. Only their transactions take places there.
   */
  const outside = createQueue(MAX_REQUESTS)
  /** Sign-ins that exchange a code at the identity provider, which may answer all of them at once. */
  const provider = createQueue(EXCHANGES)
  /**
   * Uploads of pictures. Each runs whole in its turn, because a conversion may need more memory than everything else in
   * the process. Its statements wait for a place of operations, whose holders never wait for this queue.
   */
  const pictures = createQueue(1, tooManyUploads)
  /** Number of operations until their handlers end, or have timed out. */
  let pending = 0
  let onIdle = () => {}
  const queues = { operations, lists, streams, outside, passwords: createPasswordQueue(), provider, pictures }
  app.decorate('queues', queues)

  // An operation whose client has gone would otherwise keep its body, and there is no connection to close. While
  // the database did not answer, 750 bodies of 1 MB ended a process with 512 MB of memory.
  const timer = setInterval(() => {
    for (const queue of Object.values(queues)) queue.check()
  }, CHECK_INTERVAL_MS).unref()

  app.addHook('onRoute', route => {
    const { failure, cache, admission, transaction, extraSeconds = 0, waitSeconds = 0 } = route.config ?? {}
    if (!failure) return
    const admitsItself = cache !== undefined || admission === 'reads' || waitSeconds > 0
    const queue = extraSeconds > 0 ? outside : operations
    const places = transaction ? PER_CONNECTION : 1
    const seconds = DATABASE_TIMEOUT + extraSeconds + waitSeconds
    const { handler } = route
    route.handler = async function (request, reply) {
      const run = () => retryConflict(async () => handler.call(this, request, reply), () => request.isWanted())
      const work = admitsItself ? run() : queue.run(request, run, places)
      pending++
      try {
        return await withTimeout(work, seconds)
      } catch (error) {
        if (error instanceof HttpError && error.statusCode === 503) await sleep(REFUSAL_DELAY_MS)
        if (error instanceof TimeoutError) {
          // A refusal after the timeout is not an error.
          work.catch(err => {
            if (err !== error && !(err instanceof HttpError)) request.log.error({ err }, FAILED_LATE)
          })
        }
        // A client may take longer to read a response that has begun.
        if (!(error instanceof TimeoutError && reply.raw.headersSent)) {
          // An operation that still waits in a queue never begins, even while its error waits for the rest of the body.
          request.response = null
          // If the handler still sends a response, Fastify logs the URL. Its query may contain the code of a sign-in.
          request.raw.url = pathOf(request.url)
          throw error
        }
      } finally {
        pending--
        if (pending === 0) onIdle()
      }
    }
  })

  // Connections are closed, but operations whose clients have gone may still run. The database closes after them, at
  // the latest after their timeouts.
  app.addHook('onClose', async () => {
    if (pending > 0) await new Promise<void>(resolve => { onIdle = resolve })
    clearInterval(timer)
  })
}, { name: 'admission', dependencies: ['database', 'network'] })
