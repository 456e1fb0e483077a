import fp from 'fastify-plugin'

import type { Read } from '../lib/database/batches.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import { overloaded } from './pending-operations.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a read of much data, such as a list or a batch, when it is the turn of the client's network. */
    inTurn<T> (request: FastifyRequest, read: () => Promise<T>): Promise<T>
    /** Runs reads on `app.sql`, each in its turn. */
    readInTurn (request: FastifyRequest): Read
  }
}

/**
 * Lets networks take turns with reads of much data, on a quarter of the pool. Other statements do not wait for a
 * turn: the driver pipelines them, at half the cost.
 */
export default fp(async app => {
  const { DATABASE_POOL_SIZE, DATABASE_TIMEOUT, MAX_REQUESTS } = app.config
  const queue = new FairQueue({
    concurrency: Math.ceil(DATABASE_POOL_SIZE / 4),
    places: MAX_REQUESTS,
    maxWaitMs: DATABASE_TIMEOUT * 1000,
    refusal: overloaded,
  })
  app.decorate('inTurn', (request, read) => queue.run(request.holding!.network(), read))
  app.decorate('readInTurn', request => work => app.inTurn(request, () => work(app.sql)))
}, { name: 'long-reads', dependencies: ['database', 'held-bytes'] })
