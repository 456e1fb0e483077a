import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'

import { Negotiator } from '@fastify/accept-negotiator'
import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { LRUCache } from 'lru-cache'
import type { Sql } from 'postgres'

import { type CachedBody, type Chunks, type Encoding, ENCODINGS, type Sendable } from './cached-body.ts'
import type { CachedQuery } from './cached-query.ts'
import {
  type CacheCounts, createSnapshotCache, type PrimaryState, type SnapshotCacheOptions,
} from './snapshot-cache.ts'

export type { Body, BodyFormat, BodyWriter, CachedList, CachedQuery } from './cached-query.ts'
export type { CacheCounts } from './snapshot-cache.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** How the cache does, the bytes of its entries, and the question that requests share. */
    cache: {
      counts: CacheCounts
      bytes (): number
      /**
       * Asks for the state of the primary after the request has arrived, with what `lookUp` finds for this key. The
       * request keeps the state for `reply.sendCached`, so that it asks once: not for a request that writes in between.
       */
      ask (request: FastifyRequest, key: string): Promise<PrimaryState>
    }
  }

  interface FastifyRequest {
    /** The state of the primary, once it was asked for; for `reply.sendCached`. */
    primaryState: PrimaryState | null
  }

  interface FastifyReply {
    /**
     * Sends the body that the query gives now, mostly from memory. Resolves to false, with nothing sent, when the query
     * has no row. The key of an entry is the route with the query's name and arguments: the body depends on the tables
     * and its arguments, and on nothing else.
     */
    sendCached<Body extends object, Args extends unknown[]> (
      query: (sql: Sql, ...args: Args) => CachedQuery<Body>, ...args: Args
    ): Promise<boolean>
  }

  interface FastifyContextConfig {
    /**
     * Who shares responses of `reply.sendCached`: all clients, with an entity tag and content codings, or one owner.
     * Private responses get neither, so that their length discloses nothing (BREACH).
     */
    cache?: 'public' | 'private'
    /** `Cache-Control` of a success; `no-store` unless given. */
    cacheControl?: string
  }
}

export interface CacheOptions extends Omit<SnapshotCacheOptions<FastifyReply>, 'isWaiting'> {
  /** The owner of the private responses to this request, such as the id of its user. */
  owner (request: FastifyRequest): string
}

/** Shorter bodies fit into a packet as they are; in bytes. */
const MIN_COMPRESSED = 1024

/** How many different `Accept-Encoding` headers are cached with their negotiated encoding. */
const ACCEPTED = 100

/** Adds `reply.sendCached`, which sends responses from a cache that is never stale: see docs/design/cache.md. */
export default fp<CacheOptions>(async (app, { owner, ...options }) => {
  const { currentState, get, counts, bytes } = createSnapshotCache<FastifyReply>({ ...options, isWaiting })
  const negotiator = new Negotiator({ supportedValues: ENCODINGS, cache: new LRUCache({ max: ACCEPTED }) })

  app.decorate('cache', {
    counts,
    bytes,
    async ask (request, key) {
      request.primaryState = await currentState(key)
      return request.primaryState
    },
  })
  app.decorateRequest('primaryState', null)

  app.decorateReply('sendCached', async function (query, ...args) {
    const { request } = this
    const { method, url, config: { cache: scope, cacheControl = 'no-store' } } = request.routeOptions
    if (!scope) throw new Error('A route that sends cached responses says for whom: config.cache')
    if (!query.name) throw new Error('A cached query needs a name, which is part of its key')
    const key = JSON.stringify([
      // The response to HEAD is that to GET.
      method === 'HEAD' ? 'GET' : method, url, query.name, scope === 'private' ? owner(request) : null, ...args,
    ])
    const body = await get(key, sql => query(sql, ...args), request.primaryState, this).catch(error => {
      if (isWaiting(this)) throw error
    })
    const encoding = body && scope === 'public' && isWaiting(this) ? await encodingFor(request, body) : undefined
    if (!isWaiting(this)) {
      // It reaches no client, but hooks that count requests must see its end.
      if (!this.sent) this.send()
      return true
    }
    if (!body) return false
    this.header('cache-control', cacheControl)
    if (scope === 'private') send(this, body, body)
    else sendPublic(this, body, encoding)
    // A handler that ends before its response is sent would have an empty one sent.
    if (!this.sent) await Promise.resolve(this).catch(() => {})
    return true
  })

  /** The best encoding that the client accepts; `undefined` for none. */
  async function encodingFor ({ headers }: FastifyRequest, body: CachedBody) {
    const accepted = headers['accept-encoding']
    if (!accepted || body.length <= MIN_COMPRESSED) return undefined
    const encoding = negotiator.negotiate(accepted) as Encoding | null
    const encoded = encoding && await body.encode(encoding)
    return encoded ? { encoding, body: encoded } : undefined
  }

  /** Sends a body in this encoding, or a 304 when the client has it. */
  function sendPublic (reply: FastifyReply, body: CachedBody, encoded: Awaited<ReturnType<typeof encodingFor>>) {
    const { headers, method } = reply.request
    const etag = encoded ? `"${body.hash}-${encoded.encoding}"` : `"${body.hash}"`
    // A plugin such as @fastify/cors may have set another one.
    const vary = reply.getHeader('vary')
    reply.headers({ etag, vary: vary ? `${vary}, Accept-Encoding` : 'Accept-Encoding' })
    if (isStored(headers['if-none-match'], etag)) {
      // Without a stream, Fastify would give the response to HEAD a length of 0 (RFC 9110, § 8.6).
      return reply.code(304).send(method === 'HEAD' ? Readable.from([]) : undefined)
    }
    if (encoded) reply.header('content-encoding', encoded.encoding)
    send(reply, body, encoded?.body ?? body)
  }

  function send (reply: FastifyReply, { contentType }: CachedBody, body: Sendable) {
    const { chunks, length } = body
    reply.headers({ 'content-type': contentType, 'content-length': length })
    options.hold?.([reply], body, length)
    reply.send(chunks.length > 1 ? Readable.from(inTurns(chunks)) : chunks[0])
  }
}, { name: 'snapshot-cache' })

/** Whether `If-None-Match` has this entity tag, by the weak comparison (RFC 9110, § 13.1.2). Ours have no comma. */
function isStored (given = '', etag: string) {
  return given === '*' || given.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)
}

/** The chunks, each in a turn of the event loop of its own: the kernel may take 7 MB at once, which takes 70 ms. */
async function * inTurns (chunks: Chunks) {
  for (const chunk of chunks) {
    yield chunk
    await setImmediate()
  }
}

/** Whether a response may still be sent: it has not timed out, and its connection is there. */
const isWaiting = ({ sent, request }: FastifyReply) => !sent && !request.socket.destroyed
