import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { databaseTime } from '../lib/database/timeouts.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The headers of every response, as a flat list of names and values. */
    commonHeaders (request: FastifyRequest): string[]
  }

  interface FastifyRequest {
    /** When it arrived, and how long the database took for it, in milliseconds; null in production. */
    timing: { start: number, database: { total: number } } | null
  }
}

/** Security headers for a JSON API: it loads nothing and is shown in no frame (OWASP REST Security Cheat Sheet). */
const SECURITY_HEADERS = [
  'content-security-policy', "default-src 'none';frame-ancestors 'none'",
  'referrer-policy', 'no-referrer',
  'strict-transport-security', 'max-age=31536000; includeSubDomains',
  'x-content-type-options', 'nosniff',
]

/**
 * The headers of every response: security, the id under which the log has the request, outside production how long it
 * took (`Server-Timing`), and `no-store` unless the route says otherwise: most responses are about persons.
 */
export default fp(async app => {
  const isTimed = app.config.NODE_ENV !== 'production'
  app.decorateRequest('timing', null)

  if (isTimed) {
    app.addHook('onRequest', (request, _reply, done) => {
      request.timing = { start: performance.now(), database: { total: 0 } }
      done()
    })
    // After the body has arrived: reading it would lose the context.
    app.addHook('preHandler', (request, _reply, done) => databaseTime.run(request.timing!.database, done))
  }

  app.decorate('commonHeaders', ({ id, timing }) => {
    const headers = [...SECURITY_HEADERS, 'x-request-id', id]
    if (timing) headers.push('server-timing', serverTiming(timing))
    if (app.isClosing()) headers.push('connection', 'close')
    return headers
  })

  app.addHook('onSend', (request, reply, _payload, done) => {
    const headers = app.commonHeaders(request)
    for (let index = 0; index < headers.length; index += 2) reply.header(headers[index]!, headers[index + 1])
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    done()
  })
}, { name: 'headers', dependencies: ['graceful-close'] })

function serverTiming ({ start, database }: NonNullable<FastifyRequest['timing']>) {
  const total = performance.now() - start
  return `db;dur=${database.total.toFixed(1)}, total;dur=${total.toFixed(1)}`
}
