import { createHash, timingSafeEqual } from 'node:crypto'

import type { FastifyPluginAsync } from 'fastify'

import { HttpError } from '../../lib/http-error.ts'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** What Prometheus collects, for holders of METRICS_TOKEN. Without one there is no such operation. */
const metrics: FastifyPluginAsync = async app => {
  const { metrics, config: { METRICS_TOKEN } } = app
  if (!metrics || !METRICS_TOKEN) return
  const expected = digest(METRICS_TOKEN)

  app.get('/', { schema: { hide: true }, logLevel: 'warn' }, async ({ headers: { authorization = '' } }, reply) => {
    const [, token = ''] = authorization.split(' ')
    // Of equal length, so that the time tells nothing of the token.
    if (!timingSafeEqual(digest(token), expected)) {
      throw new HttpError(401, 'Metrics token required', {}, { 'www-authenticate': 'Bearer' })
    }
    return reply.type(metrics.contentType).send(await metrics.read())
  })
}

export default metrics
