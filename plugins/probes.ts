import fp from 'fastify-plugin'

import { assertMigrated } from '../lib/database/migrations.ts'
import { HttpError } from '../lib/http/errors.ts'
import { Message } from '../lib/schemas.ts'
import { withTimeout } from '../lib/timeout.ts'

/** Time for which probes share a check. Otherwise, anybody could make the service send statements without a limit. */
const CHECK_INTERVAL_MS = 1000

/** Probes for orchestrators and load balancers. Only failures are logged. */
export default fp(async app => {
  app.get('/livez', {
    schema: {
      operationId: 'getLiveness',
      summary: 'Check liveness',
      description: 'Returns 200 while the process runs. Use it to decide whether to restart the process.',
      response: { 200: Message('Alive') },
    },
    logLevel: 'warn',
  }, async () => ({ message: 'Alive' }))

  /** The shared check, until CHECK_INTERVAL_MS after it has ended. */
  let check: Promise<void> | undefined
  function assertReady () {
    if (check) return check
    check = withTimeout(assertMigrated(app.database.monitor), app.config.DATABASE_TIMEOUT)
    const forget = () => { setTimeout(() => { check = undefined }, CHECK_INTERVAL_MS).unref() }
    check.then(forget, forget)
    return check
  }

  // Ready means that the database responds, its schema is up to date, and the service is not stopping.
  app.get('/readyz', {
    schema: {
      operationId: 'getReadiness',
      summary: 'Check readiness',
      description: 'Returns 200 if the database answers and its schema is up to date. Use it to decide whether to ' +
        'send requests to this process.',
      response: { 200: Message('Ready'), 503: Message('Not ready', 'Stopping') },
    },
    logLevel: 'warn',
  }, async request => {
    if (app.isClosing()) throw new HttpError(503, 'Stopping')
    try {
      await assertReady()
    } catch (error) {
      app.database.connections.suspect()
      request.log.warn({ err: error }, 'Not ready')
      throw new HttpError(503, 'Not ready')
    }
    return { message: 'Ready' }
  })
}, { name: 'probes', dependencies: ['database', 'graceful-close', 'api-description', 'headers'] })
