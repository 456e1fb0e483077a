import { readdir, readFile } from 'node:fs/promises'

import swaggerUi from '@fastify/swagger-ui'
import type { FastifyError } from 'fastify'
import fp from 'fastify-plugin'

import { pathPrefix } from '../lib/http/service-url.ts'

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

/** Returns the text of each guide for developers of apps, by the name of its file. */
async function readGuides () {
  const folder = new URL('docs/api/', import.meta.resolve('#package.json'))
  const names = (await readdir(folder)).filter(name => name.endsWith('.md'))
  return new Map(await Promise.all(names.map(async name =>
    [name, await readFile(new URL(name, folder), 'utf8')] as const)))
}

/**
 * Serves `/docs`, where people can read the API description and try operations, and the guides in docs/api. The page
 * loads only files of the service. `API_DOCS=false` turns it off.
 */
export default fp(async app => {
  if (!app.config.API_DOCS) return
  const prefix = pathPrefix(app.config)
  const guides = await readGuides()
  app.get<{ Params: { name: string } }>('/docs/guides/:name', { schema: { hide: true } }, async (request, reply) => {
    const guide = guides.get(request.params.name)
    return guide === undefined ? reply.callNotFound() : reply.type('text/plain; charset=utf-8').send(guide)
  })
  await app.register(async docs => {
    // @fastify/static throws a 403 or 400 for paths such as `..` and `%00`.
    docs.setErrorHandler<FastifyError>((error, _request, reply) => {
      if (error.statusCode === undefined || error.statusCode >= 500) throw error
      reply.callNotFound()
    })
    docs.addHook('onRequest', async ({ routeOptions: { url } }, reply) => {
      // The plugin would make these again for each request, which takes 2 ms for JSON and 100 to 450 ms for YAML.
      // Operations are tried at the service that the page came from, even if PUBLIC_URL is a different one.
      if (url === '/docs/json') return app.sendDescription(reply.request, reply, prefix || '/')
      if (url === '/docs/yaml') return reply.callNotFound()
    })
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      indexPrefix: prefix,
      uiConfig: { layout: 'BaseLayout', tryItOutEnabled: true, persistAuthorization: true, filter: true },
      theme: {
        title: 'Community Platform',
        js: [{ filename: 'page.js', content: PAGE }],
        css: [{ filename: 'page.css', content: STYLES }],
      },
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
