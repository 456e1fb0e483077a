import fp from 'fastify-plugin'

/**
 * Security headers for a JSON API, which does not load resources or appear in frames (OWASP REST Security Cheat Sheet).
 */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none';base-uri 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * Adds headers to every response: security headers, the request id for the log, and `no-store` by default, because most
 * responses contain personal data.
 */
export default fp(async app => {
  const { HSTS } = app.config
  const security = { ...SECURITY_HEADERS, ...HSTS !== 'off' && { 'strict-transport-security': HSTS } }

  app.addHook('onSend', ({ id }, reply, _payload, done) => {
    reply.headers(security)
    reply.header('x-request-id', id)
    if (app.isClosing()) reply.header('connection', 'close')
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    done()
  })
}, { name: 'headers', dependencies: ['graceful-close'] })
