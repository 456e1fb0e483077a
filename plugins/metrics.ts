import fp from 'fastify-plugin'

import { createMetrics, type Metrics } from '../lib/metrics.ts'
import { hashingLoad } from '../lib/passwords.ts'
import { VERSION } from '../lib/version.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Where there is a METRICS_TOKEN. */
    metrics: Metrics | undefined
  }
}

/** Measures requests for Prometheus, by the pattern of their route: who calls what does not exist makes no new one. */
export default fp(async app => {
  const { METRICS_TOKEN, DATABASE_POOL_SIZE } = app.config
  app.decorate('metrics', undefined)
  if (!METRICS_TOKEN) return

  const pool = { size: DATABASE_POOL_SIZE, load: app.poolLoad }
  const metrics = await createMetrics({ version: VERSION, pool, hashing: hashingLoad, cache: app.cache })
  app.metrics = metrics

  app.addHook('onResponse', ({ method, routeOptions }, reply, done) => {
    // With and without a slash at its end it is the same operation.
    const route = routeOptions.url?.replace(/(?<=.)\/$/, '') ?? 'unknown'
    metrics.observe(method, route, reply.statusCode, reply.elapsedTime / 1000)
    done()
  })
}, { name: 'metrics', dependencies: ['database', 'cache'] })
