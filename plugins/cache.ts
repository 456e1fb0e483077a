import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/ended-tokens.ts'
import snapshotCache, { type Chunks } from '../lib/cache/index.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import type { SharedBytes } from '../lib/http/byte-account.ts'
import { guardOf } from './auth.ts'
import { overloaded } from './pending-operations.ts'

/** Adds `reply.cached`: responses from memory that are never stale. */
export default fp(async app => {
  const { sql, database: { probe, replicas }, heldBytes, config } = app
  const { CACHE_SIZE_MB, DATABASE_POOL_SIZE, DATABASE_TIMEOUT, MAX_REQUESTS } = config
  /** By its callers while a body is read, by its chunks then: the bytes that responses share. */
  const bodies = new WeakMap<object, SharedBytes>()

  // Networks take turns to read lists, which take long, on a quarter of the pool. Other statements do not wait for a
  // turn: the driver pipelines them, at half the cost.
  const lists = new FairQueue({
    concurrency: Math.ceil(DATABASE_POOL_SIZE / 4),
    places: MAX_REQUESTS,
    maxWait: DATABASE_TIMEOUT * 1000,
    refusal: overloaded,
  })

  app.addHook('onRoute', route => {
    if (route.config?.cache === 'public' && guardOf(route)) {
      throw new Error(`${route.url} has a guard, so its responses are not public`)
    }
  })

  await app.register(snapshotCache, {
    sql,
    probe,
    replicas,
    maxBytes: CACHE_SIZE_MB * 2 ** 20,
    owner: request => request.user.id,
    lookUp: epochsOf,
    turn: ({ request }, begin) => lists.run(request.holding!.network(), begin),
    onRead (callers, bytes) {
      const body = bodyOf(callers, 0)
      for (const { request } of callers) heldBytes.share(request.holding!, body)
      heldBytes.grow(body, bytes)
    },
    beforeSend ({ request }, chunks) {
      heldBytes.share(request.holding!, bodyOf(chunks, lengthOf(chunks)))
    },
  })

  function bodyOf (key: object, bytes: number) {
    let body = bodies.get(key)
    if (!body) bodies.set(key, body = { bytes, holders: 0 })
    return body
  }
}, { name: 'cache', dependencies: ['database', 'held-bytes'] })

const lengthOf = (chunks: Chunks) => chunks.reduce((sum, { length }) => sum + length, 0)
