import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/ended-tokens.ts'
import snapshotCache from '../lib/cache/index.ts'
import { UnsentBodies } from '../lib/cache/unsent-bodies.ts'
import { HttpError } from '../lib/errors.ts'
import { guardOf } from './auth.ts'
import { OVERLOADED } from './pending-operations.ts'

/** Adds `reply.cached`: responses from memory that are never stale. */
export default fp(async app => {
  const { sql, database: { probe, replicas }, config: { CACHE_SIZE_MB, MAX_UNSENT_BYTES } } = app
  const unsent = new UnsentBodies()
  app.addHook('onClose', async () => unsent.stop())

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
    beforeRead () {
      if (unsent.bytes > MAX_UNSENT_BYTES) throw new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })
    },
    afterSend ({ raw }, chunks) {
      if (chunks.length > 1 || raw.writableLength > 0) unsent.add(raw, chunks)
    },
  })
}, { name: 'cache', dependencies: ['database'] })
