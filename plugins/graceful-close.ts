import { setTimeout as sleep } from 'node:timers/promises'

import fp from 'fastify-plugin'

import { shutdownTimeouts } from '../lib/shutdown.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is stopping: it finishes pending requests and accepts no more. */
    isClosing (): boolean
    /** Closes the service without failing a request: load balancers have STOP_DELAY seconds to drain. */
    stop (): Promise<void>
  }
}

/**
 * Closes each connection with its next response while the service stops. When STOP_DELAY is over, Fastify closes those
 * that are idle: a request just arriving there is lost, and clients repeat it if it was a GET. By then, load balancers
 * send none. Then the `onClose` hooks of other plugins wait for pending operations and emails, and close the pools.
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
    // From now on Node itself ends no connection of a client that sends or takes nothing.
    setTimeout(() => app.server.closeAllConnections(), connections * 1000).unref()
  })
}, { name: 'graceful-close' })
