import fp from 'fastify-plugin'

import { HttpError } from '../lib/errors.ts'
import { isDeeperThan } from '../lib/http/json-depth.ts'

/**
 * Reads JSON and nothing else, and takes an empty body for no body: clients send `Content-Type: application/json` with
 * nothing in it on operations that have no body, and Fastify would refuse that.
 */
export default fp(async app => {
  const { MAX_JSON_DEPTH } = app.config
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) done(null)
    else if (isDeeperThan(body, MAX_JSON_DEPTH)) done(new HttpError(400, `JSON may be ${MAX_JSON_DEPTH} levels deep`))
    else parse(request, body.toString(), done)
  })
}, { name: 'json-body' })
