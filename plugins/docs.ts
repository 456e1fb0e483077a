import swaggerUi from '@fastify/swagger-ui'
import type { FastifyError } from 'fastify'
import fp from 'fastify-plugin'

/** Fits the page to a phone, and follows the color scheme of the browser. Swagger UI does neither. */
const PAGE = `
document.head.append(Object.assign(document.createElement('meta'), {
  name: 'viewport', content: 'width=device-width, initial-scale=1',
}))
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
`

/** No response has links. Their column would make the page too wide for a phone. */
const STYLES = '.swagger-ui .response-col_links { display: none }'

/**
 * Serves `/docs`, where people can read the API description and try operations. The page loads only files of the
 * service. `API_DOCS=false` turns it off.
 */
export default fp(async app => {
  if (!app.config.API_DOCS) return
  // The prefix that a proxy removes.
  const prefix = new URL(app.config.PUBLIC_URL ?? 'http://localhost').pathname
  await app.register(async docs => {
    // @fastify/static throws a 403 or 400 for paths such as `..` and `%00`.
    docs.setErrorHandler<FastifyError>((error, _request, reply) => {
      if (error.statusCode === undefined || error.statusCode >= 500) throw error
      reply.callNotFound()
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      indexPrefix: prefix,
      uiConfig: { layout: 'BaseLayout', tryItOutEnabled: true },
      theme: {
        title: 'Community Platform',
        js: [{ filename: 'page.js', content: PAGE }],
        css: [{ filename: 'page.css', content: STYLES }],
      },
      // Operations are tried at the service that the page came from, also if PUBLIC_URL is a different one.
      transformSpecification: (_document, request) => ({ ...app.describe(request), servers: [{ url: prefix }] }),
      transformSpecificationClone: false,
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
  app.addHook('onListen', async () => {
    app.log.info(`The API is described at ${app.config.PUBLIC_URL ?? app.listeningOrigin}/docs`)
  })
}, { name: 'docs', dependencies: ['api-description', 'headers'] })
