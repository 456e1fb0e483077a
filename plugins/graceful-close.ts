import { setTimeout as sleep } from 'node:timers/promises'

import fp from 'fastify-plugin'

import { shutdownTimeouts } from '../lib/shutdown-timeouts.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is stopping: it finishes what runs and takes no more. */
    isClosing (): boolean
    /** Closes the service without failing anybody: proxies and clients have STOP_DELAY seconds to go elsewhere. */
    stop (): Promise<void>
  }
}

/**
 * Closes each connection with its last answer while the service stops; Fastify would wait for idle ones to go. A
 * request that is on its way on a kept connection would be lost if that were closed at once.
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
