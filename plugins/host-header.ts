import fp from 'fastify-plugin'

/** Refuses HTTP/1.1 requests without a Host header (RFC 9112, § 3.2) with 400 `{message}`. */
export default fp(async app => {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    if (raw.httpVersion === '1.1' && raw.headers.host === undefined) {
      reply.code(400).send({ message: 'The Host header is required' })
    } else {
      done()
    }
  })
}, { name: 'host-header' })
