import { randomUUID } from 'node:crypto'

import type { LightMyRequestResponse } from 'fastify'

import { assertResponse, shown } from '../assertions.ts'
import { build, inject, insert, person, type Person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const { sql } = app
let admin: Person
t.beforeEach(async () => { admin = await person(app, 'ADMIN') })

const JSON_BODY = { 'content-type': 'application/json' }
const FAILED = { message: 'Error creating club' }
const NO_HEAD = { message: 'Club head not found' }
const REQUIRED = { message: 'Name and description are required' }
const NUL = '\0'

async function addClub (fields: Record<string, unknown> = {}) {
  const club = { name: randomUUID(), description: 'A club', ...fields }
  const [row] = await sql<{ id: string, name: string }[]>`INSERT INTO clubs ${sql(club)} RETURNING id, name`
  return row!
}

/** Finds the clubs of this name in the database. */
async function clubsCalled (name: string) {
  return [...await sql`SELECT * FROM clubs WHERE name = ${name}`].map(club => ({ ...club }))
}

async function countClubs () {
  const [{ count } = {}] = await sql`SELECT count(*)::int FROM clubs`
  return count
}

async function standing (id: string) {
  const [user] = await sql`SELECT role, club_id AS "clubId" FROM users WHERE id = ${id}`
  return { ...user }
}

/** A valid body with these fields. */
const club = (clubHeadEmail: string, fields: Record<string, unknown> = {}) =>
  ({ name: randomUUID() as string, description: 'A club', clubHeadEmail, ...fields })

const statuses = (responses: LightMyRequestResponse[]) => responses.map(({ statusCode }) => statusCode).sort()

const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1

t.test('GET /clubs returns every club with its members and events to anyone', async t => {
  await sql`TRUNCATE clubs CASCADE`
  const headId = randomUUID()
  const chess = await addClub({ name: 'Chess', image_url: 'https://example.org/c.png', club_head_id: headId })
  const plain = await addClub({ name: 'Go', description: 'Stones' })
  const [ada, bob, eve] = [
    await person(app, 'STUDENT', { club_id: chess.id, avatar: 'https://example.org/ada.png', idp_id: '1' }),
    await person(app, 'CLUB_HEAD', { club_id: chess.id, first_name: 'Bob', last_name: 'Bee' }),
    await person(app, 'ADMIN', { club_id: plain.id, first_name: 'Eve', last_name: 'Ee' }),
  ]
  await person(app, 'CLUB_HEAD', { id: headId })
  const addEvent = (club: string, date: string, title = 'Open day') =>
    insert(app, 'events', { club_id: club, date: new Date(date), title })
  const openDay = await addEvent(chess.id, '2026-01-31T09:30:00.120Z')
  const party = await addEvent(chess.id, '0099-12-31T23:59:59Z', 'Party')
  const gala = await addEvent(plain.id, '9999-12-31T23:59:59.999Z', 'Gala')
  await sql`INSERT INTO event_registrations (user_id, event_id) VALUES (${eve.id}, ${gala})`
  await sql`
    INSERT INTO mentors (name, expertise, image_url, club_id) VALUES ('Max', 'Openings', 'data:,', ${chess.id})
  `
  const expected = [
    {
      id: chess.id,
      name: 'Chess',
      description: 'A club',
      imageUrl: 'https://example.org/c.png',
      clubHeadId: headId,
      members: [
        { id: ada.id, firstName: 'Ada', lastName: 'Lovelace', email: ada.email, role: 'STUDENT' },
        { id: bob.id, firstName: 'Bob', lastName: 'Bee', email: bob.email, role: 'CLUB_HEAD' },
      ].sort(byId),
      events: [
        { id: openDay, title: 'Open day', date: '2026-01-31T09:30:00.120Z' },
        { id: party, title: 'Party', date: '0099-12-31T23:59:59.000Z' },
      ].sort(byId),
    },
    {
      id: plain.id,
      name: 'Go',
      description: 'Stones',
      imageUrl: null,
      clubHeadId: null,
      members: [{ id: eve.id, firstName: 'Eve', lastName: 'Ee', email: eve.email, role: 'ADMIN' }],
      events: [{ id: gala, title: 'Gala', date: '9999-12-31T23:59:59.999Z' }],
    },
  ].sort(byId)
  type Listed = { id: string, members: { id: string }[], events: { id: string }[] }
  for (const url of ['/clubs', '/clubs/?name=Go&page=2&limit=1']) {
    const { clubs, ...rest } = (await inject(app, 'GET', url)).json()
    t.strictSame(rest, {})
    t.strictSame(clubs.map(({ members, events, ...club }: Listed) =>
      ({ ...club, members: members.sort(byId), events: events.sort(byId) })).sort(byId), expected, url)
  }
})

t.test('GET /clubs returns any number of clubs, also without members and events', async t => {
  await sql`TRUNCATE clubs CASCADE`
  assertResponse(t, await inject(app, 'GET', '/clubs'), 200, { clubs: [] })
  const { id } = await addClub({ name: 'Go' })
  assertResponse(t, await inject(app, 'GET', '/clubs'), 200, {
    clubs: [
      { id, name: 'Go', description: 'A club', imageUrl: null, clubHeadId: null, members: [], events: [] },
    ],
  })
  await sql`INSERT INTO clubs (name, description) SELECT n, 'One of many' FROM generate_series(1, 150) n`
  t.equal((await inject(app, 'GET', '/clubs')).json().clubs.length, 151)
})

t.test('POST /clubs creates a club, and makes its head a CLUB_HEAD and member', async t => {
  const head = await person(app)
  const body = club(head.email, { imageUrl: 'https://example.org/club.png' })
  const response = await admin.inject('POST', '/clubs', {
    ...body, id: 'mine', clubHeadId: admin.id, members: [{ id: admin.id }], events: [], role: 'ADMIN',
  })
  const { id } = response.json().club
  t.type(id, 'string')
  assertResponse(t, response, 201, {
    club: {
      id,
      name: body.name,
      description: 'A club',
      imageUrl: 'https://example.org/club.png',
      clubHeadId: head.id,
      members: [],
    },
  })
  t.strictSame(await standing(head.id), { role: 'CLUB_HEAD', clubId: id })
  t.strictSame(await standing(admin.id), { role: 'ADMIN', clubId: null }, 'other users are unchanged')
  const { clubs } = (await inject(app, 'GET', '/clubs')).json()
  t.strictSame(clubs.find((club: { id: string }) => club.id === id), {
    ...response.json().club,
    members: [{ id: head.id, firstName: 'Ada', lastName: 'Lovelace', email: head.email, role: 'CLUB_HEAD' }],
    events: [],
  }, 'the head is listed as a member')
})

t.test('POST /clubs accepts a head of any role and club', async t => {
  const before = await addClub()
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    for (const clubId of [null, before.id]) {
      const head = await person(app, role, { club_id: clubId })
      const response = await admin.inject('POST', '/clubs/', club(head.email))
      const { id, clubHeadId, members } = response.json().club
      t.strictSame([response.statusCode, clubHeadId, members], [201, head.id, []], role)
      t.strictSame(await standing(head.id), { role: 'CLUB_HEAD', clubId: id }, role)
    }
  }
  t.equal((await clubsCalled(before.name)).length, 1, 'their former club remains')
})

t.test('POST /clubs requires a name and a description', async t => {
  const { email } = await person(app)
  const before = await countClubs()
  for (const field of ['name', 'description']) {
    for (const value of [undefined, '', null, 0, false]) {
      const response = await admin.inject('POST', '/clubs', club(email, { [field]: value }))
      assertResponse(t, response, 400, REQUIRED, `${field} ${shown(value)}`)
    }
  }
  assertResponse(t, await admin.inject('POST', '/clubs', { name: 'Chess' }), 400, REQUIRED,
    'before the head is looked for')
  t.equal(await countClubs(), before)
})

t.test('POST /clubs treats a missing body, or one that is not an object, as an empty object', async t => {
  const headers = { authorization: `Bearer ${admin.token}` }
  assertResponse(t, await inject(app, 'POST', '/clubs', undefined, headers), 400, REQUIRED, 'no body')
  assertResponse(t, await inject(app, 'POST', '/clubs', undefined, { ...headers, ...JSON_BODY }), 400, REQUIRED,
    'empty body')
  for (const body of ['{}', '[]', 'null', '"name"', '""', '5', '0', 'true', 'false', '[{"name":"Chess"}]']) {
    assertResponse(t, await inject(app, 'POST', '/clubs', body, { ...headers, ...JSON_BODY }), 400, REQUIRED, body)
  }
})

t.test('POST /clubs finds a head only by the exact email', async t => {
  const { id, email } = await person(app)
  const before = await countClubs()
  for (const clubHeadEmail of [
    undefined, '', id, 'nobody@example.org', email.toUpperCase(), ` ${email}`, `${email} `, '%', 'x'.repeat(10_240),
  ]) {
    const response = await admin.inject('POST', '/clubs', club(email, { clubHeadEmail }))
    assertResponse(t, response, 404, NO_HEAD, shown(clubHeadEmail))
  }
  for (const field of ['name', 'imageUrl']) {
    const unknown = { [field]: 5, clubHeadEmail: 'nobody@example.org' }
    assertResponse(t, await admin.inject('POST', '/clubs', club(email, unknown)), 404, NO_HEAD,
      'before the club is stored')
  }
  t.equal(await countClubs(), before)
  t.strictSame(await standing(id), { role: 'STUDENT', clubId: null })
})

t.test('POST /clubs returns 500 for values that cannot be stored', async t => {
  const head = await person(app)
  const before = await countClubs()
  const noTexts = [5, -1.5, true, {}, { name: 'Chess' }, [], ['Chess'], NUL, `Chess${NUL}`]
  const wrong: Record<string, unknown[]> = {
    name: noTexts,
    description: noTexts,
    imageUrl: [0, false, ...noTexts],
    clubHeadEmail: [`${head.email}${NUL}`, null, 0, false, 5, true, {}, [], [head.email], { email: head.email }],
  }
  for (const [field, values] of Object.entries(wrong)) {
    for (const value of values) {
      const response = await admin.inject('POST', '/clubs', club(head.email, { [field]: value }))
      assertResponse(t, response, 500, FAILED, `${field} ${shown(value)}`)
    }
  }
  t.equal(await countClubs(), before, 'nothing is stored')
  t.strictSame(await standing(head.id), { role: 'STUDENT', clubId: null }, 'the head is unchanged')
})

t.test('POST /clubs accepts text of any length and content', async t => {
  const long = 'x'.repeat(10_240)
  for (const fields of [
    { name: ' ', description: ' ', imageUrl: '' },
    { name: `${long}${randomUUID()}`, description: long, imageUrl: long },
    { name: 'Zoë\'s "Go" 😀; --', description: 'x', imageUrl: 'not a URL' },
    { imageUrl: null },
  ]) {
    const body = club((await person(app)).email, fields)
    const response = await admin.inject('POST', '/clubs', body)
    const { name, description, imageUrl } = response.json().club
    t.strictSame([response.statusCode, name, description, imageUrl],
      [201, body.name, fields.description ?? 'A club', fields.imageUrl ?? null], shown(fields))
  }
})

t.test('POST /clubs returns 500 for the name of an existing club', async t => {
  for (const name of [randomUUID(), 'y'.repeat(10_240), 'Twice']) {
    const [first, second] = [await person(app), await person(app)]
    t.equal((await admin.inject('POST', '/clubs', club(first.email, { name }))).statusCode, 201)
    assertResponse(t, await admin.inject('POST', '/clubs', club(second.email, { name })), 500, FAILED, shown(name))
    t.strictSame(await standing(second.id), { role: 'STUDENT', clubId: null }, 'the head is unchanged')
    t.equal((await clubsCalled(name)).length, 1)
  }
  for (const name of ['twice', 'Twice ', 'TWICE']) {
    const response = await admin.inject('POST', '/clubs', club((await person(app)).email, { name }))
    t.equal(response.statusCode, 201, `${name} differs`)
  }
})

t.test('POST /clubs returns 500 for the head of an existing club', async t => {
  const head = await person(app)
  const { id: clubId } = (await admin.inject('POST', '/clubs', club(head.email))).json().club
  const body = club(head.email)
  assertResponse(t, await admin.inject('POST', '/clubs', body), 500, FAILED)
  t.strictSame(await standing(head.id), { role: 'CLUB_HEAD', clubId })

  await sql`UPDATE users SET role = 'STUDENT', club_id = NULL WHERE id = ${head.id}`
  assertResponse(t, await admin.inject('POST', '/clubs', body), 500, FAILED, 'whatever their role and club')
  t.strictSame(await clubsCalled(body.name), [], 'nothing is stored')
  t.strictSame(await standing(head.id), { role: 'STUDENT', clubId: null }, 'the head is unchanged')
})

t.test('POST /clubs stores no club if the update of its head fails', async t => {
  const head = await person(app)
  const before = await countClubs()
  await sql`ALTER TABLE users ADD CONSTRAINT refused CHECK (role <> 'CLUB_HEAD') NOT VALID`
  assertResponse(t, await admin.inject('POST', '/clubs', club(head.email)), 500, FAILED)
  await sql`ALTER TABLE users DROP CONSTRAINT refused`
  t.equal(await countClubs(), before)
  t.strictSame(await standing(head.id), { role: 'STUDENT', clubId: null })
})

t.test('Of five concurrent requests with one name, one succeeds', async t => {
  const name = randomUUID()
  const heads = await Promise.all(Array.from({ length: 5 }, () => person(app)))
  const responses = await Promise.all(heads.map(({ email }) => admin.inject('POST', '/clubs', club(email, { name }))))
  t.strictSame(statuses(responses), [201, ...Array(4).fill(500)])
  const failed = responses.filter(({ statusCode }) => statusCode !== 201)
  for (const response of failed) assertResponse(t, response, 500, FAILED)
  const clubs = await clubsCalled(name)
  const { club: created } = responses.find(({ statusCode }) => statusCode === 201)!.json()
  t.match(clubs, [{ id: created.id, club_head_id: created.clubHeadId }])
  t.equal(clubs.length, 1)
  for (const { id } of heads) {
    const expected = id === created.clubHeadId
      ? { role: 'CLUB_HEAD', clubId: created.id }
      : { role: 'STUDENT', clubId: null }
    t.strictSame(await standing(id), expected)
  }
})

t.test('Of five concurrent requests with one head, one succeeds', async t => {
  const head = await person(app)
  const responses = await Promise.all(
    Array.from({ length: 5 }, () => admin.inject('POST', '/clubs', club(head.email)))
  )
  t.strictSame(statuses(responses), [201, ...Array(4).fill(500)])
  const clubs = await sql`SELECT id FROM clubs WHERE club_head_id = ${head.id}`
  t.equal(clubs.length, 1)
  t.strictSame(await standing(head.id), { role: 'CLUB_HEAD', clubId: clubs[0]?.id })
})
