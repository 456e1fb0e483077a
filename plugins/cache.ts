import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/revoked-tokens.ts'
import snapshotCache from '../lib/cache/index.ts'
import { RefusedError } from '../lib/errors.ts'
import { guardOf } from './auth.ts'

/**
 * The largest body, as a fraction of MAX_HELD_BYTES. Its operation fails as declared. Without this limit, the budget
 * would close the connections of all clients that want the body.
 */
const LARGEST = 1 / 2

/**
 * Adds `reply.sendCached`. It binds lib/cache to this service: who owns a response, which queue a read waits in, whose
 * bytes count, and which tokens are looked up with the snapshot.
 */
export default fp(async app => {
  const { sql, database: { shortSql }, budget, config } = app
  const largest = LARGEST * config.MAX_HELD_BYTES

  app.addHook('onRoute', route => {
    if (route.config?.cache === 'public' && guardOf(route)) {
      throw new Error(`${route.url} has a guard, so config.cache must be private`)
    }
  })

  await app.register(snapshotCache, {
    sql,
    shortSql,
    maxBytes: config.CACHE_SIZE_MB * 2 ** 20,
    timeoutSeconds: config.DATABASE_TIMEOUT,
    owner: request => request.user.id,
    lookUp: epochsOf,
    admit: (reply, begin, { list }) => list ? app.admitReads(reply)(begin) : app.admit(reply, begin),
    hold (replies, body, bytes) {
      if (body.length > largest) throw new RefusedError('The response exceeds half of MAX_HELD_BYTES')
      for (const { request } of replies) request.held!.shared = body
      budget.add(bytes)
    },
  })
}, { name: 'cache', dependencies: ['database', 'budget', 'admission'] })
