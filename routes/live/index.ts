import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../lib/http/errors.ts'
import { MAX_LISTS, NOT_A_LIST, TOO_MANY, watch } from './schemas.ts'

/** Seconds after which a client that is refused can try again. */
const RETRY_AFTER = 10

/** Streams of server-sent events about changes of public lists. */
const live: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Querystring: { list?: unknown } }>('/', {
    schema: watch,
    config: { isStream: true },
    // The stream has no end, so it has no length.
    exposeHeadRoute: false,
  }, async (request, reply) => {
    const urls = [request.query.list].flat()
    if (urls.length > MAX_LISTS) throw new HttpError(400, NOT_A_LIST)
    const lists = [...new Set(urls)].map(url => {
      const list = app.findList(request, url)
      if (!list) throw new HttpError(400, NOT_A_LIST)
      return list
    })
    const { 'last-event-id': lastEventId } = request.headers
    const stream = app.live.open(request, lists, String(lastEventId), () => reply.raw.writableLength)
    if (!stream) throw new HttpError(503, TOO_MANY, { headers: { 'retry-after': RETRY_AFTER } })
    app.connections.streams.add(reply.raw)
    reply.type('text/event-stream')
    // nginx would buffer the stream. Caddy and Traefik would wait for 1 KB to compress.
    reply.headers({ 'x-accel-buffering': 'no', 'cache-control': 'no-store, no-transform' })
    return reply.send(stream)
  })
}

export default live
