import { createLogger } from '#lib/http/logger.js'
import { ACCOUNT } from '../fixtures.ts'
import { build, buildWithRoutes, inject, nameOf, person } from '../helper.ts'
import { OPERATIONS } from '../operations.ts'
import t from '../suite.ts'

let text = ''
const { app, routes } = await buildWithRoutes(t, {}, createLogger('trace', { write (line) { text += line } }))
const { DATABASE_URL } = app.config
const admin = await person(app, 'ADMIN')

t.test('Every response has the security headers', async t => {
  for (const path of ['/events', '/auth/me', '/no/such/path', '/testimonials?limit=x']) {
    const { headers } = await inject(app, 'GET', path)
    t.equal(headers['content-security-policy'], "default-src 'none';base-uri 'none';frame-ancestors 'none'", path)
    t.equal(headers['x-content-type-options'], 'nosniff', path)
    t.equal(headers['strict-transport-security'], 'max-age=31536000', path)
    t.equal(headers['x-powered-by'], undefined, path)
  }
})

t.test('HSTS is a value of Strict-Transport-Security, or off', async t => {
  for (const HSTS of ['max-age=60; includeSubDomains', 'off']) {
    const app = await build(t, { DATABASE_URL, HSTS })
    const { headers } = await inject(app, 'GET', '/clubs')
    t.equal(headers['strict-transport-security'], HSTS === 'off' ? undefined : HSTS)
  }
})

t.test('Other reads, errors and sign-ins are no-store', async t => {
  const reads = Object.entries(OPERATIONS)
    .flatMap(([name, { cacheControl }]) => /^GET [^:]+$/.test(name) && !cacheControl ? name.slice('GET '.length) : [])
  const errors = ['/no/such/path', '/blogs/no-such-blog', '/testimonials?limit=x', '/events?limit=-1']
  for (const path of [...reads, ...errors]) {
    const { headers } = await admin.inject('GET', path)
    t.equal(headers['cache-control'], 'no-store', path)
  }
  for (const operation of ['register', 'login', 'login?wrong']) {
    const { headers } = await inject(app, 'POST', `/auth/${operation}`, ACCOUNT)
    t.equal(headers['cache-control'], 'no-store', operation)
  }
  t.equal((await admin.inject('GET', '/auth/me')).headers['cache-control'],
    'no-store, no-cache, must-revalidate, private')
})

t.test('Reads have the Cache-Control of the contract', async t => {
  const declared = Object.fromEntries(routes.filter(({ config }) => config?.cacheControl)
    .map(route => [nameOf(route), route.config!.cacheControl]))
  const listed = Object.entries(OPERATIONS).filter(([, { cacheControl }]) => cacheControl)
  t.strictSame(declared, Object.fromEntries(listed.map(([name, { cacheControl }]) => [name, cacheControl])),
    'add what is missing to OPERATIONS in test/operations.ts')
  for (const [name, { access, cacheControl }] of listed) {
    const path = name.split(' ')[1]!
    if (access !== 'anyone' || path.includes(':')) continue
    t.equal((await inject(app, 'GET', path)).headers['cache-control'], cacheControl, name)
  }
})

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

t.test('The request id and trace id are in every line of the log, and the request id in the response', async t => {
  text = ''
  const given = { 'x-request-id': 'request-1', traceparent: `00-${TRACE}-${PARENT}-01` }
  const response = await inject(app, 'GET', '/clubs', undefined, given)
  t.equal(response.headers['x-request-id'], 'request-1')
  const lines = text.trim().split('\n').map(line => JSON.parse(line))
  t.equal(lines.length, 1)
  for (const line of lines) t.match(line, { reqId: 'request-1', traceId: TRACE, parentId: PARENT })

  text = ''
  const other = await inject(app, 'GET', '/nowhere', undefined, { 'x-request-id': 'not\tone', traceparent: 'nor that' })
  t.match(other.headers['x-request-id'], /^[\da-f-]{36}$/)
  for (const line of text.trim().split('\n').map(line => JSON.parse(line))) {
    t.equal(line.reqId, other.headers['x-request-id'])
    t.notOk('traceId' in line || 'parentId' in line)
  }
})
