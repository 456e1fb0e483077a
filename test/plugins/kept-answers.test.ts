import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import type { FastifyInstance, FastifyServerOptions } from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'

import { migrate } from '#lib/migrations.js'
import { Cluster } from '../cluster.ts'
import { build, person } from '../helper.ts'

// On a server of its own: whatever another test commits would have every answer read again.
const server = await Cluster.create(t)
await server.start()
const administration = postgres(server.url(), { max: 1, onnotice () {} })
t.teardown(() => administration.end())
await administration`CREATE DATABASE community`
await migrate(server.url('community'))

/** A service that logs no requests and so answers repeated ones before it routes them. */
async function listen (t: Test, variables: NodeJS.Dict<string> = {}, logger?: FastifyServerOptions['logger']) {
  const name = randomUUID()
  await administration`CREATE DATABASE ${administration(name)} TEMPLATE community`
  const app = await build(t, {
    DATABASE_URL: server.url(name), LOG_LEVEL: 'warn', FRONTEND_URL: 'https://app.example.org', ...variables,
  }, logger)
  await app.listen({ port: 0 })
  return app
}

/** Sends a request through a socket, which `inject` does not. */
async function send (app: FastifyInstance, path: string, headers: OutgoingHttpHeaders = {}, method = 'GET') {
  const { port } = app.server.address() as AddressInfo
  const [response] = await once(request({ port, path, headers, method }).end(), 'response') as [IncomingMessage]
  // What is of this one response.
  const { date, 'x-request-id': _id, 'server-timing': _time, ...rest } = response.headers
  return { status: response.statusCode, headers: rest as IncomingHttpHeaders, body: await buffer(response) }
}

/** What a route that answers at length is asked for. */
async function addTestimonials (app: FastifyInstance, count = 20) {
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, 'What she says' FROM generate_series(1, ${count}::int)
  `
}

t.test('an answer has an entity tag, and who has it already gets no body', async t => {
  const app = await listen(t)
  await addTestimonials(app)
  const first = await send(app, '/testimonials')
  t.equal(first.status, 200)
  t.match(first.headers.etag, /^"[\w-]{43}"$/)
  t.equal(JSON.parse(String(first.body)).total, 20)

  const etag = String(first.headers.etag)
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const { status, headers, body } = await send(app, '/testimonials', { 'if-none-match': tag })
    t.strictSame([status, headers.etag, String(body)], [304, etag, ''], tag)
    t.notOk(headers['content-type'] ?? headers['content-length'], tag)
    t.equal(headers.vary, first.headers.vary, tag)
  }
  t.equal((await send(app, '/testimonials', { 'if-none-match': '"other"' })).status, 200)
  const reload = { 'if-none-match': etag, 'cache-control': 'no-cache' }
  t.equal((await send(app, '/testimonials', reload)).status, 200, 'a reload gets it all')
})

t.test('a poll gets no body as long as the answer stays, whatever else is written, and a new one then', async t => {
  const app = await listen(t)
  await addTestimonials(app)
  const { headers: { etag } } = await send(app, '/testimonials')
  await person(app)
  t.equal((await send(app, '/testimonials', { 'if-none-match': etag })).status, 304)
  await addTestimonials(app, 1)
  const changed = await send(app, '/testimonials', { 'if-none-match': etag })
  t.equal(changed.status, 200)
  t.not(changed.headers.etag, etag)
  t.equal(JSON.parse(String(changed.body)).total, 21)
})

t.test('two instances give one answer one tag', async t => {
  const [one, other] = [await listen(t), await listen(t)]
  t.equal((await send(one, '/clubs')).headers.etag, (await send(other, '/clubs')).headers.etag)
})

t.test('it comes in the coding that the client likes best', async t => {
  const app = await listen(t)
  await addTestimonials(app)
  const plain = await send(app, '/testimonials')
  t.equal(plain.headers['content-encoding'], undefined)
  const decoders: { [coding: string]: (bytes: Buffer) => Buffer } = { gzip: gunzipSync, br: brotliDecompressSync }
  for (const [accepted, coding] of [
    ['gzip', 'gzip'], ['br', 'br'], ['gzip, deflate, br, zstd', 'br'], ['br;q=0.5, gzip', 'gzip'], ['*', 'br'],
  ] as const) {
    for (const time of ['first', 'second']) {
      const { headers, body } = await send(app, '/testimonials', { 'accept-encoding': accepted })
      t.equal(headers['content-encoding'], coding, `${accepted}, ${time} time`)
      t.equal(headers['content-length'], String(body.length))
      t.ok(body.length < plain.body.length / 2)
      t.strictSame(decoders[coding]!(body), plain.body)
      t.not(headers.etag, plain.headers.etag, 'another representation has another tag')
      const poll = { 'accept-encoding': accepted, 'if-none-match': headers.etag }
      const { status, headers: { 'content-encoding': none } } = await send(app, '/testimonials', poll)
      t.strictSame([status, none], [304, undefined])
    }
  }
  for (const accepted of ['identity', 'deflate', 'gzip;q=0', '']) {
    const { headers, body } = await send(app, '/testimonials', { 'accept-encoding': accepted })
    t.strictSame([headers['content-encoding'], body], [undefined, plain.body], accepted)
  }
})

t.test('what fits into a packet is not compressed', async t => {
  const app = await listen(t)
  const { headers } = await send(app, '/testimonials', { 'accept-encoding': 'br, gzip' })
  t.strictSame([headers['content-encoding'], headers.vary], [undefined, 'Origin, Accept-Encoding'])
})

t.test('a repeated request gets the same headers and bytes as the first, for each origin and coding', async t => {
  const app = await listen(t)
  await addTestimonials(app)
  const paths = ['/events', '/events?page=2&limit=5', '/blogs', '/mentors', '/clubs', '/testimonials', '/testimonials/']
  for (const path of paths) {
    for (const origin of ['https://app.example.org', 'https://elsewhere.example.org', undefined]) {
      for (const coding of ['gzip', undefined]) {
        const headers = { ...origin && { origin }, ...coding && { 'accept-encoding': coding } }
        const [first, second] = [await send(app, path, headers), await send(app, path, headers)]
        t.strictSame(second, first, `${path} ${origin} ${coding}`)
        const allowed = origin === 'https://app.example.org' ? origin : undefined
        t.equal(second.headers['access-control-allow-origin'], allowed, `${path} ${origin} ${coding}`)
      }
    }
  }
})

/** Counts the requests that are routed. */
function countRouted (app: FastifyInstance) {
  const routed: string[] = []
  const { repeatResponse } = app
  app.repeatResponse = (request, response, next) => repeatResponse(request, response, (...args) => {
    routed.push(`${request.method} ${request.url}`)
    next(...args)
  })
  return routed
}

t.test('a repeated request is answered before it is routed', async t => {
  const app = await listen(t)
  const routed = countRouted(app)
  for (let time = 0; time < 3; time++) await send(app, '/clubs')
  t.strictSame(routed, ['GET /clubs'])
  const { status, headers: { etag } } = await send(app, '/clubs', {}, 'HEAD')
  t.strictSame([status, etag], [200, (await send(app, '/clubs')).headers.etag])
  t.strictSame(routed, ['GET /clubs', 'HEAD /clubs'], 'with another method it is another request')

  await addTestimonials(app, 1)
  for (let time = 0; time < 3; time++) await send(app, '/clubs')
  t.strictSame(routed, ['GET /clubs', 'HEAD /clubs', 'GET /clubs'], 'and after something was written')
})

t.test('of those who ask at once after something was written, one is routed, and all get its answer', async t => {
  const app = await listen(t)
  await send(app, '/testimonials')
  const routed = countRouted(app)
  await addTestimonials(app)
  const responses = await Promise.all(Array.from({ length: 20 }, () => send(app, '/testimonials')))
  for (const { body } of responses) t.equal(JSON.parse(String(body)).total, 20)
  t.strictSame(routed, ['GET /testimonials'])

  await app.sql`ALTER TABLE testimonials RENAME TO elsewhere`
  const failures = await Promise.all(Array.from({ length: 20 }, () => send(app, '/testimonials')))
  for (const { status } of failures) t.equal(status, 500)
  t.equal(routed.length, 21, 'a failure is for nobody else')
})

t.test('requests that are to be logged are routed', async t => {
  const app = await listen(t, { LOG_LEVEL: 'info' })
  const routed = countRouted(app)
  for (let time = 0; time < 3; time++) await send(app, '/clubs')
  t.equal(routed.length, 3)
})

t.test('while the service stops, and when the database does not answer, a repeated request is routed', async t => {
  const app = await listen(t)
  const routed = countRouted(app)
  await send(app, '/clubs')
  await app.sqlProbe.end()
  const { status, body } = await send(app, '/clubs')
  t.strictSame([status, JSON.parse(String(body))], [500, { message: 'Error fetching clubs' }])
  t.equal(routed.length, 2)

  app.isClosing = () => true
  await send(app, '/clubs')
  t.equal(routed.length, 3)
})

t.test('what only one person may see has no tag, is not compressed, and is nobody else\'s answer', async t => {
  const app = await listen(t)
  const [ada, grace] = [await person(app), await person(app, 'STUDENT', { first_name: 'Grace' })]
  for (const { id, token } of [ada, grace, ada, grace]) {
    const headers = { authorization: `Bearer ${token}`, 'accept-encoding': 'br, gzip' }
    const me = await send(app, '/auth/me', headers)
    t.equal(JSON.parse(String(me.body)).user.id, id)
    t.strictSame([me.headers.etag, me.headers['content-encoding']], [undefined, undefined])
  }
  t.equal((await send(app, '/auth/me')).status, 401)
})

t.test('an answer is sent once: nothing is amiss in the log', async t => {
  const lines: string[] = []
  const stream = new Writable({
    write (line, _encoding, done) {
      lines.push(String(line))
      done()
    },
  })
  const app = await listen(t, {}, { level: 'warn', stream })
  const { token } = await person(app)
  for (const path of ['/auth/me', '/events/registered', '/blogs', '/testimonials', '/blogs/no-such-blog']) {
    const { headers: { etag } } = await send(app, path, { authorization: `Bearer ${token}` })
    for (let time = 0; time < 3; time++) {
      await send(app, path, { authorization: `Bearer ${token}`, ...etag && { 'if-none-match': etag } })
      // The next one finds the database changed.
      await person(app)
    }
  }
  t.strictSame(lines, [])
})

t.test('more answers than can be kept are all right', async t => {
  const app = await listen(t, { KEPT_ANSWERS_SIZE: '1' })
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, repeat('long ', 2000) || n FROM generate_series(1, 100) AS n
  `
  for (let time = 0; time < 2; time++) {
    for (let page = 1; page <= 25; page++) {
      const { body } = await send(app, `/testimonials?limit=4&page=${page}`)
      t.equal(JSON.parse(String(body)).items.length, 4)
      t.equal(JSON.parse(String(body)).page, page)
    }
  }
})
