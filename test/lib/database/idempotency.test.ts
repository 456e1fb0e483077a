import { createHash } from 'node:crypto'

import type { FastifyInstance } from 'fastify'

import { eraseAccount } from '#lib/accounts/erasure.js'
import { assertInvalid, assertMessage } from '../../assertions.ts'
import { build, createDatabase, inject, insert, MAIL, type Person, person, untilBlocked } from '../../helper.ts'
import { MENTOR, TESTIMONIAL } from '../../fixtures.ts'
import { AGENDA_EVENT } from '../../operations.ts'
import t from '../../suite.ts'

// Two instances on one database
const DATABASE_URL = await createDatabase()
const app = await build(t, { ...MAIL, DATABASE_URL })
const second = await build(t, { ...MAIL, DATABASE_URL })
const { sql } = app

const club = await insert(app, 'clubs')
const head = await person(app, 'CLUB_HEAD', { club_id: club })
const admin = await person(app, 'ADMIN')
const event = await insert(app, 'events', { club_id: club, date: new Date(Date.now() + 86_400_000) })
await (await person(app)).inject('POST', `/events/${event}/register`)
const KEY_USED = 'This Idempotency-Key belongs to a different request'
const DRAFT = { title: 'Openings', content: 'How to begin a game of chess.' }

const send = (key: string, url: string, payload: object, { token }: Person = head, service: FastifyInstance = app) =>
  inject(service, 'POST', url, payload, { authorization: `Bearer ${token}`, 'idempotency-key': key })

/** What operations with a key create: their path, body, status and table. */
const OPERATIONS: [url: string, body: object, status: number, table: string][] = [
  ['/agenda', AGENDA_EVENT, 201, 'events'],
  [`/agenda/${event}/copies`, { dates: ['2031-01-01T00:00:00Z', '2031-01-02T00:00:00Z'] }, 201, 'events'],
  ['/blogs/submit', DRAFT, 201, 'blogs'],
  ...['me/events', 'agenda'].map(path => [
    `/${path}/${event}/message`, { subject: 'Boards', text: 'Please bring a board.' }, 202, 'event_messages',
  ] as [string, object, number, string]),
]
/** What admins create. The name of a club is unique. */
const BY_ADMINS: [url: string, body: object][] = [
  ['/blogs', DRAFT],
  ['/mentors', { ...MENTOR, clubId: club }],
  ['/testimonials', TESTIMONIAL],
  ['/clubs', { name: 'Bridge', description: 'A club', clubHeadEmail: (await person(app)).email }],
]
const count = async (table: string) => (await sql`SELECT FROM ${sql(table)}`).length

for (const [url, body, status, table] of OPERATIONS) {
  const path = url.replace(event, ':id')
  t.test(`POST ${path} with a key creates once, even if two instances get it at the same time`, async t => {
    const before = await count(table)
    const plain = await inject(app, 'POST', url, body, { authorization: `Bearer ${head.token}` })
    t.equal(plain.statusCode, status)
    const created = await count(table) - before
    const responses = await Promise.all([app, second, app, second].map(service => send(path, url, body, head, service)))
    t.strictSame(responses.map(({ statusCode }) => statusCode), [status, status, status, status])
    t.equal(new Set(responses.map(({ body }) => body)).size, 1, 'all get the same response')
    t.equal((await send(path, url, body)).body, responses[0]!.body)
    t.equal(await count(table), before + 2 * created)
    assertMessage(t, await send(path, url, { ...body, title: 'A different one', more: 1 }), 422, KEY_USED)
    t.equal(await count(table), before + 2 * created)
  })
}

for (const [url, body] of BY_ADMINS) {
  t.test(`POST ${url} with a key creates once`, async t => {
    const table = url.slice(1)
    const before = await count(table)
    const [first, next] = [await send(url, url, body, admin), await send(url, url, body, admin, second)]
    t.strictSame([first.statusCode, next.statusCode, next.json()], [201, 201, first.json()])
    t.equal(await count(table), before + 1)
    assertMessage(t, await send(url, url, { ...body, more: 1 }, admin), 422, KEY_USED)
  })
}

t.test('Keys of different users are different keys', async t => {
  const other = await person(app, 'CLUB_HEAD', { club_id: club })
  const [first, second] = await Promise.all([head, other].map(who => send('own', '/agenda', AGENDA_EVENT, who)))
  t.not(first!.json().event.id, second!.json().event.id)
})

t.test('A key belongs to an operation and its path', async t => {
  await send('path', '/blogs/submit', DRAFT, admin)
  assertMessage(t, await send('path', '/blogs', DRAFT, admin), 422, KEY_USED)
})

t.test('Repeated messages count as one message', async t => {
  const other = await person(app, 'CLUB_HEAD', { club_id: club })
  const [url, body] = OPERATIONS.at(-1)!
  const repeated = await Promise.all(Array.from({ length: 6 }, () => send('six', url, body, other)))
  t.strictSame(repeated.map(({ statusCode }) => statusCode), Array(6).fill(202))
  for (let n = 1; n < 5; n++) t.equal((await send(`six ${n}`, url, body, other)).statusCode, 202)
  t.equal((await send('six 5', url, body, other)).statusCode, 429)
})

t.test('A failure keeps no key, so the corrected request can use it', async t => {
  assertInvalid(t, await send('failed', '/agenda', { ...AGENDA_EVENT, endsAt: AGENDA_EVENT.date }), ['endsAt'])
  t.equal((await send('failed', '/agenda', AGENDA_EVENT)).statusCode, 201)
})

t.test('A request whose first try fails while it waits creates', async t => {
  const hash = createHash('sha256').update('waits').digest()
  let waiting: ReturnType<typeof send> | undefined
  await sql.begin(async transaction => {
    await transaction`INSERT INTO idempotency_keys (user_id, key, request) VALUES (${head.id}, ${hash}, '')`
    waiting = send('waits', '/agenda', AGENDA_EVENT)
    waiting.catch(() => {})
    await untilBlocked(sql)
    throw new Error('killed')
  }).catch(() => {})
  t.equal((await waiting!).statusCode, 201)
})

t.test('What was deleted since is not created again', async t => {
  // A club with a name and a head of its own
  const CHESS = { name: 'Chess', clubHeadEmail: (await person(app)).email }
  // The other head has sent as many messages as one may.
  const head = await person(app, 'CLUB_HEAD', { club_id: club })
  const all: [url: string, body: object, table: string, who: Person][] = [
    ...OPERATIONS.map(([url, body, , table]) => [url, body, table, head] as [string, object, string, Person]),
    ...BY_ADMINS.map(([url, body]) =>
      [url, { ...body, ...CHESS }, url.slice(1), admin] as [string, object, string, Person]),
  ]
  for (const [url, body, table, who] of all) {
    t.ok((await send('gone', url, body, who)).statusCode < 300, url)
    const [row] = await sql`
      SELECT created_ids::text[] AS ids FROM idempotency_keys WHERE user_id = ${who.id} AND key = sha256('gone')
    `
    await sql`UPDATE users SET club_id = NULL WHERE club_id = ANY (${row!.ids}::uuid[])`
    await sql`DELETE FROM ${sql(table)} WHERE id = ANY (${row!.ids}::uuid[])`
    assertMessage(t, await send('gone', url, body, who), 410,
      'This request was completed, and what it created has been deleted since')
    await sql`DELETE FROM idempotency_keys WHERE user_id = ${who.id} AND key = sha256('gone')`
  }
})

t.test('A user who was deleted gets the error of the operation', async t => {
  const other = await person(app)
  await sql`DELETE FROM users WHERE id = ${other.id}`
  assertMessage(t, await send('late', '/blogs/submit', DRAFT, other), 500, 'Failed to submit blog')
})

t.test('A key has 1 to 255 characters', async t => {
  for (const key of ['', 'x'.repeat(256)]) {
    assertInvalid(t, await send(key, '/agenda', AGENDA_EVENT), ['idempotency-key'])
  }
  t.equal((await send('x'.repeat(255), '/agenda', AGENDA_EVENT)).statusCode, 201)
})

t.test('A key that is older than a day still creates once', async t => {
  const other = await person(app)
  const create = () => send('overnight', '/blogs/submit', DRAFT, other)
  await create()
  await sql`UPDATE idempotency_keys SET created_at = now() - interval '9 days' WHERE user_id = ${other.id}`
  const statuses = (await Promise.all([create(), create()])).map(({ statusCode }) => statusCode)
  t.strictSame(statuses, [201, 201])
  t.equal((await sql`SELECT FROM blogs WHERE author_id = ${other.id}`).length, 1)
})

t.test('Keys are deleted after a day, and with their user', async t => {
  const other = await person(app)
  await send('mine', '/blogs/submit', DRAFT, other)
  await sql`UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE user_id <> ${other.id}`
  const old = () => sql`SELECT FROM idempotency_keys WHERE created_at < now() - interval '1 day'`
  const before = (await old()).length
  await send('next', '/blogs/submit', DRAFT, other)
  t.equal((await old()).length, Math.max(0, before - 10))
  await eraseAccount(sql, sql`${other.id}::uuid`, {})
  t.strictSame([...await sql`SELECT FROM idempotency_keys WHERE user_id = ${other.id}`], [])
})
