import swaggerUi from '@fastify/swagger-ui'
import fp from 'fastify-plugin'

/**
 * The page at `/docs` to read the API description on, and to try every operation. It loads nothing from elsewhere, and
 * runs the scripts of the service only.
 */
export default fp(async app => {
  await app.register(swaggerUi, {
    routePrefix: '/docs',
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
}, { name: 'docs', dependencies: ['openapi', 'headers'] })
