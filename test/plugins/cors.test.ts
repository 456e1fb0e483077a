import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'

import { build, createDatabase } from '../helper.ts'
import t from '../suite.ts'

const DATABASE_URL = await createDatabase()
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

/** CORS headers that let an origin read a response, also to a request with credentials, and some of its headers. */
const readable = (origin: string) => ({
  'access-control-allow-origin': origin,
  'access-control-allow-credentials': 'true',
  'access-control-expose-headers': 'Retry-After, ETag, X-Request-Id, Content-Disposition, Date',
})

const preflight = (url: string, method: string, origin: string) => ({
  method: 'OPTIONS' as const,
  url,
  headers: {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': 'authorization, content-type, idempotency-key',
  },
})

/** The CORS headers of a preflight that allows a request. */
const sendable = (origin: string) => ({
  ...readable(origin),
  'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key',
  'access-control-max-age': '600',
})

t.test('With FRONTEND_URL', async t => {
  const app = await build(t, { DATABASE_URL, NODE_ENV: 'production', FRONTEND_URL: FRONTENDS.join(',') })

  for (const origin of FRONTENDS) {
    t.test(`${origin} may read every response, including errors`, async t => {
      for (const [url, status] of [['/livez', 200], ['/auth/me', 401], ['/nope', 404]] as const) {
        const { statusCode, headers } = await app.inject({ url, headers: { origin } })
        t.strictSame([statusCode, allowed(headers)], [status, readable(origin)])
        t.match(String(headers.vary), /\bOrigin\b/)
      }
    })

    t.test(`${origin} may send requests with any method of the contract, and a token`, async t => {
      for (const [method, url] of [
        ['GET', '/auth/me'], ['POST', '/auth/login'], ['PUT', '/blogs/x'], ['DELETE', '/blogs/x'],
      ] as const) {
        const response = await app.inject(preflight(url, method, origin))
        t.equal(response.statusCode, 204, `${method}: the preflight needs no token`)
        t.equal(response.body, '')
        t.strictSame(allowed(response.headers), sendable(origin))
      }
    })
  }

  t.test('Other origins cannot read responses or send such requests', async t => {
    for (const origin of STRANGERS) {
      const { statusCode, headers } = await app.inject({ url: '/livez', headers: { origin } })
      t.strictSame([statusCode, allowed(headers)], [200, {}], origin)
      t.match(String(headers.vary), /\bOrigin\b/, 'caches keep it apart from responses for frontends')
      t.strictSame(allowed((await app.inject(preflight('/blogs/x', 'PUT', origin))).headers), {}, origin)
    }
  })

  t.test('An OPTIONS request that is not a preflight of such an origin is a 404, as without FRONTEND_URL', async t => {
    for (const headers of [{}, { 'access-control-request-method': 'PUT' }, { origin: 'https://evil.example' }]) {
      const response = await app.inject({ method: 'OPTIONS', url: '/livez', headers })
      t.strictSame([response.statusCode, response.json()], [404, { message: 'Not found' }])
      t.strictSame(allowed(response.headers), {})
    }
    const response = await app.inject({ method: 'OPTIONS', url: '/livez', headers: { origin: FRONTENDS[0] } })
    t.equal(response.statusCode, 204, 'of such an origin it asks for nothing')
  })
})

t.test('Outside production, apps on this machine may read responses and send requests without a setting', async t => {
  for (const variables of [{}, { NODE_ENV: 'development' }, { FRONTEND_URL: 'https://app.example.org' }]) {
    const app = await build(t, { DATABASE_URL, ...variables })
    for (const origin of [
      'http://localhost', 'http://localhost:3000', 'https://localhost:5173', 'http://app.localhost:8080',
      'http://127.0.0.1:5173', 'http://127.1.2.3:80', 'http://[::1]:4200',
    ]) {
      const { headers } = await app.inject({ url: '/livez', headers: { origin } })
      t.strictSame(allowed(headers), readable(origin), origin)
      t.strictSame(allowed((await app.inject(preflight('/auth/login', 'POST', origin))).headers), sendable(origin))
    }
    for (const origin of [
      ...STRANGERS.filter(origin => !origin.startsWith('http://localhost:') && origin !== 'http://localhost'),
      'http://localhost.example.org', 'http://127.0.0.1.example.org', 'http://example.org/localhost', 'ftp://localhost',
      'http://xlocalhost', 'http://evil.example#.localhost', 'http://localhost:3000,http://localhost:5173',
      'http://0.0.0.0:3000', 'http://192.168.0.2:3000', 'http://localhost:3000/',
    ]) {
      const { headers } = await app.inject({ url: '/livez', headers: { origin } })
      t.strictSame(allowed(headers), {}, origin)
      t.match(String(headers.vary), /\bOrigin\b/)
    }
  }
})

t.test('In production without FRONTEND_URL no origin may read responses', async t => {
  const app = await build(t, { DATABASE_URL, NODE_ENV: 'production' })
  for (const origin of [...FRONTENDS, ...STRANGERS]) {
    const { headers } = await app.inject({ url: '/livez', headers: { origin } })
    t.strictSame([allowed(headers), headers.vary], [{}, undefined], origin)
    const response = await app.inject(preflight('/auth/login', 'POST', origin))
    t.strictSame([response.statusCode, allowed(response.headers)], [404, {}], origin)
  }
})
