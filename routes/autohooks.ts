import type { FastifyInstance } from 'fastify'

/** Limits all operations of the API. Probes, metrics and docs, which plugins serve, must get through an overload. */
export default async function autohooks (app: FastifyInstance) {
  app.limitOperations(app)
}
