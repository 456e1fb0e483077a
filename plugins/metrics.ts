import { createHash, timingSafeEqual } from 'node:crypto'

import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { hashingStats } from '../lib/auth/passwords.ts'
import { VERSION } from '../lib/config.ts'
import { HttpError } from '../lib/errors.ts'
import { onAborted } from '../lib/http/aborted.ts'
import { standardOutput } from '../lib/http/log-output.ts'
import { createMetrics } from '../lib/metrics.ts'

const digest = (text: string) => createHash('sha256').update(text).digest()

/**
 * Measures requests for Prometheus by the pattern of their route, so that unknown paths add no series. Holders of
 * METRICS_TOKEN collect the metrics at `/metrics`; without one nothing is measured.
 */
export default fp(async app => {
  const { METRICS_TOKEN, DATABASE_POOL_SIZE: poolSize } = app.config
  if (!METRICS_TOKEN) return

  const { cache, database: { stats, replicas }, mail } = app
  const metrics = await createMetrics({
    version: VERSION,
    poolSize,
    poolStats: stats,
    hashing: hashingStats,
    cache,
    replicas,
    mail,
    heldBytes: app.heldBytes,
    log: standardOutput,
  })
  app.supervisor?.handle('metrics', metrics.values)

  app.addHook('onResponse', (request, reply, done) => {
    observe(request, reply, reply.statusCode)
    done()
  })
  onAborted(app, observe)

  function observe ({ method, routeOptions }: FastifyRequest, { elapsedTime }: FastifyReply, status: number) {
    // With and without a slash at its end it is the same operation.
    const route = routeOptions.url?.replace(/(?<=.)\/$/, '') ?? 'unknown'
    metrics.observe(method, route, status, elapsedTime / 1000)
  }

  const expected = digest(METRICS_TOKEN)
  const options = { schema: { hide: true }, logLevel: 'warn' } as const
  app.get('/metrics', options, async ({ headers: { authorization = '' } }, reply) => {
    const [, token = ''] = authorization.split(' ')
    // Digests have equal lengths, so the time of the comparison discloses nothing.
    if (!timingSafeEqual(digest(token), expected)) {
      throw new HttpError(401, 'Metrics token required', { headers: { 'www-authenticate': 'Bearer' } })
    }
    return reply.type(metrics.contentType).send(await (app.supervisor?.request('metrics') ?? metrics.read()))
  })
}, { name: 'metrics', dependencies: ['database', 'cache', 'held-bytes', 'mail'] })
