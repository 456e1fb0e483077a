import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'

import type { Sql } from '#lib/database/pools.js'
import { type Logger } from '#lib/http/logger.js'
import { migrate } from '#lib/database/migrations.js'
import { PostgresServer } from '../postgres-server.ts'
import { build, insert, make, person } from '../helper.ts'
import { OPERATIONS } from '../operations.ts'
import t, { type Test } from '../suite.ts'

// Uses its own server: commits of other tests would invalidate entries.
const server = await PostgresServer.create(t)
await server.start()
const administration = postgres(server.url(), { max: 1, onnotice () {} })
t.teardown(() => administration.end())
await administration`CREATE DATABASE community`
await migrate(server.url('community'))

/** A service that listens, on its own database. */
async function listen (t: Test, variables: NodeJS.Dict<string> = {}, logger?: Logger) {
  const name = randomUUID()
  await administration`CREATE DATABASE ${administration(name)} TEMPLATE community`
  const app = await build(t, {
    DATABASE_URL: server.url(name), FRONTEND_URL: 'https://app.example.org', ...variables,
  }, logger)
  await app.listen({ port: 0 })
  return app
}

/** Sends a request through a socket. */
async function send (app: FastifyInstance, path: string, headers: OutgoingHttpHeaders = {}, method = 'GET') {
  const { port } = app.server.address() as AddressInfo
  const [response] = await once(request({ port, path, headers, method }).end(), 'response') as [IncomingMessage]
  // Headers that differ in every response.
  const { date, 'x-request-id': _id, ...rest } = response.headers
  return { status: response.statusCode, headers: rest as IncomingHttpHeaders, body: await buffer(response) }
}

/** A public list whose response is compressed. */
async function addTestimonials (app: FastifyInstance) {
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, 'What she says' FROM generate_series(1, 20)
  `
}

const app = await listen(t)
await addTestimonials(app)

// Takes five seconds, because the time of the reads is what is tested.
t.test('Slow reads get responses during steady commits', async t => {
  const app = await listen(t, { DATABASE_TIMEOUT: '2' })
  await addTestimonials(app)
  await app.sql`ALTER TABLE testimonials RENAME TO written`
  await app.sql`CREATE VIEW testimonials AS SELECT written.* FROM pg_sleep(1.1) LEFT JOIN written ON true`
  const commits = setInterval(async () => {
    await app.sql`INSERT INTO clubs (name, description) VALUES (${randomUUID()}, '')`
  }, 20)
  const responses = await Promise.all(Array.from({ length: 50 }, async (_, n) => {
    await sleep(100 * n)
    return app.inject('/testimonials')
  }))
  clearInterval(commits)
  // A request that arrives at the beginning of a read waits for 1.1 s before its own begins.
  const { length } = responses.filter(({ statusCode }) => statusCode === 200)
  t.ok(length > 20, `${length}`)
})

t.test('A response has an entity tag, which a client may send to get a 304', async t => {
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
  const conditional = { 'if-none-match': etag, 'cache-control': 'no-cache', pragma: 'no-cache' }
  t.equal((await send(app, '/testimonials', conditional)).status, 304, 'as fetch() sends it with a header of ours')
  t.equal((await send(app, '/testimonials', { 'if-none-match': `x${etag}` })).status, 200)
  t.equal((await send(app, '/testimonials', { 'if-modified-since': new Date().toUTCString() })).status, 200)
  const { status, headers } = await send(app, '/testimonials', { 'if-none-match': etag }, 'HEAD')
  t.strictSame([status, headers.etag, headers['content-length'], headers['content-type'], headers['transfer-encoding']],
    [304, etag, undefined, undefined, undefined])
})

t.test('A poll gets a 304 until the response changes, also after other writes', async t => {
  const { headers: { etag } } = await send(app, '/mentors')
  await person(app)
  t.equal((await send(app, '/mentors', { 'if-none-match': etag })).status, 304)
  const id = await insert(app, 'mentors', { club_id: await insert(app, 'clubs') })
  const changed = await send(app, '/mentors', { 'if-none-match': etag })
  t.equal(changed.status, 200)
  t.not(changed.headers.etag, etag)
  t.match(JSON.parse(String(changed.body)), { mentors: [{ id }] })
})

t.test('Two instances give the same response the same tag', async t => {
  t.equal((await send(app, '/blogs')).headers.etag, (await send(await listen(t), '/blogs')).headers.etag)
})

t.test('A response has the content coding that the client prefers', async t => {
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
      t.not(headers.etag, plain.headers.etag, 'each coding has its own tag')
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

t.test('Responses that fit into a packet are not compressed', async t => {
  const { headers } = await send(app, '/clubs', { 'accept-encoding': 'br, gzip' })
  t.strictSame([headers['content-encoding'], headers.vary], [undefined, 'Origin, Accept-Encoding'])
})

t.test('A hit has the same headers and bytes as the miss, for each origin and coding', async t => {
  // A commit, so that the cache has no list
  await person(app)
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

t.test('While the service stops, a cached response closes its connection', async t => {
  await send(app, '/clubs')
  t.intercept(app, 'isClosing', { value: () => true })
  t.equal((await send(app, '/clubs')).headers.connection, 'close')
})

t.test('A small picture comes from memory, unencoded, until it is deleted', async t => {
  const app = await listen(t)
  const { id: user } = await person(app)
  const small = randomBytes(20_000)
  const add = () => insert(app, 'pictures', { user_id: user, large: randomBytes(90_000), small, width: 9, height: 9 })
  const [id, other] = [await add(), await add()]
  const path = `/pictures/${id}?width=480`
  t.equal((await send(app, path)).status, 200)
  const { hits, misses } = app.cache.counts
  const { status, headers, body } = await send(app, path, { 'accept-encoding': 'br' })
  t.strictSame([app.cache.counts.hits, app.cache.counts.misses], [hits + 1, misses])
  t.equal(status, 200)
  t.ok(body.equals(small))
  t.match(headers, { 'content-type': 'image/webp', 'cache-control': 'public, max-age=31536000, immutable' })
  t.strictSame([headers.vary, headers['content-encoding']], [undefined, undefined])
  t.equal((await send(app, path, { 'if-none-match': headers.etag })).status, 304)

  const bytes = app.cache.bytes()
  t.ok(bytes < small.length + 1000, 'an encoding is not expected')
  t.equal((await send(app, `/pictures/${id}`)).body.length, 90_000)
  t.equal(app.cache.bytes(), bytes, 'the large version stays in the database')

  await app.sql`DELETE FROM pictures WHERE id = ${other}`
  t.equal((await send(app, path)).status, 200)
  await app.sql`DELETE FROM pictures WHERE id = ${id}`
  for (const gone of [path, `/pictures/${id}`]) t.equal((await send(app, gone)).status, 404, gone)
})

t.test('Each GET declares who shares its responses, and guarded ones are private', async t => {
  const declared: Record<string, unknown> = {}
  const { app } = await make(t, { DATABASE_URL: server.url('community') })
  app.addHook('onRoute', ({ method, url, config, schema }) => {
    if (method === 'GET' && !schema?.hide && config?.failure) declared[`GET ${url}`] = config.cache
  })
  await app.ready()
  const reads = Object.entries(OPERATIONS).filter(([name, { failure }]) => name.startsWith('GET ') && failure)
  t.strictSame(declared, Object.fromEntries(reads.map(([name, { cache }]) => [name, cache])),
    'add what is missing to OPERATIONS in test/operations.ts')
  for (const [name, { access, cache }] of reads) {
    // Exports are streamed, and sign-ins are not lists.
    if (/export|google/.test(name)) t.equal(cache, undefined, name)
    else t.equal(cache, access === 'anyone' ? 'public' : 'private', name)
  }
})

t.test('A guarded route cannot be public, and a route must declare who shares its responses', async t => {
  const { app } = await make(t, { DATABASE_URL: server.url('community') })
  const one = (sql: Sql) => ({ fields: sql`SELECT 1 AS one` })
  app.register(async app => {
    t.throws(() => app.get('/guarded', { onRequest: app.authenticate, config: { cache: 'public' } }, async () => {}),
      { message: '/guarded has a guard, so config.cache must be private' })
    app.get('/silent', { config: { failure: 'It failed' } }, async (_request, reply) => { await reply.sendCached(one) })
  })
  await app.ready()
  const response = await app.inject('/silent')
  t.strictSame([response.statusCode, response.json()], [500, { message: 'It failed' }])
})
