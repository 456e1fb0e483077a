// The size of responses is limited. Uses its own server: commits of other tests would
// invalidate entries.
import type { AddressInfo } from 'node:net'

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

t.test('a list of more than half of MAX_HELD_BYTES fails as declared, and lists of admins have all of it', async t => {
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
  const [all, { blogs: drafts }] = await get('/blogs/admin')
  t.strictSame([all, drafts.length], [200, 21])
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
  t.strictSame([status, blogs.length, app.memory.closed], [200, 42, 0])
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
