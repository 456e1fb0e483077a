import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

import { createLogger } from '#lib/http/logger.js'
import { build, inject } from '../helper.ts'
import t from '../suite.ts'

const lines: { level: number, msg: string, err: { message: string } }[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
const app = await build(t, {}, createLogger('info', stream))
const { DATABASE_URL } = app.config
await app.listen({ host: '127.0.0.1', port: 0 })
const started = lines.map(({ msg }) => msg)
const errors = () => lines.filter(({ level }) => level > 30)

t.test('GET /docs is a page that loads its assets from the service', async t => {
  const { statusCode, headers, body } = await inject(app, 'GET', '/docs')
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  const parts = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!)
  t.ok(parts.length > 3)
  for (const url of parts) {
    t.match(url, /^\/docs\//)
    t.equal((await inject(app, 'GET', url)).statusCode, 200, url)
  }
  t.notMatch(body, /<script(?![^>]* src=)/, 'no inline script')
})

t.test('Behind a prefix, the page, the description and the log follow PUBLIC_URL', async t => {
  for (const [PUBLIC_URL, prefix] of [
    ['https://example.org/community', '/community'], ['https://example.org/a/b/', '/a/b'], ['https://example.org', ''],
  ] as const) {
    const lines: string[] = []
    const logger = createLogger('info', { write (line: string) { lines.push(line) } })
    const app = await build(t, { DATABASE_URL, PUBLIC_URL }, logger)
    for (const path of ['/docs', '/docs/']) {
      const { body } = await inject(app, 'GET', path)
      const address = `https://example.org${prefix}${path}`
      const parts = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => new URL(url!, address).pathname)
      for (const url of parts) t.ok(url.startsWith(`${prefix}/docs/static/`), url)
    }
    const { servers, ...document } = (await inject(app, 'GET', '/openapi.json')).json()
    t.match(servers, [{ url: `https://example.org${prefix}` }])
    t.strictSame((await inject(app, 'GET', '/docs/json')).json(), { ...document, servers: [{ url: prefix || '/' }] },
      'the page sends requests to where it came from')
    await app.listen({ host: '127.0.0.1', port: 0 })
    t.match(lines.join(''), `The API is described at https://example.org${prefix}/docs`)
  }
})

t.test('The introduction leads to guides that the service serves', async t => {
  for (const [PUBLIC_URL, prefix] of [[undefined, ''], ['https://example.org/a/b/', '/a/b']]) {
    const app = await build(t, { DATABASE_URL, PUBLIC_URL })
    const { info } = (await inject(app, 'GET', '/openapi.json')).json()
    const paths = [...info.description.matchAll(/\]\((\S+)\)/g)].map(([, path]) => path as string)
    t.ok(paths.length > 5)
    for (const path of paths) {
      t.ok(path.startsWith(`${prefix}/docs/guides/`), path)
      const { statusCode, headers, body } = await inject(app, 'GET', path.slice(prefix!.length))
      t.strictSame([statusCode, headers['content-type']], [200, 'text/plain; charset=utf-8'], path)
      t.match(body, /^# /)
    }
  }
  t.equal((await inject(app, 'GET', '/docs/guides/unknown')).statusCode, 404)
})

t.test('Without PUBLIC_URL, the page and the log name the service itself', async t => {
  t.match((await inject(app, 'GET', '/docs/static/swagger-initializer.js')).body, './json')
  const { servers, ...document } = (await inject(app, 'GET', '/openapi.json')).json()
  t.match(servers, [{ url: '/' }])
  t.strictSame((await inject(app, 'GET', '/docs/json')).json(), { ...document, servers: [{ url: '/' }] })
  t.match(started.join(), 'The API is described at http://127.0.0.1:')
})

t.test('Only the page may run the scripts of the service', async t => {
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
  for (const [path, expected] of Object.entries({
    '/docs': policy,
    '/docs/static/swagger-ui-bundle.js': policy,
    '/events': "default-src 'none';base-uri 'none';frame-ancestors 'none'",
    '/openapi.json': "default-src 'none';base-uri 'none';frame-ancestors 'none'",
  })) {
    t.equal((await inject(app, 'GET', path)).headers['content-security-policy'], expected, path)
  }
})

t.test('Paths under /docs that are not assets are a 404, without an error in the log', async t => {
  // inject() would resolve dots in a path, as browsers do.
  const { port } = app.server.address() as AddressInfo
  lines.length = 0
  for (const path of [
    'yaml', 'package.json', '../package.json', '%2e%2e/package.json',
    'static/', 'static/nope', 'static/..', 'static/../..',
    'static/..%2f..%2fpackage.json', 'static/%00', 'static/index.html%00', 'static/.gitignore', 'static/%2e%2e%2f',
    `static/${'x'.repeat(5000)}`,
  ]) {
    const [response] = await once(get({ port, path: `/docs/${path}` }), 'response') as [IncomingMessage]
    t.strictSame([response.statusCode, await json(response)], [404, { message: 'Not found' }], path)
  }
  t.strictSame(errors(), [])
})

t.test('API_DOCS=false removes the page and the description', async t => {
  const app = await build(t, { DATABASE_URL, API_DOCS: 'false' })
  for (const path of ['/docs', '/docs/', '/docs/json', '/docs/yaml', '/docs/static/index.html', '/openapi.json']) {
    const response = await inject(app, 'GET', path)
    t.strictSame([response.statusCode, response.json()], [404, { message: 'Not found' }], path)
  }
  t.ok(app.swagger().paths, 'commands still have the description')
})

t.test('A failure of the page is a 500, and logged', async t => {
  const app = await build(t, { DATABASE_URL }, createLogger('info', stream))
  t.intercept(app, 'swagger', { value () { throw new Error('no description') } })
  lines.length = 0
  const response = await inject(app, 'GET', '/docs/json')
  t.strictSame([response.statusCode, response.json()], [500, { message: 'Internal server error' }])
  t.match(errors(), [{ level: 50, err: { message: 'no description' } }])
})
