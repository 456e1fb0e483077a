import fp from 'fastify-plugin'

/**
 * Takes an empty body for no body. Clients send `Content-Type: application/json` with nothing in it on operations that
 * have no body, and Fastify would refuse that.
 */
export default fp(async app => {
  const parse = app.getDefaultJsonParser('remove', 'remove')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null)
    else parse(request, body, done)
  })
}, { name: 'empty-json-body' })
