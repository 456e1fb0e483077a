import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/ended-tokens.ts'
import snapshotCache, { lengthOf } from '../lib/cache/index.ts'
import type { SharedBytes } from '../lib/http/byte-account.ts'
import { guardOf } from './auth.ts'

/** Adds `reply.cached`: responses from memory that are never stale. */
export default fp(async app => {
  const { sql, database: { probe }, heldBytes, config } = app
  /** By its callers while a body is read, by its chunks then: the bytes that responses share. */
  const bodies = new WeakMap<object, SharedBytes>()

  app.addHook('onRoute', route => {
    if (route.config?.cache === 'public' && guardOf(route)) {
      throw new Error(`${route.url} has a guard, so its responses are not public`)
    }
  })

  await app.register(snapshotCache, {
    sql,
    probe,
    maxBytes: config.CACHE_SIZE_MB * 2 ** 20,
    owner: request => request.user.id,
    lookUp: epochsOf,
    turn: ({ request }, begin) => app.inTurn(request, begin),
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
}, { name: 'cache', dependencies: ['database', 'held-bytes', 'long-reads'] })
