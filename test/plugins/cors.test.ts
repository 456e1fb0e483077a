import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

import { build } from '../helper.ts'
import t from '../suite.ts'

const FRONTENDS = ['https://app.example.org', 'http://localhost:5173']

const STRANGERS = [
  'http://app.example.org',
  'https://app.example.org:8443',
  'https://app.example.org.example.com',
  'https://xapp.example.org',
  'https://example.org',
  'https://appxexample.org',
  'http://localhost',
  'http://localhost:51730',
  'https://app.example.org/',
  'https://app.example.org,http://localhost:5173',
  '*',
  'null',
]

/** The CORS headers of a response. */
const allowed = (headers: OutgoingHttpHeaders | IncomingHttpHeaders) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-')))

/** CORS headers that let an origin read a response and some of its headers. */
const readable = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': 'Retry-After, ETag, X-Request-Id',
})

const preflight = (url: string, method: string, origin: string) => ({
  method: 'OPTIONS' as const,
  url,
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization, content-type',
  },
})

t.test('With FRONTEND_URL', async t => {
  const app = await build(t, { FRONTEND_URL: FRONTENDS.join(',') })

  for (const origin of FRONTENDS) {
    t.test(`${origin} may read every response, including errors`, async t => {
      for (const [url, status] of [['/livez', 200], ['/auth/me', 401], ['/nope', 404]] as const) {
        const { statusCode, headers } = await app.inject({ url, headers: { origin } })
        t.equal(statusCode, status)
        t.strictSame(allowed(headers), readable(origin), 'this origin, without credentials')
        t.match(String(headers.vary), /\bOrigin\b/)
      }
      const invalid = await app.inject({ method: 'POST', url: '/auth/login', headers: { origin }, payload: {} })
      t.equal(invalid.statusCode, 400)
      t.strictSame(allowed(invalid.headers), readable(origin))
    })

    t.test(`${origin} may send requests with any method of the contract, and a token`, async t => {
      for (const [method, url] of [
        ['GET', '/auth/me'], ['POST', '/auth/login'], ['PUT', '/blogs/x'], ['DELETE', '/blogs/x'],
      ] as const) {
        const response = await app.inject(preflight(url, method, origin))
        t.equal(response.statusCode, 204, `${method}: the preflight needs no token`)
        t.equal(response.body, '')
        t.strictSame(allowed(response.headers), {
          ...readable(origin),
          'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
          'access-control-allow-headers': 'authorization, content-type',
          'access-control-max-age': '600',
        })
      }
    })
  }

  for (const origin of STRANGERS) {
    t.test(`${origin} may neither read responses nor send such requests`, async t => {
      const { statusCode, headers } = await app.inject({ url: '/livez', headers: { origin } })
      t.equal(statusCode, 200)
      t.equal(headers['access-control-allow-origin'], undefined)
      t.match(String(headers.vary), /\bOrigin\b/, 'caches keep it apart from responses for frontends')
      for (const method of ['PUT', 'DELETE']) {
        const { headers } = await app.inject(preflight('/blogs/x', method, origin))
        t.equal(headers['access-control-allow-origin'], undefined, method)
      }
    })
  }

  t.test('An OPTIONS request that is not a preflight allows nothing', async t => {
    for (const headers of [{}, { 'access-control-request-method': 'PUT' }, { origin: 'https://evil.example' }]) {
      const response = await app.inject({ method: 'OPTIONS', url: '/livez', headers })
      t.strictSame([response.statusCode, response.body], [204, ''])
      t.equal(response.headers['access-control-allow-origin'], undefined)
    }
  })

  t.test('A response to a request without Origin varies by it, too', async t => {
    const { headers } = await app.inject('/livez')
    t.equal(headers['access-control-allow-origin'], undefined)
    t.match(String(headers.vary), /\bOrigin\b/)
  })
})

t.test('Without FRONTEND_URL no origin may read responses', async t => {
  const app = await build(t)
  for (const origin of [...FRONTENDS, ...STRANGERS]) {
    const { headers } = await app.inject({ url: '/livez', headers: { origin } })
    t.strictSame(allowed(headers), {}, origin)
    t.equal(headers.vary, undefined)
    const response = await app.inject(preflight('/auth/login', 'POST', origin))
    t.strictSame([response.statusCode, allowed(response.headers)], [404, {}], origin)
  }
})
