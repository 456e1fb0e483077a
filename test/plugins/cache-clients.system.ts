// What clients make the service hold is counted and limited. Uses its own server: commits of other tests would
// invalidate entries.
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t from 'tap'

import { migrate } from '#lib/database/migrations.js'
import { clubsQuery } from '#routes/clubs/queries.js'
import { PostgresServer } from '../postgres-server.ts'
import { build, person } from '../helper.ts'

const server = await PostgresServer.create(t)
await server.start()
const sql = postgres(server.url('postgres'), { max: 1, onnotice () {} })
t.teardown(() => sql.end())
await sql`CREATE DATABASE community`
await migrate(server.url('community'))

t.test('past MAX_HELD_BYTES the connections that hold the most are closed, and others are served', async t => {
  const app = await build(t, {
    DATABASE_URL: server.url('community'), MAX_HELD_BYTES: '8000000', CACHE_SIZE_MB: '2',
  })
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, repeat('x', 30000) || n FROM generate_series(1, 100) AS n
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)

  const sockets = Array.from({ length: 10 }, () => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.7' }))
  for (const [index, socket] of sockets.entries()) {
    socket.on('error', () => {}).pause()
    socket.write(`GET /testimonials?limit=${90 + index} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(3))
    await sleep(100)
  }
  for (let polls = 0; app.budget.closed === 0 && polls < 500; polls++) await sleep(20)
  t.ok(app.budget.closed > 0)
  t.ok(app.budget.bytes <= 8_000_000)
  for (const path of ['/testimonials?limit=80', '/clubs', '/livez']) {
    const response = await get(path)
    await response.text()
    t.equal(response.status, 200, path)
  }

  for (const socket of sockets) socket.destroy()
  for (let polls = 0; app.budget.bytes > 0 && polls < 100; polls++) {
    app.server.closeIdleConnections()
    await sleep(50)
  }
  t.equal(app.budget.bytes, 0, 'nothing is left behind')
})

t.test('a connection counts from its beginning, and its headers from their first byte until the response', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community') })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const count = async (isReached: () => boolean) => {
    for (let polls = 0; !isReached() && polls < 100; polls++) await sleep(20)
    return app.budget.bytes
  }
  const idle = await count(() => app.budget.bytes > 0)
  t.ok(idle > 2000, 'an idle connection')
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n')
  t.ok(await count(() => app.budget.bytes > idle) > idle + 10_000, 'headers of an unknown number')
  socket.write(`X: ${'x'.repeat(9000)}`)
  t.ok(await count(() => app.budget.bytes > idle + 19_000) > idle + 19_000, 'long headers')
  socket.write('\r\n\r\n')
  t.equal(await count(() => app.budget.bytes === idle), idle, 'after the response')
})

t.test('headers that never end close their connections, and neither those of others nor of a proxy', async t => {
  const app = await build(t, {
    DATABASE_URL: server.url('community'), MAX_HELD_BYTES: '2000000', TRUST_PROXY: '127.0.0.6',
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const open = (localAddress: string, count: number, text: string) => Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {}).resume()
    socket.write(text)
    t.teardown(() => socket.destroy())
    return socket
  })
  const request = 'GET /livez HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n'
  const others = [...open('127.0.0.6', 150, request), ...open('127.0.0.5', 10, request)]
  await Promise.all(others.map(socket => once(socket, 'data')))
  for (let n = 0; n < 3; n++) {
    const { closed } = app.budget
    open('127.0.0.7', 60, `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(15_000)}`)
    for (let polls = 0; app.budget.closed === closed && polls < 100; polls++) await sleep(20)
    t.ok(app.budget.closed > closed)
  }
  for (let polls = 0; app.budget.bytes > 2_000_000 && polls < 100; polls++) await sleep(20)
  for (const socket of others) socket.write(request)
  await Promise.all(others.map(socket => once(socket, 'data')))
})

t.test('a body counts by its announced length, and one in chunks by the longest that is read', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community') })
  const { token } = await person(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const cases: [path: string, header: string, bytes: number][] = [
    ['/blogs/submit', 'Content-Length: 300000', 300_000],
    ['/blogs/submit', 'Transfer-Encoding: chunked', 1_048_576],
    ['/auth/login', 'Transfer-Encoding: chunked', 16_384],
  ]
  for (const [path, header, bytes] of cases) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\n${header}\r\n\r\n`)
    for (let polls = 0; app.budget.bytes < bytes && polls < 100; polls++) await sleep(20)
    t.ok(app.budget.bytes >= bytes && app.budget.bytes < bytes + 16_384, `${path}, ${header}`)
    socket.destroy()
    for (let polls = 0; app.budget.bytes > 0 && polls < 100; polls++) await sleep(20)
    t.equal(app.budget.bytes, 0, 'the client has gone')
  }
})

t.test('uncached responses also count', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community') })
  const { id, token } = await person(app)
  const [draft] = await app.sql<[{ id: string }]>`
    INSERT INTO blogs (title, content, author_id)
    SELECT 'A draft', repeat('x', 1000000), ${id} FROM generate_series(1, 20) RETURNING id
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  /** The bytes that are held, at least so many, for a client that sends these requests and does not read responses. */
  async function heldFor (path: string, count: number, least: number) {
    const socket = connect(port, '127.0.0.1').pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(count))
    for (let polls = 0; app.budget.bytes < least && polls < 500; polls++) await sleep(20)
    const { bytes } = app.budget
    socket.destroy()
    for (let polls = 0; app.budget.bytes > 0 && polls < 100; polls++) await sleep(20)
    return bytes
  }
  // The kernel takes some of them.
  for (const read of ['after a commit', 'when nothing has changed']) {
    const bytes = await heldFor(`/blogs/${draft.id}`, 8, 1_000_000)
    t.ok(bytes >= 1_000_000, `drafts, ${read}: ${bytes}`)
  }
  const least = 4 * app.config.MAX_BODY_BYTES
  const bytes = await heldFor('/me/export', 1, least)
  t.ok(bytes >= least, `an export: ${bytes}`)
})

t.test('a list of more than half of MAX_HELD_BYTES fails as declared, and an export has all of it', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community'), MAX_HELD_BYTES: '4000000' })
  const { id, token } = await person(app, 'ADMIN')
  const add = (status: string) => app.sql`
    INSERT INTO blogs (title, content, author_id, status)
    SELECT 'A post', repeat('x', 100000), ${id}, ${status} FROM generate_series(1, 21)
  `
  await add('DRAFT')
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } })
    return [response.status, await response.json() as any] as const
  }
  t.strictSame(await get('/blogs/me'), [500, { message: 'Failed to fetch your blogs' }])
  t.strictSame(await get('/blogs/admin'), [500, { message: 'Failed to fetch blogs' }])
  t.equal((await get('/blogs'))[0], 200)
  await add('PUBLISHED')
  t.strictSame(await get('/blogs'), [500, { message: 'Failed to fetch blogs' }])
  // A list that is told before the other shows that this list was refused.
  const stream = await fetch(`http://127.0.0.1:${port}/live?list=/blogs&list=/mentors`)
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
  let told = ''
  while (!told.includes('data:')) told += (await reader.read()).value
  await app.sql`SELECT pg_sleep(1)`
  t.notMatch(told + (await Promise.race([reader.read(), { value: '' }])).value, '"list":"/blogs"')
  await reader.cancel()
  const [status, { blogs }] = await get('/me/export')
  t.strictSame([status, blogs.length, app.budget.closed], [200, 42, 0])
})

t.test('GET /clubs fails as declared before PostgreSQL makes a row of the titles of a club', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community'), MAX_HELD_BYTES: '4000000' })
  const [club] = await app.sql<[{ id: string }]>`
    INSERT INTO clubs (name, description) VALUES ('Chess', 'They play') RETURNING id
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const titles = [['x', 1_800_000, 200], ['x', 2_100_000, 500], ['\u0001', 350_000, 500]] as const
  for (const [letter, length, status] of titles) {
    await app.sql`DELETE FROM events WHERE club_id = ${club.id}`
    await app.sql`
      INSERT INTO events (title, description, date, club_id)
      SELECT repeat(${letter}, ${length / 10}), '', now(), ${club.id} FROM generate_series(1, 10)
    `
    const response = await fetch(`http://127.0.0.1:${port}/clubs`)
    t.equal(response.status, status, `${length} × ${JSON.stringify(letter)}`)
    const { length: rows } = await clubsQuery(app.sql, 2_000_000).list!.rows
    t.equal(rows > 0, status === 200)
    const body = await response.json() as any
    if (status === 500) t.strictSame(body, { message: 'Error fetching clubs' })
    else t.equal(body.clubs.find(({ id }: { id: string }) => id === club.id).events.length, 10)
  }
  await app.sql`DELETE FROM events WHERE club_id = ${club.id}`
})

t.test('exports and documents are sent however small MAX_HELD_BYTES is', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community'), MAX_HELD_BYTES: '1048576' })
  const { token } = await person(app)
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  for (const path of ['/me/export', '/docs/static/index.css']) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } })
    t.ok((await response.text()).length > 100, path)
  }
})
