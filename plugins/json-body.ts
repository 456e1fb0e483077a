import fp from 'fastify-plugin'

/**
 * Reads JSON and nothing else, and takes an empty body for no body: clients send `Content-Type: application/json` with
 * nothing in it on operations that have no body, and Fastify would refuse that.
 */
export default fp(async app => {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null)
    else parse(request, body, done)
  })
}, { name: 'json-body' })
