import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

import { buildApp } from '#lib/app.js'
import { createLogger } from '#lib/http/logger.js'
import { build, inject } from '../helper.ts'
import t from '../suite.ts'

const lines: { level: number, err: { message: string } }[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
const app = await build(t, {}, createLogger('error', stream))

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

t.test('Behind a prefix, the page and the description follow PUBLIC_URL', async t => {
  for (const [PUBLIC_URL, prefix] of [
    ['https://example.org/community', '/community'], ['https://example.org/a/b/', '/a/b'], ['https://example.org', ''],
  ] as const) {
    const app = await build(t, { PUBLIC_URL })
    for (const path of ['/docs', '/docs/']) {
      const { body } = await inject(app, 'GET', path)
      const address = `https://example.org${prefix}${path}`
      const parts = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => new URL(url!, address).pathname)
      for (const url of parts) t.ok(url.startsWith(`${prefix}/docs/static/`), url)
    }
    t.match((await inject(app, 'GET', '/openapi.json')).json().servers, [{ url: `https://example.org${prefix}` }])
  }
})

t.test('The page shows the description of GET /openapi.json, and sends requests to where it came from', async t => {
  t.match((await inject(app, 'GET', '/docs/static/swagger-initializer.js')).body, './json')
  for (const [PUBLIC_URL, path] of [['', '/'], ['https://example.org/community', '/community']]) {
    const app = await build(t, { PUBLIC_URL })
    const { servers, ...document } = (await inject(app, 'GET', '/openapi.json')).json()
    t.match(servers, [{ url: PUBLIC_URL || '/' }])
    t.strictSame((await inject(app, 'GET', '/docs/json')).json(), { ...document, servers: [{ url: path }] })
  }
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
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  lines.length = 0
  for (const path of [
    'package.json', '../package.json', '%2e%2e/package.json', 'static/', 'static/nope', 'static/..', 'static/../..',
    'static/..%2f..%2fpackage.json', 'static/%00', 'static/index.html%00', 'static/.gitignore', 'static/%2e%2e%2f',
    `static/${'x'.repeat(5000)}`,
  ]) {
    const [response] = await once(get({ port, path: `/docs/${path}` }), 'response') as [IncomingMessage]
    t.strictSame([response.statusCode, await json(response)], [404, { message: 'Not found' }], path)
  }
  t.strictSame(lines, [])
})

t.test('The log says where the page is', async t => {
  for (const [PUBLIC_URL, url] of [['', 'http://127.0.0.1:'], ['https://example.org/a', 'https://example.org/a/docs']]) {
    const lines: string[] = []
    const app = await build(t, { PUBLIC_URL }, createLogger('info', { write (line: string) { lines.push(line) } }))
    await app.listen({ host: '127.0.0.1', port: 0 })
    t.match(lines.join(''), `The API is described at ${url}`)
  }
})

t.test('API_DOCS=false removes the page and the description', async t => {
  const app = await build(t, { API_DOCS: 'false' })
  for (const path of ['/docs', '/docs/', '/docs/json', '/docs/yaml', '/docs/static/index.html', '/openapi.json']) {
    const response = await inject(app, 'GET', path)
    t.strictSame([response.statusCode, response.json()], [404, { message: 'Not found' }], path)
  }
  t.ok(app.swagger().paths, 'commands still have the description')
})

t.test('A failure of the page is a 500, and logged', async t => {
  const broken = buildApp(app.config, createLogger('error', stream))
  t.teardown(() => broken.close())
  await broken.ready()
  broken.swagger = () => { throw new Error('no description') }
  lines.length = 0
  const response = await inject(broken, 'GET', '/docs/json')
  t.strictSame([response.statusCode, response.json()], [500, { message: 'Internal server error' }])
  t.match(lines, [{ level: 50, err: { message: 'no description' } }])
})
