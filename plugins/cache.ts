import { Readable } from 'node:stream'

import { Negotiator } from '@fastify/accept-negotiator'
import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'
import fresh from 'fresh'
import { LRUCache } from 'lru-cache'

import { type CachedBody, type Chunks, type Encoding, ENCODINGS, lengthOf } from '../lib/cache/cached-body.ts'
import { type CacheCounts, type CachedQuery, createSnapshotCache } from '../lib/cache/snapshot-cache.ts'
import { UnsentBodies } from '../lib/cache/unsent-bodies.ts'
import type { Sql } from '../lib/database/client.ts'
import { HttpError } from '../lib/errors.ts'
import { guardOf } from './auth.ts'
import { OVERLOADED } from './pending-operations.ts'

declare module 'fastify' {
  interface FastifyInstance {
    cache: { counts: CacheCounts, bytes (): number }
    /**
     * Runs statements that only read: on a replica that has all that was acknowledged before the call, or on the
     * primary. They may be run again. What follows a write belongs on `app.sql`.
     */
    read<T> (work: (sql: Sql) => Promise<T>): Promise<T>
  }

  interface FastifyReply {
    /**
     * Sends what the query gives now, mostly from memory (see lib/cache/snapshot-cache.ts). Resolves to false, with
     * nothing sent, when the query has no row. The function must be the same one for every request.
     */
    cached<Body extends object, Args extends unknown[]> (
      query: (sql: Sql, ...args: Args) => CachedQuery<Body>, ...args: Args
    ): Promise<boolean>
  }

  interface FastifyContextConfig {
    /**
     * Who shares what `reply.cached` sends: everybody, with an entity tag and content codings; or nobody else. Private
     * responses get neither, so that their length discloses nothing (BREACH).
     */
    cache?: 'public' | 'private'
    /** `Cache-Control` of a success; `no-store` unless given. */
    cacheControl?: string
  }
}

/** Shorter bodies fit into a packet as they are; in bytes. */
const MIN_COMPRESSED = 1024

/** How many different `Accept-Encoding` headers are cached with their negotiated encoding. */
const ACCEPTED = 100

/** Sends responses from the snapshot cache. */
export default fp(async app => {
  const { CACHE_SIZE_MB, MAX_UNSENT_BYTES } = app.config
  const cache = createSnapshotCache(app.sql, app.sqlProbe, CACHE_SIZE_MB * 2 ** 20, app.replicas)
  const negotiator = new Negotiator({ supportedValues: ENCODINGS, cache: new LRUCache({ max: ACCEPTED }) })
  const unsent = new UnsentBodies()
  const queryIds = new WeakMap<object, number>()
  let lastId = 0
  app.decorate('cache', cache)
  app.decorate('read', cache.readFresh)
  app.addHook('onClose', async () => unsent.stop())

  app.addHook('onRoute', route => {
    if (route.config?.cache === 'public' && guardOf(route)) {
      throw new Error(`${route.url} has a guard, so its responses are not public`)
    }
  })

  app.decorateReply('cached', async function (query, ...args) {
    const { request } = this
    const { cache: scope, cacheControl = 'no-store' } = request.routeOptions.config
    if (!scope) throw new Error('A route that sends cached responses says for whom: config.cache')
    const owner = scope === 'private' ? request.user.id : undefined
    const body = await cache.get(JSON.stringify([idOf(query), owner, ...args]), sql => {
      if (unsent.bytes > MAX_UNSENT_BYTES) throw new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })
      return query(sql, ...args)
    })
    if (!body) return false
    // Timed out, or its connection is gone.
    if (this.sent) return true
    this.header('cache-control', cacheControl)
    if (scope === 'private') sendChunks(this, body, body.chunks)
    else await sendPublic(this, body)
    // A handler that ends before its response is sent would have an empty one sent.
    if (!this.sent) await Promise.resolve(this).catch(() => {})
    return true
  })

  /** Sends a body in the best encoding that the client accepts, or a 304 when the client has it. */
  async function sendPublic (reply: FastifyReply, body: CachedBody) {
    const { headers } = reply.request
    const accepted = headers['accept-encoding']
    let encoding = accepted && body.length > MIN_COMPRESSED && negotiator.negotiate(accepted) as Encoding | null
    const encoded = encoding ? await body.encode(encoding) : undefined
    if (!encoded) encoding = undefined
    if (reply.sent) return

    const etag = encoding ? `"${body.hash}-${encoding}"` : `"${body.hash}"`
    // @fastify/cors has set `Vary: Origin` where the response depends on it.
    const origin = reply.getHeader('vary')
    reply.headers({ etag, vary: origin ? `${origin}, Accept-Encoding` : 'Accept-Encoding' })
    if (fresh(headers, { etag })) return reply.code(304).send()
    if (encoding) reply.header('content-encoding', encoding)
    return sendChunks(reply, body, encoded ?? body.chunks)
  }

  /** Functions have no unique names. */
  function idOf (query: object) {
    let id = queryIds.get(query)
    if (!id) queryIds.set(query, id = ++lastId)
    return id
  }

  function sendChunks (reply: FastifyReply, { contentType }: CachedBody, chunks: Chunks) {
    reply.headers({ 'content-type': contentType, 'content-length': lengthOf(chunks) })
    reply.send(chunks.length > 1 ? Readable.from(chunks) : chunks[0])
    if (chunks.length > 1 || reply.raw.writableLength > 0) unsent.add(reply.raw, chunks)
  }
}, { name: 'cache', dependencies: ['auth', 'database'] })
