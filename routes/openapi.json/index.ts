import type { FastifyPluginAsync } from 'fastify'

/** The API description, OpenAPI 3.1, for people and their tools. `API_DOCS=false` leaves it out. */
const openapi: FastifyPluginAsync = async app => {
  if (!app.config.API_DOCS) return
  // Made when it is first asked for: few starts of the service need it.
  let document: string | undefined

  app.get('/', { schema: { hide: true } }, async (_request, reply) => {
    document ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(document)
  })
}

export default openapi
