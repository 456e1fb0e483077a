import type { FastifyPluginAsync } from 'fastify'

import { Message } from '../../lib/schemas.ts'

/** Whether the process runs. */
const livez: FastifyPluginAsync = async app => {
  app.get('/', {
    schema: {
      operationId: 'getLiveness',
      summary: 'Whether the process runs',
      response: { 200: Message('Alive') },
    },
    logLevel: 'warn',
  }, async () => ({ message: 'Alive' }))
}

export default livez
