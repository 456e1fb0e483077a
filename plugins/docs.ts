import swaggerUi from '@fastify/swagger-ui'
import type { FastifyError } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Serves `/docs`, where people can read the API description and try operations. The page loads only files of the
 * service. `API_DOCS=false` turns it off.
 */
export default fp(async app => {
  if (!app.config.API_DOCS) return
  await app.register(async docs => {
    // @fastify/static throws a 403 or 400 for paths such as `..` and `%00`.
    docs.setErrorHandler<FastifyError>((error, _request, reply) => {
      if (error.statusCode === undefined || error.statusCode >= 500) throw error
      reply.callNotFound()
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      // The prefix that a proxy removes.
      indexPrefix: new URL(app.config.PUBLIC_URL ?? 'http://localhost').pathname,
      uiConfig: { layout: 'BaseLayout', tryItOutEnabled: true },
      theme: { title: 'Community Platform' },
      staticCSP: {
        'default-src': "'none'",
        'script-src': "'self'",
        'style-src': "'self'",
        'img-src': "'self' data:",
        'connect-src': "'self'",
        'frame-ancestors': "'none'",
        'base-uri': "'none'",
        'form-action': "'none'",
      },
    })
  })
}, { name: 'docs', dependencies: ['api-description', 'headers'] })
