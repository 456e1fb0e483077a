import { Readable } from 'node:stream'

import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/revoked-tokens.ts'
import snapshotCache from '../lib/cache/index.ts'
import { maxBodyBytes } from '../lib/config/config.ts'
import { readLongList } from '../lib/database/long-lists.ts'
import { RefusedError } from '../lib/http/errors.ts'

/**
 * Share of the largest response that running reads may hold together. Beyond it, long ones are read one after the
 * other: six members with 49 MB of drafts each, who read their posts at once, ended a process of 256 MB.
 */
const READING = 1 / 4

/**
 * Adds `reply.sendCached`. It binds lib/cache to this service: the owner of a response, which queue a read waits in,
 * and which tokens are looked up with the snapshot.
 */
export default fp(async app => {
  const { sql, database: { shortSql }, config, queues } = app
  await app.register(snapshotCache, {
    sql,
    shortSql,
    maxBytes: config.CACHE_SIZE_MB * 2 ** 20,
    timeoutSeconds: config.DATABASE_TIMEOUT,
    owner: request => request.user.id,
    lookUp: epochsOf,
    queues,
    clientOf: reply => reply.request,
    maxReading: READING * maxBodyBytes(config),
    assertSize (bytes) {
      if (bytes > maxBodyBytes(config)) throw new RefusedError('The response exceeds half of MAX_HELD_BYTES')
    },
    // Anybody can make the lists of admins long: with 98 MB of drafts, or 6,000 names of 16 KB.
    async readLong (error, createQuery, request) {
      // Before the query, because refusals during an overload must cost little.
      if (!(error instanceof RefusedError)) throw error
      const query = createQuery()
      if (!query.list?.keys) throw error
      request.hold(0)
      if (request.method === 'HEAD') return Readable.from([])
      const pieces = await readLongList(read => queues.lists.run(request, () => read(sql)), query)
      return pieces && Readable.from(pieces, { objectMode: false })
    },
  })
}, { name: 'cache', dependencies: ['database', 'admission'] })
