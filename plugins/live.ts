import { parse } from 'node:querystring'

import type { RouteOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { Sql } from 'postgres'

import type { CachedQuery } from '../lib/cache/index.ts'
import { FairQueue } from '../lib/fair-queue.ts'
import { LiveLists } from '../lib/live/live-lists.ts'

/** A cached query and its arguments. */
type ListQuery = readonly [query: (sql: Sql, ...args: any[]) => CachedQuery<any>, ...args: unknown[]]

/** A public list, as a client names it. */
interface PublicList {
  /** The schema of its query string. */
  schema: unknown
  /** The query string of the client. */
  query: string
}

declare module 'fastify' {
  interface FastifyInstance {
    /** The lists that clients of `GET /live` watch. */
    live: LiveLists
    /** Finds the public list with this path and query; `undefined` for other paths. */
    listOf (url: string): PublicList | undefined
  }

  interface FastifyContextConfig {
    /** The query of a public list with its arguments for a query string. Clients of `GET /live` can watch this list. */
    list?: (query: any) => ListQuery
  }
}

/** Number of lists that are read at once. */
const READS = 2

/** Connects lib/live to the cache and to the routes with `config.list`. */
export default fp(async app => {
  const { cache, config } = app
  const routes = new Map<string, Pick<RouteOptions, 'schema' | 'config'>>()
  // If many lists have changed, their reads wait for each other. Requests do not wait for them.
  const reads = new FairQueue({
    concurrency: READS, maxLength: Infinity, createError: () => new Error('The queue has no limit'),
  })

  app.addHook('onRoute', route => {
    if (route.method === 'GET' && route.config?.list) routes.set(route.url, route)
  })

  app.decorate('listOf', url => {
    const [path, query] = split(url)
    const route = routes.get(path)
    return route && { schema: route.schema?.querystring, query }
  })

  app.decorate('live', new LiveLists({
    readSnapshot: () => cache.readSnapshot(),
    argumentsOf: url => JSON.stringify(queryOf(url).slice(1)),
    readEtag (url, snapshot, network) {
      const [query, ...args] = queryOf(url)
      return reads.run({ network }, () => cache.etagOf(split(url)[0], query, args, snapshot))
    },
  }, { maxListeners: config.LIVE_CLIENTS, isClosing: app.isClosing }))

  function queryOf (url: string) {
    const [path, query] = split(url)
    return routes.get(path)!.config!.list!(parse(query))
  }
}, { name: 'live', dependencies: ['cache', 'graceful-close'] })

/** Splits a list into its path and its query. */
function split (url: string): [path: string, query: string] {
  const [path, ...query] = url.split('?')
  return [path!, query.join('?')]
}
