import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { databaseTime } from '../lib/database/statements.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it arrived, and how long the database took for it, in milliseconds; null in production. */
    timing: { start: number, database: { total: number } } | null
  }
}

/** Security headers for a JSON API: it loads nothing and is shown in no frame (OWASP REST Security Cheat Sheet). */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none';base-uri 'none';frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * The headers of every response: security, the id under which the log has the request, outside production how long it
 * took (`Server-Timing`), and `no-store` unless the route says otherwise: most responses are about persons.
 */
export default fp(async app => {
  const { NODE_ENV, HSTS } = app.config
  const isTimed = NODE_ENV !== 'production'
  const security = { ...SECURITY_HEADERS, ...HSTS !== 'off' && { 'strict-transport-security': HSTS } }
  app.decorateRequest('timing', null)

  if (isTimed) {
    app.addHook('onRequest', (request, _reply, done) => {
      request.timing = { start: performance.now(), database: { total: 0 } }
      done()
    })
    // After the body has arrived: reading it would lose the context.
    app.addHook('preHandler', (request, _reply, done) => databaseTime.run(request.timing!.database, done))
  }

  app.addHook('onSend', ({ id, timing }, reply, _payload, done) => {
    reply.headers(security)
    reply.header('x-request-id', id)
    if (timing) reply.header('server-timing', serverTiming(timing))
    if (app.isClosing()) reply.header('connection', 'close')
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    done()
  })
}, { name: 'headers', dependencies: ['graceful-close'] })

function serverTiming ({ start, database }: NonNullable<FastifyRequest['timing']>) {
  const total = performance.now() - start
  return `db;dur=${database.total.toFixed(1)}, total;dur=${total.toFixed(1)}`
}
