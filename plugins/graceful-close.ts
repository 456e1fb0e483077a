import { setTimeout as sleep } from 'node:timers/promises'

import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyInstance {
    /** Whether the service is stopping: it finishes what runs and takes no more. */
    isClosing (): boolean
    /** Closes the service without failing anybody: proxies and clients have STOP_DELAY seconds to go elsewhere. */
    stop (): Promise<void>
  }
}

/** How long what runs may take until its connection is cut, in seconds: so much more than an operation may. */
const PATIENCE = 5

/**
 * Closes each connection with its last answer while the service stops; Fastify would wait for idle ones to go. A
 * request that is on its way on a kept connection would be lost if that were closed at once.
 */
export default fp(async app => {
  const { STOP_DELAY, DATABASE_TIMEOUT } = app.config
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
    setTimeout(() => app.server.closeAllConnections(), (DATABASE_TIMEOUT + PATIENCE) * 1000).unref()
  })
}, { name: 'graceful-close' })
