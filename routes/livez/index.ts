import type { FastifyPluginAsync } from 'fastify'

import { Message } from '../../lib/schemas.ts'

/** Whether the process runs. */
const livez: FastifyPluginAsync = async app => {
  app.get('/', {
    schema: { response: { 200: Message('Alive') } },
    logLevel: 'warn',
  }, async () => ({ message: 'Alive' }))
}

export default livez
