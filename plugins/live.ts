import { parse } from 'node:querystring'

import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { PostgresError } from 'postgres'

import type { CachedQuery } from '../lib/cache/index.ts'
import { maxBodyBytes } from '../lib/config/config.ts'
import type { Sql } from '../lib/database/client.ts'
import { isRefusal } from '../lib/database/conflicts.ts'
import { RefusedError } from '../lib/http/errors.ts'
import { type ListName, LiveLists } from '../lib/live/live-lists.ts'

/** A cached query and its arguments. */
type ListQuery = readonly [query: (sql: Sql, ...args: any[]) => CachedQuery<any>, ...args: unknown[]]

declare module 'fastify' {
  interface FastifyInstance {
    /** The lists that clients of `GET /live` watch. */
    live: LiveLists
    /** Tells whether this is a public list with a query that its route accepts. */
    isPublicList (request: FastifyRequest, url: unknown): url is string
  }

  interface FastifyContextConfig {
    /**
     * The cached query of a public list with its arguments, from the parsed query string. Clients of `GET /live` can
     * watch this list.
     */
    list?: (query: any, picturesUrl: string | null) => ListQuery
  }
}

/** Connects lib/live to the cache and to the routes with `config.list`. */
export default fp(async app => {
  const { cache, config, queues } = app
  const routes = new Map<string, Pick<RouteOptions, 'schema' | 'config'>>()

  app.addHook('onRoute', route => {
    if (route.method === 'GET' && route.config?.list) routes.set(route.url, route)
  })

  app.decorate('isPublicList', (request, url): url is string => {
    if (typeof url !== 'string') return false
    const [path, query] = split(url)
    const route = routes.get(path)
    if (!route) return false
    const schema = route.schema?.querystring
    return !schema || request.validateInput(parse(query), schema)
  })

  app.decorate('live', new LiveLists({
    readSnapshot: () => cache.readSnapshot(),
    argumentsOf: list => JSON.stringify(queryOf(list).slice(1)),
    async readEtag (list, clients, snapshot) {
      const [query, ...args] = queryOf(list)
      try {
        const { hash, length } = (await cache.read(split(list.url)[0], query, args, clients, snapshot))!
        return { etag: hash, length }
      } catch (error) {
        // For example, a negative limit or a list that is too large is refused at each attempt.
        const isRefused = error instanceof RefusedError || isRefusal(error as PostgresError)
        if (isRefused) return { etag: undefined, length: maxBodyBytes(config) }
        throw error
      }
    },
  }, { queue: queues.streams, maxListeners: config.LIVE_CLIENTS, isClosing: app.isClosing }))

  function queryOf ({ url, picturesUrl }: ListName) {
    const [path, query] = split(url)
    return routes.get(path)!.config!.list!(parse(query), picturesUrl)
  }
}, { name: 'live', dependencies: ['admission', 'cache', 'graceful-close'] })

/** Splits a list into its path and its query. */
function split (url: string): [path: string, query: string] {
  const [path, ...query] = url.split('?')
  return [path!, query.join('?')]
}
