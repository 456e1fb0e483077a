import t from 'tap'

import { build, inject } from '../helper.ts'

const app = await build(t)

t.test('GET /docs is a page that loads its parts from the service', async t => {
  const { statusCode, headers, body } = await inject(app, 'GET', '/docs')
  t.equal(statusCode, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  const parts = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url!)
  t.ok(parts.length > 3)
  for (const url of parts) {
    t.match(url, /^\/docs\//)
    t.equal((await inject(app, 'GET', url)).statusCode, 200, url)
  }
  t.notMatch(body, /<script(?![^>]* src=)/, 'no script stands in the page itself')
})

t.test('It shows the description that GET /openapi.json answers with', async t => {
  t.match((await inject(app, 'GET', '/docs/static/swagger-initializer.js')).body, './json')
  t.strictSame((await inject(app, 'GET', '/docs/json')).json(), (await inject(app, 'GET', '/openapi.json')).json())
})

t.test('The page, and nothing else, may run the scripts of the service', async t => {
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
  for (const [path, expected] of Object.entries({
    '/docs': policy,
    '/docs/static/swagger-ui-bundle.js': policy,
    '/events': "default-src 'none';frame-ancestors 'none'",
    '/openapi.json': "default-src 'none';frame-ancestors 'none'",
  })) {
    t.equal((await inject(app, 'GET', path)).headers['content-security-policy'], expected, path)
  }
})

t.test('Nothing but the parts of the page lies under /docs', async t => {
  for (const path of ['package.json', '../package.json', '%2e%2e/package.json', 'static/..%2f..%2fpackage.json']) {
    const { statusCode } = await inject(app, 'GET', `/docs/${path}`)
    t.ok([403, 404].includes(statusCode), `${path} ${statusCode}`)
  }
})
