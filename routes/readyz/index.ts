import type { FastifyPluginAsync } from 'fastify'

import { HttpError } from '../../lib/http-error.ts'
import { assertMigrated } from '../../lib/migrations.ts'
import { Message } from '../../lib/schemas.ts'

/** Whether to send requests here: the database answers, its schema is up to date, and the service is not stopping. */
const readyz: FastifyPluginAsync = async app => {
  app.get('/', {
    schema: {
      operationId: 'getReadiness',
      summary: 'Whether to send requests here',
      response: { 200: Message('Ready'), 503: Message('Not ready', 'Stopping') },
    },
    logLevel: 'warn',
  }, async request => {
    if (app.isClosing()) throw new HttpError(503, 'Stopping')
    try {
      // Apart from the pool, on which others may wait in a long line.
      await assertMigrated(app.sqlProbe)
    } catch (error) {
      request.log.warn({ err: error }, 'Not ready')
      throw new HttpError(503, 'Not ready')
    }
    return { message: 'Ready' }
  })
}

export default readyz
