import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'

import { Negotiator } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Sql } from 'postgres'

import { CachedBody, type Chunks, type Encoding, ENCODINGS, type Sendable } from './cached-body.ts'
import type { CachedQuery } from './cached-query.ts'
import { createSnapshotCache, JSON_TYPE, type Snapshot, type SnapshotCacheOptions } from './snapshot-cache.ts'
import type { Client } from '../http/fair-queue.ts'

export type { BodyFormat, CachedQuery } from './cached-query.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Counters of the cache, the size of its entries, and the shared query for the current snapshot. */
    cache: {
      counts: Record<'hits' | 'misses' | 'validations', number>
      bytes (): number
      /**
       * Reads the snapshot after the call, including the result of `lookUp` for this key. `reply.sendCached` of this
       * request reuses the snapshot, so the request must not write in between.
       */
      readSnapshot (request?: FastifyRequest, key?: string): Promise<Snapshot>
      /**
       * Returns a public response for these clients, as of this snapshot or later; `undefined` if the query has no row.
       * Requests for this response share the read.
       */
      read<Args extends unknown[]> (
        url: string, query: (sql: Sql, ...args: Args) => CachedQuery, args: Args, clients: readonly Client[],
        snapshot: Snapshot
      ): Promise<CachedBody | undefined>
    }
  }

  interface FastifyRequest {
    /** The snapshot that `cache.readSnapshot` read, for `reply.sendCached`. */
    snapshot: Snapshot | null
  }

  interface FastifyReply {
    /**
     * Sends the current body of the query, usually from memory. Resolves to `false` without sending if the query has no
     * row. The key of an entry consists of the route's URL and the query's name and arguments, so the body must depend
     * only on the tables and the arguments. Sends the stream of `readLong` for a list that is too long for the cache.
     */
    sendCached<Args extends unknown[]> (
      query: (sql: Sql, ...args: Args) => CachedQuery, ...args: Args
    ): Promise<boolean>
  }

  interface FastifyContextConfig {
    /**
     * Scope of responses of `reply.sendCached`: `public` for all clients, with entity tags and content codings, or
     * `private` for one owner. Private responses are not compressed, because their length could disclose data (BREACH).
     */
    cache?: 'public' | 'private'
    /** `Cache-Control` of a success. The default is `no-store`. */
    cacheControl?: string
  }
}

export interface CacheOptions extends SnapshotCacheOptions {
  /** Returns the owner of private responses to this request, such as the user id. */
  owner (request: FastifyRequest): string
  /** Returns the request as a client of `queues`. By default, it waits until its reply is sent. */
  clientOf? (reply: FastifyReply): Client
  /**
   * Returns the JSON of a query with `list.keys` as a stream if `assertSize` threw this error, and `undefined` if the
   * query has no row. Rejects with other errors. Without this function, requests fail with each error.
   */
  readLong? (error: unknown, createQuery: () => CachedQuery, request: FastifyRequest): Promise<Readable | undefined>
}

/** Minimum length of a compressed body in bytes. Shorter bodies fit into one packet. */
const MIN_COMPRESSED = 1024

/**
 * Adds `reply.sendCached`, which sends responses from a cache that is never stale, and encodes each body once. A proxy
 * would spend up to 2 ms of a core on each response with a list of 127 KB. See docs/design/cache.md.
 */
export default fp<CacheOptions>(async (app, { owner, clientOf = unlimitedClient, readLong, ...options }) => {
  const { readSnapshot, get, counts, bytes } = createSnapshotCache(options)
  const negotiator = new Negotiator({ supportedValues: ENCODINGS })

  app.decorate('cache', {
    counts,
    bytes,
    async readSnapshot (request, key) {
      const snapshot = await readSnapshot(key)
      if (request) request.snapshot = snapshot
      return snapshot
    },
    read: (url, query, args, clients, snapshot) =>
      get(keyOf(url, query, null, args), sql => query(sql, ...args), clients, snapshot),
  })
  app.decorateRequest('snapshot', null)

  app.decorateReply('sendCached', async function (query, ...args) {
    const { request } = this
    const { url, config: { cache: scope, cacheControl = 'no-store' } } = request.routeOptions
    if (!scope) throw new Error('A route that sends cached responses needs config.cache')
    const key = keyOf(url!, query, scope === 'private' ? owner(request) : null, args)
    const client = clientOf(this)
    const body = await get(key, sql => query(sql, ...args), [client], request.snapshot).catch(error => {
      if (!readLong) throw error
      return readLong(error, () => query(options.sql, ...args), request)
    }).catch(error => {
      if (client.isWanted()) throw error
    })
    const encoding = body instanceof CachedBody && scope === 'public' ? await encodingFor(request, body) : undefined
    if (!client.isWanted()) {
      // The client has gone, but hooks that count requests must see the end of the response.
      if (!this.sent) this.send()
      return true
    }
    if (!body) return false
    this.header('cache-control', cacheControl)
    if (body instanceof Readable) this.header('content-type', JSON_TYPE).send(body)
    else if (scope === 'private') send(this, body)
    else sendPublic(this, body, encoding)
    // A reply is a thenable that resolves when it is sent (Fastify, Reply.then). If the handler ended before, Fastify
    // would send an empty response.
    if (!this.sent) await Promise.resolve(this).catch(() => {})
    return true
  })

  /** Encodes the body in the best encoding that the client accepts; `undefined` if it is sent unencoded. */
  async function encodingFor ({ headers }: FastifyRequest, body: CachedBody) {
    const accepted = headers['accept-encoding']
    if (!accepted || !body.isCompressible || body.length <= MIN_COMPRESSED) return undefined
    const encoding = negotiator.negotiate(accepted) as Encoding | null
    const encoded = encoding && await body.encode(encoding)
    return encoded ? { encoding, body: encoded } : undefined
  }

  /** Sends the body, or a 304 if the client has stored it. */
  function sendPublic (reply: FastifyReply, body: CachedBody, encoded: Awaited<ReturnType<typeof encodingFor>>) {
    const { headers, method } = reply.request
    const etag = encoded ? `"${body.hash}-${encoded.encoding}"` : `"${body.hash}"`
    reply.header('etag', etag)
    // A plugin such as @fastify/cors may have set this header.
    const vary = reply.getHeader('vary')
    if (body.isCompressible) reply.header('vary', vary ? `${vary}, Accept-Encoding` : 'Accept-Encoding')
    if (isStored(headers['if-none-match'], etag)) {
      // Without a stream, Fastify would send `Content-Length: 0` in response to HEAD (RFC 9110, § 8.6).
      return reply.code(304).send(method === 'HEAD' ? Readable.from([]) : undefined)
    }
    if (encoded) reply.header('content-encoding', encoded.encoding)
    send(reply, body, encoded?.body)
  }

  function send (reply: FastifyReply, body: CachedBody, { chunks, length }: Sendable = body) {
    reply.headers({ 'content-type': body.contentType, 'content-length': length })
    reply.send(chunks.length > 1 ? Readable.from(inTurns(chunks)) : chunks[0])
  }
}, { name: 'snapshot-cache' })

/** Returns a client of queues without limits, which has no network. */
const unlimitedClient = (reply: FastifyReply): Client =>
  ({ network: '', isWanted: () => !reply.sent && !reply.request.socket.destroyed })

/** Returns the key of an entry. */
function keyOf (url: string, { name }: { name: string }, owner: string | null, args: unknown[]) {
  if (!name) throw new Error('A cached query needs a name, which is part of its key')
  return JSON.stringify([url, name, owner, ...args])
}

/** Tells whether `If-None-Match` contains this entity tag (weak comparison, RFC 9110, § 13.1.2). */
function isStored (given = '', etag: string) {
  return given === '*' || given.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)
}

/** Yields one chunk per turn of the event loop. Otherwise, the kernel may accept 7 MB at once, which takes 70 ms. */
async function * inTurns (chunks: Chunks) {
  for (const chunk of chunks) {
    yield chunk
    await setImmediate()
  }
}
