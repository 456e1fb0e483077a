import { createHash, timingSafeEqual } from 'node:crypto'

import fp from 'fastify-plugin'

import { HttpError } from '../lib/errors.ts'
import { onEnd } from '../lib/http/request-end.ts'
import { createMetrics } from '../lib/metrics.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Time of arrival, in milliseconds of `performance.now()`. */
    since: number
  }
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Measures requests for Prometheus by route pattern, so that unknown paths do not create series. Serves the metrics at
 * `/metrics` to holders of METRICS_TOKEN. Without METRICS_TOKEN, nothing is measured.
 */
export default fp(async app => {
  const { METRICS_TOKEN } = app.config
  if (!METRICS_TOKEN) return

  const metrics = await createMetrics(app)

  app.decorateRequest('since', 0)
  app.addHook('onRequest', (request, _reply, done) => {
    request.since = performance.now()
    done()
  })
  onEnd(app, ({ method, routeOptions, since }, _reply, status) => {
    // A trailing slash does not make a different route.
    const route = routeOptions.url?.replace(/(?<=.)\/$/, '') ?? 'unknown'
    metrics.observe(method, route, status, (performance.now() - since) / 1000)
  })

  const expected = digest(METRICS_TOKEN)
  const options = { schema: { hide: true }, logLevel: 'warn' } as const
  app.get('/metrics', options, async ({ headers: { authorization = '' } }, reply) => {
    const [, token = ''] = authorization.split(' ')
    // The comparison takes constant time, because digests have equal lengths.
    if (!timingSafeEqual(digest(token), expected)) throw new HttpError(401, 'Metrics token required')
    return reply.type(metrics.contentType).send(await metrics.read())
  })
}, { name: 'metrics', dependencies: ['database', 'cache', 'budget', 'email'] })
