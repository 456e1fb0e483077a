import type { FastifyPluginAsync } from 'fastify'

/** Whether the process runs. */
const livez: FastifyPluginAsync = async app => {
  app.get('/', { logLevel: 'warn' }, async () => ({ message: 'Alive' }))
}

export default livez
