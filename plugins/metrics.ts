import { createHash, timingSafeEqual } from 'node:crypto'

import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { HttpError } from '../lib/errors.ts'
import { onAborted } from '../lib/http/aborted.ts'
import { createMetrics } from '../lib/metrics.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** When it arrived, in milliseconds of `performance.now()`, where requests are measured. */
    since: number
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Measures requests for Prometheus by the pattern of their route, so that unknown paths add no series. Holders of
 * METRICS_TOKEN collect the metrics at `/metrics`; without one nothing is measured.
 */
export default fp(async app => {
  const { METRICS_TOKEN } = app.config
  if (!METRICS_TOKEN) return

  const metrics = await createMetrics(app)

  app.decorateRequest('since', 0)
  app.addHook('onRequest', (request, reply, done) => {
    request.since = performance.now()
    // Not by a hook `onResponse`: Fastify would not log the error of a response any more.
    reply.raw.once('finish', () => observe(request, reply, reply.statusCode))
    done()
  })
  onAborted(app, observe)

  function observe ({ method, routeOptions, since }: FastifyRequest, _reply: FastifyReply, status: number) {
    // With and without a slash at its end it is the same operation.
    const route = routeOptions.url?.replace(/(?<=.)\/$/, '') ?? 'unknown'
    metrics.observe(method, route, status, (performance.now() - since) / 1000)
  }

  const expected = digest(METRICS_TOKEN)
  const options = { schema: { hide: true }, logLevel: 'warn' } as const
  app.get('/metrics', options, async ({ headers: { authorization = '' } }, reply) => {
    const [, token = ''] = authorization.split(' ')
    // Digests have equal lengths, so the time of the comparison discloses nothing.
    if (!timingSafeEqual(digest(token), expected)) throw new HttpError(401, 'Metrics token required')
    return reply.type(metrics.contentType).send(await metrics.read())
  })
}, { name: 'metrics', dependencies: ['database', 'cache', 'budget', 'email'] })
