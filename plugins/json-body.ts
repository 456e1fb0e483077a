import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

import { errorCodes, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { HttpError } from '../lib/errors.ts'
import { isDeeperThan } from '../lib/http/json-depth.ts'

/** Levels of nesting in a body. Deeper JSON would exhaust the stack of later code. */
const MAX_JSON_DEPTH = 32

/** The bytes of a body that was refused which are read nevertheless. */
const REFUSED_BYTES = 2 ** 25

/**
 * Reads JSON and nothing else, and takes an empty body for no body, whatever its media type: clients send
 * `Content-Type` with nothing in it, and Fastify would refuse that. Where a route has a schema for its body, no body is
 * `{}`, so that each required field is reported. A route that describes no body ignores what comes, of any type.
 *
 * A body that is refused is read to its end nevertheless, within REQUEST_TIMEOUT, before its response ends: to close a
 * connection with unread data resets it, and a client that still sends would not see why.
 */
export default fp(async app => {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.removeAllContentTypeParsers()

  app.addHook('onRequest', (request, _reply, done) => {
    if (!takesBody(request) || !hasBody(request)) delete request.headers['content-type']
    done()
  })

  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) done(null)
    else if (!isUtf8(body)) done(new HttpError(400, 'JSON must be UTF-8'))
    else if (isDeeperThan(body, MAX_JSON_DEPTH)) done(new HttpError(400, `JSON may be ${MAX_JSON_DEPTH} levels deep`))
    else parse(request, body.toString(), done)
  })

  // A body in chunks may turn out to be empty.
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0 || !takesBody(request)) done(null)
    else done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE())
  })

  app.addHook<string>('onSend', (request, reply, payload, done) => {
    // Undefined for a request by `inject`. A request without a body is complete as soon as its headers are.
    if (request.raw.complete !== false || !hasBody(request) || request.raw.destroyed || typeof payload !== 'string') {
      return done()
    }
    reply.header('content-length', Buffer.byteLength(payload))
    done(null, Readable.from(sendAndRead(payload, request.raw)) as unknown as string)
  })

  app.addHook('onRoute', route => {
    if (!route.schema?.body) return
    route.preValidation = [useEmptyObject, ...[route.preValidation ?? []].flat()]
  })
}, { name: 'json-body' })

/** Whether the route describes a body, checked by its schema or by its handler. */
function takesBody ({ routeOptions: { schema } }: FastifyRequest) {
  return Boolean(schema?.body ?? schema?.docsOnly?.body)
}

function hasBody ({ headers }: FastifyRequest) {
  return headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')
}

/** The response, which ends when the rest of its request is read, or more than a client should send in vain. */
async function * sendAndRead (payload: string, request: IncomingMessage) {
  yield Buffer.from(payload)
  let bytes = 0
  try {
    // To leave the loop closes the connection.
    for await (const chunk of request) if ((bytes += chunk.length) > REFUSED_BYTES) break
  } catch {
    // The client has gone, or its time is over.
  }
}

function useEmptyObject (request: FastifyRequest, _reply: unknown, done: () => void) {
  if (request.body === undefined) request.body = {}
  done()
}
