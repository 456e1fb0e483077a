// `npm run example`: starts the service and the example app on separate origins, as in production. Adds the demo data
// if the database is empty.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import fastifyStatic from '@fastify/static'
import Fastify from 'fastify'

import { buildApp } from '#lib/app.js'
import { PASSWORD, seedDemo, SIGN_INS } from '#lib/cli/seed/demo.js'
import { loadConfig, readDotenv } from '#lib/config/config.js'
import { formatTime } from '#lib/email/content.js'
import { isEmailConfigured } from '#lib/email/transport.js'
import { createLogger } from '#lib/http/logger.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { run } from '#lib/shutdown.js'
import { StartupError } from '#lib/config/startup-error.js'
import { runMain } from '#lib/startup.js'
import { shutdownTimeouts } from '#lib/config/timeout.js'

// As in lib/server.ts.
process.env.TZ = 'UTC'

const APP = join(import.meta.dirname, 'app')
const CLIENT = join(import.meta.dirname, '../../client')
const OPENAPI_FETCH = dirname(fileURLToPath(import.meta.resolve('openapi-fetch')))

await runMain(async () => {
  const dotenv = readDotenv('.env')
  // The port of the app; PORT is the port of the service.
  const APP_PORT = Number(process.env.APP_PORT || dotenv.APP_PORT || 5173)
  if (!Number.isInteger(APP_PORT) || APP_PORT < 1 || APP_PORT > 65535) {
    throw new StartupError('APP_PORT must be a port number from 1 to 65535')
  }
  // The addresses of this machine in its networks, so that a phone can open the app, also from emails.
  const hosts = (process.env.HOST || dotenv.HOST) === '0.0.0.0' ? ['localhost', ...ownAddresses()] : ['localhost']
  const origins = hosts.map(host => `http://${host}:${APP_PORT}`)
  Object.assign(process.env, {
    FRONTEND_URL: origins.toReversed().join(),
    LOG_LEVEL: process.env.LOG_LEVEL || dotenv.LOG_LEVEL || 'warn',
    MIGRATE_ON_START: 'true',
  })
  const config = loadConfig()
  if (config.NODE_ENV === 'production') {
    throw new StartupError('The example must not run in production, because the password of the demo accounts is ' +
      'public. Unset NODE_ENV.')
  }
  const logger = createLogger(config.LOG_LEVEL)
  const service = buildApp(config, logger)
  const frontend = await buildFrontend(config)
  const close = () => Promise.all([service.close(), frontend.close()])
  async function start () {
    await service.ready()
    if (await isEmpty(service)) await seed(service)
    await listen(service, config.HOST, config.PORT, 'PORT')
    await listen(frontend, config.HOST, APP_PORT, 'APP_PORT')
    await welcome(service, origins)
  }
  await run({ listen: start, stop: close, close }, {}, logger, shutdownTimeouts(config).total)
})

/** Serves the files of the app, the typed client, and the configuration of the app. */
async function buildFrontend (config) {
  const local = `http://localhost:${config.PORT}`
  /** The service, at the host by which the browser reached the app. */
  const apiOf = ({ hostname }) => `http://${hostname}:${config.PORT}`
  const frontend = Fastify({
    // A link that was cut within a character is a page of the app as well, which says that it is not found.
    rewriteUrl: ({ url = '/' }) => isReadable(url) ? url : '/',
  })
  const html = await readFile(join(APP, 'index.html'), 'utf8')
  const policyOf = request => [
    "default-src 'none'",
    `script-src 'self' ${hashOfImportMap(html)}`,
    "style-src 'self'",
    // Pictures may come from any site.
    "img-src 'self' http: https: data: blob:",
    `connect-src ${apiOf(request)}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join(';')
  frontend.addHook('onSend', async (request, reply) => {
    reply.headers({
      'content-security-policy': policyOf(request),
      'cross-origin-opener-policy': 'same-origin',
      // After a sign-in with the identity provider, the URL contains the token. Other sites must get only the origin.
      'referrer-policy': 'strict-origin',
      'x-content-type-options': 'nosniff',
    })
  })

  await frontend.register(fastifyStatic, { root: APP, cacheControl: false, index: false })
  for (const [prefix, root] of [['/client/', CLIENT], ['/openapi-fetch/', OPENAPI_FETCH]]) {
    await frontend.register(fastifyStatic, { root, prefix, cacheControl: false, decorateReply: false })
  }

  const isConfigured = config.IDP_CLIENT_ID && config.IDP_CLIENT_SECRET && config.IDP_REDIRECT_URI
  const provider = isConfigured ? config.IDP_ISSUER : null
  frontend.get('/config.js', (request, reply) => {
    reply.type('text/javascript')
    const values = {
      API: apiOf(request),
      PROVIDER: provider,
      NAME: config.COMMUNITY_NAME,
      TIME_ZONE: config.MAIL_TIME_ZONE,
      PICTURE_BYTES: config.MAX_PICTURE_BYTES,
      EMAILS: isEmailConfigured(config) ? { folder: config.SMTP_URL ? null : mailFolder(config) } : null,
    }
    return Object.entries(values).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)}\n`).join('')
  })
  // Paths without an extension are pages of the app. Other paths are files.
  frontend.setNotFoundHandler((request, reply) => {
    const [path] = request.url.split('?', 1)
    if (/\.\w+$/.test(path)) return reply.code(404).send('Not found')
    return sendPage(reply, path)
  })
  frontend.get('/', (_request, reply) => sendPage(reply, '/'))
  frontend.get('/index.html', (_request, reply) => sendPage(reply, '/'))

  /** Sends the page of the app, with a title and a preview for people who get a link in a chat. */
  async function sendPage (reply, path) {
    const { title, description, image } = await previewOf(path)
    const tags = Object.entries({ title, description, image, site_name: config.COMMUNITY_NAME })
      .flatMap(([name, value]) => value ? [`<meta property="og:${name}" content="${escapeHtml(value)}">`] : [])
    reply.type('text/html; charset=utf-8')
    // By functions, because a text such as "$&" has a meaning in `replace`.
    return html
      .replace('<title></title>', () => `<title>${escapeHtml(title)}</title>\n  ${tags.join('\n  ')}`)
      .replace('<span></span>', () => `<span>${escapeHtml(config.COMMUNITY_NAME)}</span>`)
  }

  async function previewOf (path) {
    const [, id] = /^\/events\/([-0-9a-f]+)$/.exec(path) ?? []
    // The page does not wait for a preview that is late, not even for the end of the response.
    const body = id && await fetch(`${local}/agenda/${id}`, { signal: AbortSignal.timeout(1000) })
      .then(response => response.json()).catch(() => {})
    if (!body?.event) return { title: config.COMMUNITY_NAME }
    const { title, date, place, imageUrl } = body.event
    const time = formatTime(new Date(date), config)
    const image = /^https?:/.test(imageUrl) && imageUrl
    return { title, description: [time, place].filter(Boolean).join(' · '), image }
  }
  return frontend
}

/** Tells whether a path can be decoded. */
function isReadable (url) {
  try {
    return Boolean(decodeURIComponent(url.split('?', 1)[0]))
  } catch {
    return false
  }
}

/** The folder of emails while SMTP_URL is not set. */
function mailFolder ({ DATA_DIR }) {
  return join(DATA_DIR, 'mail')
}

/** The hash by which the policy allows the import map, the only inline script. */
function hashOfImportMap (html) {
  const [, map] = /<script type="importmap">([^]*?)<\/script>/.exec(html)
  return `'sha256-${createHash('sha256').update(map).digest('base64')}'`
}

/** Escapes a text for an attribute or an element of HTML. */
function escapeHtml (text) {
  return text.replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`)
}

async function isEmpty ({ sql }) {
  const rows = await sql`SELECT FROM users UNION ALL SELECT FROM clubs UNION ALL SELECT FROM testimonials LIMIT 1`
  return rows.length === 0
}

async function seed ({ sql }) {
  const password = await hashPassword(PASSWORD)
  await sql.begin(sql => seedDemo(sql, password))
}

async function listen (server, host, port, variable) {
  try {
    await server.listen({ host, port })
  } catch (error) {
    if (error.code !== 'EADDRINUSE') throw error
    throw new StartupError(`${host}:${port} is in use. Stop the program that listens there, or set ${variable}.`)
  }
}

/** The IPv4 addresses by which other devices reach this machine. */
const ownAddresses = () => Object.values(networkInterfaces()).flat()
  .filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address)

/** Prints the URLs of the app and the demo accounts. */
async function welcome ({ config, sql }, [origin, ...others]) {
  const people = await sql`
    SELECT email, role FROM users WHERE email IN ${sql(SIGN_INS.map(({ email }) => email))}
    ORDER BY role
  `
  console.log(`\n  The example app runs at   ${origin}`)
  for (const other of others) console.log(`  On a phone, open          ${other}`)
  console.log(`  The API is documented at  http://localhost:${config.PORT}/docs`)
  if (!config.SMTP_URL) console.log(`  Emails are files in       ${mailFolder(config)}`)
  console.log()
  for (const { email, role } of people) console.log(`  ${role.toLowerCase().replace('_', ' ').padEnd(10)} ${email}`)
  if (people.length > 0) console.log(`\n  The password of all accounts is ${PASSWORD}. Press Ctrl-C to stop.\n`)
}
