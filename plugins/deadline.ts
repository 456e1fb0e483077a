import type { FastifyContextConfig } from 'fastify'
import fp from 'fastify-plugin'

import { withinDeadline } from '../lib/deadline.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** How many seconds this operation may take for what is not asked of the database. */
    extraTime?: number
  }
}

/**
 * Has an operation fail, in the way that it declares, when it is not done within DATABASE_TIMEOUT: each of its
 * statements alone has as much, and may have to wait for one that others share.
 */
export default fp(async app => {
  const { DATABASE_TIMEOUT } = app.config

  app.addHook('onRoute', route => {
    const { handler, config: { failure, extraTime = 0 } = {} as FastifyContextConfig } = route
    if (!failure) return
    route.handler = async function (request, reply) {
      const { arrived = performance.now() } = request.raw
      const waited = (performance.now() - arrived) / 1000
      return withinDeadline(
        Promise.resolve(handler.call(this, request, reply)), Math.max(0, DATABASE_TIMEOUT + extraTime - waited)
      )
    }
  })
}, { name: 'deadline' })
