// Lists that are too long for the cache are sent in batches, because anybody can make them long by signing up.
import { setTimeout as sleep } from 'node:timers/promises'

import type { LightMyRequestResponse } from 'fastify'

import { assertResponse } from '../assertions.ts'
import { clientIn } from '../clients.ts'
import { bearer, build, createDatabase, insert, make, person } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const DATABASE_URL = await createDatabase()
/** The cache of this service takes lists of 524,288 bytes. */
const SMALL = { DATABASE_URL, MAX_HELD_BYTES: '1048576' }
const [app, small] = [await build(t, { DATABASE_URL }), await build(t, SMALL)]
const { sql } = app

const admin = await person(app, 'ADMIN')
const club = await insert(app, 'clubs')
const head = await person(app, 'CLUB_HEAD', { club_id: club })
const event = await insert(app, 'events', { club_id: club })

// More rows than a batch has, ten of them with the same time. JSON escapes some of their letters.
await sql`
  INSERT INTO users (email, password, first_name, last_name, club_id, created_at)
  SELECT
    n || '@example.org', '!', repeat('x', 1000) || E'"\\\\\u0001\u2028é\n', 'Lovelace',
    CASE WHEN n % 2 = 0 THEN ${club}::uuid END, timestamptz '2026-01-31' + n / 10 * interval '1 ms'
  FROM generate_series(1, 600) AS n
`
await sql`
  INSERT INTO blogs (title, content, author_id, created_at)
  SELECT 'A post', repeat('ab"é', 500), id, created_at FROM users
`
await sql`
  INSERT INTO event_registrations (user_id, event_id, registered_at) SELECT id, ${event}, created_at FROM users
`

const REGISTRATIONS = `/events/${event}/registrations`

/** A service on a port. It does not record responses, because the recording would buffer them. */
async function listen (t: Test) {
  const { app } = await make(t, SMALL)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const get = (path: string, signal?: AbortSignal) =>
    fetch(url + path, { headers: bearer(admin.token), ...signal && { signal } })
  return { app, get }
}

/** Headers that differ between responses. */
const ofResponse = ({ headers }: LightMyRequestResponse) => ({
  date: headers.date, 'x-request-id': headers['x-request-id'], 'content-length': headers['content-length'],
})

t.test('A list that is too long for the cache has the same bytes and headers, except its length', async t => {
  for (const url of ['/blogs/admin', '/users', REGISTRATIONS]) {
    const request = { url, headers: bearer(admin.token) }
    const [cached, sent] = [await app.inject(request), await small.inject(request)]
    t.ok(cached.body.length > 600_000, url)
    t.ok(sent.body === cached.body, url)
    t.strictSame({ ...sent.headers, ...ofResponse(cached) }, { ...cached.headers, 'transfer-encoding': 'chunked' })
  }
  t.equal(small.cache.bytes(), 0)
})

t.test('A list of letters that JSON makes long is sent in batches', async t => {
  await sql`UPDATE blogs SET content = repeat(E'\u0001', 200)`
  const { statusCode, headers, body } = await small.inject({ url: '/blogs/admin', headers: bearer(admin.token) })
  t.strictSame([statusCode, headers['content-length']], [200, undefined])
  t.ok(body.length > 524_288)
  t.equal(JSON.parse(body).blogs.length, 602)
})

t.test('HEAD of a long list has its headers, and reads no rows', async t => {
  const { statusCode, headers, body } = await small.inject({
    method: 'HEAD', url: '/users', headers: bearer(admin.token),
  })
  t.strictSame([statusCode, headers['content-type'], headers['cache-control'], body], [
    200, 'application/json; charset=utf-8', 'no-store', '',
  ])
})

t.test('A person who loses a right before the first batch gets the error', async t => {
  const { lists } = small.queues
  const { run } = lists
  t.intercept(lists, 'run', {
    async value (...args: Parameters<typeof run>) {
      await sql`UPDATE users SET club_id = NULL WHERE id = ${head.id}`
      return run.apply(lists, args)
    },
  })
  const response = await small.inject({ url: REGISTRATIONS, headers: bearer(head.token) })
  assertResponse(t, response, 403, { message: 'Not allowed to view registrations for this event' })
})

t.test('The batches of a long list wait in the queue of lists', async t => {
  const { app, get } = await listen(t)
  const { lists } = app.queues
  let end!: () => void
  const first = lists.run(clientIn('other'), () => new Promise<void>(resolve => { end = resolve }), 3)
  const response = get('/users')
  while (lists.waiting === 0) await sleep(5)
  end()
  await first
  t.equal(JSON.parse(await (await response).text()).users.length, 602)
})

t.test('The reads of a long list end when its client has gone', async t => {
  const { app, get } = await listen(t)
  await sql`UPDATE users SET first_name = repeat('x', 50000)`
  const { lists } = app.queues
  const { run } = lists
  let count = 0
  t.intercept(lists, 'run', {
    value (...args: Parameters<typeof run>) {
      count++
      return run.apply(lists, args)
    },
  })
  const client = new AbortController()
  const response = await get('/users', client.signal)
  t.equal(response.status, 200)
  client.abort()
  await t.rejects(response.text())
  while ([...app.connections].some(([, { responses }]) => responses.size > 0)) await sleep(5)
  const before = count
  await sleep(100)
  t.equal(count, before)
  t.ok(count < 80, 'of more than 100 batches')
})

t.test('A long list that cannot be read to its end is truncated detectably', async t => {
  const { app, get } = await listen(t)
  const response = await get('/users')
  t.equal(response.status, 200)
  await app.sql.end({ timeout: 0 })
  await t.rejects(response.text())
})

t.test('Other lists of organizers have at most 200 characters of each name', async t => {
  const longest = (people: { name: string }[]) => Math.max(...people.map(({ name }) => name.length))
  const listOf = async (url: string) => (await app.inject({ url, headers: bearer(admin.token) })).json()
  t.equal(longest((await listOf(`/agenda/${event}/seats`)).seats), 200)
  const asking = await person(app, 'STUDENT', { first_name: 'x'.repeat(201) })
  await sql`INSERT INTO club_members (user_id, club_id, state) VALUES (${asking.id}, ${club}, 'requested')`
  const { members, requests } = await listOf(`/club-pages/${club}/members`)
  t.strictSame([longest(members), longest(requests)], [200, 200])
})
