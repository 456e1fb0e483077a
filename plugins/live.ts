import { parse } from 'node:querystring'

import type { TSchema } from '@sinclair/typebox'
import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { PostgresError } from 'postgres'

import type { CachedQuery } from '../lib/cache/index.ts'
import { maxBodyBytes } from '../lib/config/config.ts'
import type { Sql } from '../lib/database/pools.ts'
import { isRefusal } from '../lib/database/conflicts.ts'
import { RefusedError } from '../lib/http/errors.ts'
import { isDecodable } from '../lib/http/decodable-url.ts'
import { type ListName, LiveLists } from '../lib/live/live-lists.ts'
import { picturesUrlOf } from '../lib/pictures/urls.ts'
import { currentMinute, sha256 } from '../lib/values/formats.ts'

/** A cached query and its arguments. */
type ListQuery = readonly [query: (sql: Sql, ...args: any[]) => CachedQuery, ...args: unknown[]]

declare module 'fastify' {
  interface FastifyInstance {
    /** The lists that clients of `GET /live` watch. */
    live: LiveLists
    /** Returns the public list with this URL; `undefined` if there is none, or its route refuses the query. */
    findList (request: FastifyRequest, url: unknown): ListName | undefined
  }

  interface FastifyContextConfig {
    /**
     * The cached query of a public list with its arguments, from the parsed query string. Clients of `GET /live` can
     * watch this list.
     */
    live?: (query: any, picturesUrl: string | null) => ListQuery
  }
}

/** Connects lib/live to the cache and to the routes with `config.live`. */
export default fp(async app => {
  const { cache, config, queues } = app
  const routes = new Map<string, Pick<RouteOptions, 'schema' | 'config'>>()

  app.addHook('onRoute', route => {
    if (route.method === 'GET' && route.config?.live) routes.set(route.url, route)
  })

  app.decorate('findList', (request, url) => {
    if (typeof url !== 'string') return undefined
    const { path, query } = split(url)
    const route = routes.get(path)
    // Otherwise, `parse` would make an error for each part that it cannot decode, which takes 10 µs.
    if (!route || !isDecodable(query)) return undefined
    const schema = route.schema?.querystring as TSchema | undefined
    if (schema && !request.validateInput(parse(query), schema)) return undefined
    const picturesUrl = picturesUrlOf(config, request)
    return { url, picturesUrl, key: sha256(`${picturesUrl} ${url}`) }
  })

  app.decorate('live', new LiveLists({
    readSnapshot: () => cache.readSnapshot(),
    currentMinute,
    async readEtag ({ url, picturesUrl }, clients, snapshot) {
      const { path, query: parameters } = split(url)
      // Parsing 15 KB again takes 0.1 ms. The parameters would take as much memory as the URL.
      const [query, ...args] = routes.get(path)!.config!.live!(parse(parameters), picturesUrl)
      try {
        const body = await cache.read(path, query, args, clients, snapshot)
        if (body) return { etag: body.hash, length: body.length }
      } catch (error) {
        if (!(error instanceof RefusedError) && !isRefusal(error as PostgresError)) throw error
      }
      // For example, a negative limit or a list that is too large is refused at each attempt.
      return { etag: undefined, length: maxBodyBytes(config) }
    },
  }, { queue: queues.streams, maxListeners: config.LIVE_CLIENTS, isClosing: app.isClosing }))
}, { name: 'live', dependencies: ['admission', 'cache', 'graceful-close'] })

/** Splits the URL of a list. */
function split (url: string) {
  const [path, ...query] = url.split('?')
  return { path: path!, query: query.join('?') }
}
