import type { FastifyInstance, FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

import { epochsOf } from '../lib/auth/revoked-tokens.ts'
import snapshotCache, { type Caller, type SharedRead } from '../lib/cache/index.ts'
import { type Config, maxBodyBytes } from '../lib/config.ts'
import { RefusedError } from '../lib/http/errors.ts'

/** Throws a RefusedError if a body exceeds `maxBodyBytes`. */
export function assertSize ({ length }: { readonly length: number }, config: Config) {
  if (length > maxBodyBytes(config)) throw new RefusedError('The response exceeds half of MAX_HELD_BYTES')
}

/** A reply that reads through the cache, in the queues of admission. */
class LimitedCaller implements Caller {
  readonly #app: FastifyInstance
  readonly #reply: FastifyReply

  constructor (app: FastifyInstance, reply: FastifyReply) {
    this.#app = app
    this.#reply = reply
  }

  isWanted () { return this.#reply.isWanted() }

  admit<T> (read: SharedRead<T>) {
    return this.#queueOf(read).runShared(this.#reply.request, read)
  }

  join (read: SharedRead<unknown>) {
    this.#queueOf(read).join(this.#reply.request, read)
  }

  hold (body: { readonly length: number }) {
    assertSize(body, this.#app.config)
  }

  #queueOf ({ isList }: SharedRead<unknown>) {
    return isList ? this.#app.queues.lists : this.#app.queues.operations
  }
}

/**
 * Adds `reply.sendCached`. It binds lib/cache to this service: who owns a response, which queue a read waits in, and
 * which tokens are looked up with the snapshot.
 */
export default fp(async app => {
  const { sql, database: { shortSql }, config } = app
  await app.register(snapshotCache, {
    sql,
    shortSql,
    maxBytes: config.CACHE_SIZE_MB * 2 ** 20,
    timeoutSeconds: config.DATABASE_TIMEOUT,
    owner: request => request.user.id,
    lookUp: epochsOf,
    callerOf: reply => new LimitedCaller(app, reply),
  })
}, { name: 'cache', dependencies: ['database', 'admission'] })
