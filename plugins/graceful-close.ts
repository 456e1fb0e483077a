import { setTimeout as sleep } from 'node:timers/promises'

import fp from 'fastify-plugin'

import { shutdownTimeouts } from '../lib/config/timeout.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Tells whether the service is stopping. */
    isClosing (): boolean
    /** Closes the service without failing requests. Load balancers have STOP_DELAY seconds to drain. */
    stop (): Promise<void>
  }
}

/**
 * Closes each connection with its next response while the service stops. After STOP_DELAY, Fastify closes idle
 * connections. A request that arrives at that moment is lost, but load balancers no longer send requests by then. Then
 * the `onClose` hooks of other plugins wait for pending operations and emails, and close the pools. Without this
 * plugin, a stop would lose requests that are on their way on idle connections, and a client that never completes its
 * request would delay the stop until the process is killed.
 */
export default fp(async app => {
  const { STOP_DELAY } = app.config
  const { connections } = shutdownTimeouts(app.config)
  let closing = false
  app.decorate('isClosing', () => closing)

  app.decorate('stop', async () => {
    closing = true
    await sleep(STOP_DELAY * 1000)
    await app.close()
  })

  app.addHook('preClose', async () => {
    closing = true
    // From now on, Node does not close stalled connections.
    setTimeout(() => app.server.closeAllConnections(), connections * 1000).unref()
  })
}, { name: 'graceful-close' })
