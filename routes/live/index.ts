import { parse } from 'node:querystring'

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'

import { HttpError } from '../../lib/errors.ts'
import { MAX_LISTS, NOT_A_LIST, TOO_MANY, watch } from './schemas.ts'

/** Seconds after which a client that is refused can try again. */
const RETRY_AFTER = 10

/** Approximate memory of an open stream. */
const STREAM_BYTES = 32 * 1024

/** Streams of server-sent events about changes of public lists. */
const live: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Querystring: { list?: unknown } }>('/', {
    schema: watch,
    config: { openStreamBytes: STREAM_BYTES },
    // The stream has no end, so it has no length.
    exposeHeadRoute: false,
  }, async (request, reply) => {
    const urls = [request.query.list].flat()
    if (urls.length > MAX_LISTS || !urls.every(url => isList(request, url))) throw new HttpError(400, NOT_A_LIST)
    const { 'last-event-id': lastEventId } = request.headers
    const stream = app.live.open(request.network, urls, String(lastEventId), () => reply.raw.writableLength)
    if (!stream) throw new HttpError(503, TOO_MANY, { headers: { 'retry-after': RETRY_AFTER } })
    reply.type('text/event-stream')
    // nginx would buffer the stream.
    reply.header('x-accel-buffering', 'no')
    return reply.send(stream)
  })

  /** Tells whether this is a public list with a query that its route accepts. */
  function isList (request: FastifyRequest, url: unknown): url is string {
    if (typeof url !== 'string') return false
    const list = app.listOf(url)
    return list !== undefined && (!list.schema || request.validateInput(parse(list.query), list.schema))
  }
}

export default live
