import fp from 'fastify-plugin'

import { isReadOnly, type Sql } from '../lib/database/pools.ts'
import { assertMigrated } from '../lib/database/migrations.ts'
import { HttpError } from '../lib/http/errors.ts'
import { Message } from '../lib/values/schemas.ts'
import { withTimeout } from '../lib/config/timeout.ts'

/** Time for which probes share a check. Otherwise, anybody could make the service send statements without a limit. */
const CHECK_INTERVAL_MS = 1000

const READ_ONLY = 'Ready, but the database is read-only'

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
  let check: Promise<string> | undefined
  function assertReady () {
    if (check) return check
    check = withTimeout(readiness(app.database.monitor), app.config.DATABASE_TIMEOUT)
    const forget = () => { setTimeout(() => { check = undefined }, CHECK_INTERVAL_MS).unref() }
    check.then(forget, forget)
    return check
  }

  // Ready means that the database responds, its schema is up to date, and the service is not stopping. A read-only
  // database serves every list, so it is ready. With a 503, a proxy would refuse readers as well.
  app.get('/readyz', {
    schema: {
      operationId: 'getReadiness',
      summary: 'Check readiness',
      description: 'Returns 200 if the database answers and its schema is up to date. Use it to decide whether to ' +
        'send requests to this process. The message tells if the database is read-only.',
      response: { 200: Message('Ready', READ_ONLY), 503: Message('Not ready', 'Stopping') },
    },
    logLevel: 'warn',
  }, async request => {
    if (app.isClosing()) throw new HttpError(503, 'Stopping')
    try {
      return { message: await assertReady() }
    } catch (error) {
      app.database.connections.suspect()
      request.log.warn({ err: error }, 'Not ready')
      throw new HttpError(503, 'Not ready')
    }
  })
}, { name: 'probes', dependencies: ['database', 'graceful-close', 'api-description', 'headers'] })

/** Returns the message of readiness. Rejects if the database does not answer or lacks a migration. */
async function readiness (sql: Sql) {
  await assertMigrated(sql)
  return await isReadOnly(sql) ? READ_ONLY : 'Ready'
}
