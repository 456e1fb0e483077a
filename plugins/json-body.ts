import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

import { errorCodes, type FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { HttpError } from '../lib/http/errors.ts'
import { closeTinyChunks, joinChunks } from '../lib/http/join-chunks.ts'
import { measureJson } from '../lib/http/json-size.ts'
import { ENCODED } from '../lib/values/schemas.ts'

/** Maximum nesting of a body. Deeper JSON could exhaust the stack of later code. */
const MAX_JSON_DEPTH = 32

/** Maximum number of commas between values. No operation takes more than a hundred values. */
const MAX_JSON_COMMAS = 1000

/** Maximum number of bytes to read from a refused body. */
const REFUSED_BYTES = 2 ** 25

declare module 'fastify' {
  interface FastifyRequest {
    /** The body with its small chunks joined. */
    joinedBody: Readable | null
  }
}

/** Length of a body whose chunks need not be joined. */
const UNJOINED_BYTES = 1024

/**
 * Accepts only JSON bodies, and no encoded bodies: 97 KB of gzip can become 100 MB. An empty body of any media type
 * counts as no body, because clients send `Content-Type` without a body, which Fastify would refuse. If a route has a
 * body schema, a missing body counts as `{}`, so that each required field is reported. Routes that do not describe a
 * body ignore it.
 *
 * A refused body is still read before the response ends, within REQUEST_TIMEOUT. Closing a connection with unread data
 * would reset it, so a client that is still sending would not see the response.
 */
export default fp(async app => {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.decorateRequest('joinedBody', null)
  app.removeAllContentTypeParsers()

  app.addHook('onRequest', (request, _reply, done) => {
    // Not later, because the body may wait for the check of the token, and some handlers never read it.
    if (request.headers['transfer-encoding'] !== undefined) {
      closeTinyChunks(request.raw, app.connections)
      joinBody(request, request.raw)
    }
    if (!takesBody(request) || !hasBody(request)) delete request.headers['content-type']
    done()
  })

  // After the checks of the token and the role.
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (!isEncoded(request) || !hasBody(request) || !takesBody(request)) done(null, joined(request, payload))
    // The response names what the client can use instead (RFC 9110, § 15.5.16).
    else done(new HttpError(415, ENCODED, { headers: { 'accept-encoding': 'identity' } }))
  })

  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null)
    if (!isUtf8(body)) return done(new HttpError(400, 'JSON must be UTF-8'))
    const { depth, commas } = measureJson(body)
    if (depth > MAX_JSON_DEPTH) done(new HttpError(400, `JSON may be ${MAX_JSON_DEPTH} levels deep`))
    else if (commas > MAX_JSON_COMMAS) done(new HttpError(400, `JSON may have ${MAX_JSON_COMMAS} values`))
    else parse(request, body.toString(), done)
  })

  // A chunked body may be empty.
  app.addContentTypeParser<Buffer>('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0 || !takesBody(request)) done(null)
    else done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE())
  })

  app.addHook<string | Readable>('onSend', (request, reply, payload, done) => {
    // `complete` is undefined for `inject`. A request without a body is complete after its headers. Node sends the
    // headers of a response to HEAD only at its end.
    const { raw: { complete, destroyed }, method, joinedBody } = request
    if (complete !== false || destroyed || method === 'HEAD' || !hasBody(request) || typeof payload !== 'string') {
      // Nobody reads the rest. Otherwise, each stream of changes could hold 20 KB of a body.
      joinedBody?.resume()
      return done()
    }
    reply.header('content-length', Buffer.byteLength(payload))
    done(null, Readable.from(sendAndRead(payload, request.raw, joinedBody ?? request.raw)))
  })

  app.addHook('onRoute', route => {
    if (!route.schema?.body) return
    route.preValidation = [useEmptyObject, ...[route.preValidation ?? []].flat()]
  })
}, { name: 'json-body' })

/** Returns the body with its small chunks joined, unless it is short. */
function joined (request: FastifyRequest, payload: Readable) {
  if (request.joinedBody) return request.joinedBody
  return Number(request.headers['content-length'] ?? 0) <= UNJOINED_BYTES ? payload : joinBody(request, payload)
}

function joinBody (request: FastifyRequest, payload: Readable) {
  request.joinedBody = joinChunks(payload, request.routeOptions.bodyLimit)
  return request.joinedBody
}

/** Tells whether the route describes a body, which its schema or its handler checks. */
function takesBody ({ routeOptions: { schema } }: FastifyRequest) {
  return Boolean(schema?.body ?? schema?.checkedByHandler?.body)
}

function hasBody ({ headers }: FastifyRequest) {
  return headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? '')
}

/** Tells whether the client has encoded the body. */
function isEncoded ({ headers }: FastifyRequest) {
  const coding = headers['content-encoding']
  return coding !== undefined && !/^(identity)?$/i.test(coding.trim())
}

/** Yields the response, then reads the rest of the request, up to REFUSED_BYTES. */
async function * sendAndRead (payload: string, request: IncomingMessage, body: Readable) {
  yield Buffer.from(payload)
  let bytes = 0
  try {
    for await (const chunk of body) if ((bytes += chunk.length) > REFUSED_BYTES) request.destroy()
  } catch {
    // The client has gone or timed out.
  }
}

function useEmptyObject (request: FastifyRequest, _reply: unknown, done: () => void) {
  if (request.body === undefined) request.body = {}
  done()
}
