import { randomUUID } from 'node:crypto'

import type { FastifyJWT } from '@fastify/jwt'
import type { LightMyRequestResponse } from 'fastify'
import postgres, { type Row, type TransactionSql } from 'postgres'

import { assertInvalid, assertMessage, assertResponse, DATE_TIME, shown, unknownIds } from '../assertions.ts'
import { build, createDatabase, inject, person, untilBlocked } from '../helper.ts'
import { EVENT as body } from '../operations.ts'
import t from '../suite.ts'

const app = await build(t)

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'

interface Club { id: string, name: string, imageUrl: string | null }

async function makeClub (fields: Record<string, unknown> = {}, on = app): Promise<Club> {
  const row = { name: randomUUID(), description: 'A club', image_url: 'https://img.example/club.png', ...fields }
  const [club] = await on.sql<Club[]>`
    INSERT INTO clubs ${on.sql(row)} RETURNING id, name, image_url AS "imageUrl"
  `
  return club!
}

interface Event {
  id: string
  title: string
  description: string
  imageUrl: string | null
  date: string
  clubId: string
  createdAt: string
}

async function makeEvent (clubId: string, fields: Record<string, unknown> = {}): Promise<Event> {
  const { data: date, ...rest } = body
  const given = Object.fromEntries(Object.entries(rest).map(([field, value]) => [postgres.fromCamel(field), value]))
  const row = { ...given, date, club_id: clubId, ...fields }
  const [event] = await app.sql`INSERT INTO events ${app.sql(row)} RETURNING *`
  return fieldsOf(event!)
}

/** The fields of an event in responses, from its row. */
function fieldsOf ({ updated_at: _, sequence: __, ...row }: Row): Event {
  const fields = Object.entries(row).map(([column, value]) => [postgres.toCamel(column), value])
  return JSON.parse(JSON.stringify(Object.fromEntries(fields)))
}

interface Registration { id: string, registeredAt: string }

async function makeRegistration (
  userId: string, eventId: string, fields: Record<string, unknown> = {}
): Promise<Registration> {
  const [registration] = await app.sql`
    INSERT INTO event_registrations ${app.sql({ user_id: userId, event_id: eventId, ...fields })}
    RETURNING id, registered_at AS "registeredAt"
  `
  return JSON.parse(JSON.stringify(registration))
}

async function makeHead (club: Club, fields: Record<string, unknown> = {}, on = app) {
  return person(on, 'CLUB_HEAD', { club_id: club.id, ...fields })
}

const clubOf = ({ name, imageUrl }: Club) => ({ name, imageUrl })
const ids = (items: { id: string }[]) => items.map(({ id }) => id)
const countRegistrations = async (eventId: string) =>
  (await app.sql`SELECT 1 FROM event_registrations WHERE event_id = ${eventId}`).length

/** Starts requests that a transaction blocks, then commits it. Returns their responses. */
async function contend (
  hold: (sql: TransactionSql) => Promise<unknown>, start: () => Promise<LightMyRequestResponse>[]
) {
  const { responses } = await app.sql.begin(async sql => {
    await hold(sql)
    const responses = start()
    await untilBlocked(app.sql, responses.length)
    return { responses }
  })
  return Promise.all(responses)
}

/** Dates in a request, and how a response has them. */
const dates: [data: string, date: string][] = [
  ['2026-01-31T09:30:00.000Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026', '2026-01-01T00:00:00.000Z'],
  ['2026-07-31T09:30', '2026-07-31T09:30:00.000Z'],
  ['July 31, 2026 09:30', '2026-07-31T09:30:00.000Z'],
  ['2026-01-31T09:30:00.1239Z', '2026-01-31T09:30:00.123Z'],
  ['2026-01-31T09:30:00+05:30', '2026-01-31T04:00:00.000Z'],
  ['Sat, 31 Jan 2026 09:30:00 GMT', '2026-01-31T09:30:00.000Z'],
  ['January 31, 2026 09:30 UTC', '2026-01-31T09:30:00.000Z'],
  ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z'],
  ['0049-07-01T12:00:00.001Z', '0049-07-01T12:00:00.001Z'],
  ['0050-07-01', '0050-07-01T00:00:00.000Z'],
  ['0099-12-31T23:59:59Z', '0099-12-31T23:59:59.000Z'],
  ['0100-01-01', '0100-01-01T00:00:00.000Z'],
  ['1582-10-10', '1582-10-10T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
]

const badDates = [
  'tomorrow', ' ', 'x', '[object Object]', '2026-13-01', '2026-01-31T25:00:00Z', '+275760-09-13', '+275760-09-14',
  '-271821-04-20', '-000001-01-01', '-000001-12-31T23:59:59.999Z', '0000-12-31T23:59:59.999Z', '0000-01-01',
  '+010000-01-01', '+010000-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999-00:01', '+294276-12-31', 'infinity', 'now',
  'epoch', '9'.repeat(10_000),
]

t.test('POST /events', async t => {
  const club = await makeClub()
  const head = await makeHead(club)

  t.test('creates an event of the current club of the user, and ignores clubId', async t => {
    const plain = await makeClub({ image_url: null })
    for (const extra of [{}, { clubId: plain.id }, { clubId: UNKNOWN }, { clubId: 42 }, { clubId: null }]) {
      const response = await head.inject('POST', '/events', { ...body, ...extra })
      t.equal(response.statusCode, 201)
      const { data: date, ...rest } = body
      const { event } = response.json()
      const { id, createdAt } = event
      t.strictSame(response.json(), { event: { id, ...rest, date, clubId: club.id, createdAt, club: clubOf(club) } })
      t.type(id, 'string')
      t.match(createdAt, DATE_TIME)
      const { events } = (await head.inject('GET', '/events/mine')).json()
      t.strictSame(events.find((each: Event) => each.id === id), { ...event, registrations: [] })
    }
    await app.sql`UPDATE users SET club_id = ${plain.id} WHERE id = ${head.id}`
    t.teardown(() => app.sql`UPDATE users SET club_id = ${club.id} WHERE id = ${head.id}`)
    const { event } = (await head.inject('POST', '/events/', body)).json()
    t.strictSame([event.clubId, event.club], [plain.id, { name: plain.name, imageUrl: null }])
  })

  t.test('returns 500 for a date that cannot be parsed or stored', async t => {
    for (const data of badDates) {
      assertMessage(t, await head.inject('POST', '/events', { ...body, data }), 500, 'Error creating event',
        data.slice(0, 40))
    }
  })

  t.test('requires a club', async t => {
    const { inject } = await person(app, 'CLUB_HEAD')
    assertMessage(t, await inject('POST', '/events', { ...body, clubId: club.id }), 400,
      'You must be a club head to create an event')
  })

  t.test('validates the body, then the fields, then the club, then the date', async t => {
    const clubless = await person(app, 'CLUB_HEAD')
    const { imageUrl: _, ...rest } = { ...body, data: 'tomorrow' }
    assertInvalid(t, await clubless.inject('POST', '/events', { ...rest, title: '' }), ['title'])
    assertMessage(t, await clubless.inject('POST', '/events', rest), 400, 'All fields are required')
    assertMessage(t, await clubless.inject('POST', '/events', { ...body, data: 'tomorrow' }), 400,
      'You must be a club head to create an event')
    assertMessage(t, await head.inject('POST', '/events', rest), 400, 'All fields are required')
  })
})

t.test('Timestamps have one format, whatever the time zone of the database', async t => {
  const url = await createDatabase()
  await app.sql`ALTER DATABASE ${app.sql(new URL(url).pathname.slice(1))} SET timezone TO 'America/St_Johns'`
  const abroad = await build(t, { DATABASE_URL: url })
  const club = await makeClub({}, abroad)
  const head = await makeHead(club, {}, abroad)
  for (const [data, date] of dates) {
    const { event } = (await head.inject('POST', '/events', { ...body, data })).json()
    const { registration } = (await head.inject('POST', `/events/${event.id}/register`)).json()
    const { event: updated } = (await head.inject('PUT', `/events/${event.id}`, { data })).json()
    const [listed] = (await inject(abroad, 'GET', '/events')).json().events
    const [mine] = (await head.inject('GET', '/events/mine')).json().events
    const [registered] = (await head.inject('GET', '/events/registered')).json().registrations
    const seen = (await head.inject('GET', `/events/${event.id}/registrations`)).json()
    const found = [event, updated, listed, mine, registered.event, seen.event].map(({ date }) => date)
    t.strictSame(found, Array(6).fill(date), data)
    t.strictSame([updated, listed, mine, registered.event].map(({ createdAt }) => createdAt),
      Array(4).fill(event.createdAt))
    t.strictSame([registered.registeredAt, seen.registrations[0].registeredAt],
      Array(2).fill(registration.registeredAt))
    await head.inject('DELETE', `/events/${event.id}`)
  }
})

t.test('DELETE /events/:id', async t => {
  const club = await makeClub()
  const other = await makeClub()
  const head = await makeHead(club)
  const admin = await person(app, 'ADMIN')
  const message = 'Event deleted successfully'
  const exists = async (id: string) => (await app.sql`SELECT 1 FROM events WHERE id = ${id}`).length === 1

  t.test('deletes the event and its registrations, and no others', async t => {
    for (const someone of [head, admin, await person(app, 'ADMIN', { club_id: other.id })]) {
      const { id } = await makeEvent(club.id)
      const bystander = await makeEvent(club.id)
      for (let i = 0; i < 3; i++) {
        const user = await person(app)
        await makeRegistration(user.id, id)
        await makeRegistration(user.id, bystander.id)
      }
      assertMessage(t, await someone.inject('DELETE', `/events/${id}`), 200, message)
      t.strictSame([await exists(id), await countRegistrations(id)], [false, 0])
      t.strictSame([await exists(bystander.id), await countRegistrations(bystander.id)], [true, 3])
    }
  })

  t.test('is atomic: if it fails, the registrations stay', async t => {
    const { id } = await makeEvent(club.id, { title: 'Not to be deleted' })
    await makeRegistration(head.id, id)
    await app.sql`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'`
    await app.sql`
      CREATE TRIGGER refuse BEFORE DELETE ON events FOR EACH ROW
      WHEN (OLD.title = 'Not to be deleted') EXECUTE FUNCTION refuse()
    `
    assertMessage(t, await head.inject('DELETE', `/events/${id}`), 500, 'Error deleting event')
    t.strictSame([await exists(id), await countRegistrations(id)], [true, 1])
  })

  t.test('succeeds for one of three concurrent requests, and is a 404 for the others', async t => {
    const { id } = await makeEvent(club.id)
    await makeRegistration(head.id, id)
    const responses = await contend(
      sql => sql`SELECT FROM events WHERE id = ${id} FOR UPDATE`,
      () => [head, admin, head].map(someone => someone.inject('DELETE', `/events/${id}`)))
    t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 404, 404])
    t.strictSame([await exists(id), await countRegistrations(id)], [false, 0])
  })

  t.test('deletes a concurrent registration, or fails', async t => {
    const { id } = await makeEvent(club.id)
    await makeRegistration(head.id, id)
    const [response] = await contend(
      sql => sql`INSERT INTO event_registrations (user_id, event_id) VALUES (${admin.id}, ${id})`,
      () => [head.inject('DELETE', `/events/${id}`)])
    const whole = response!.statusCode === 200
    if (whole) assertMessage(t, response!, 200, message)
    else assertMessage(t, response!, 500, 'Error deleting event')
    t.strictSame([await exists(id), await countRegistrations(id)], whole ? [false, 0] : [true, 2])
  })

  t.test('makes a concurrent update a 404, and a concurrent registration a 500', async t => {
    const { id } = await makeEvent(club.id)
    const [changed, registered] = await contend(
      sql => sql`DELETE FROM events WHERE id = ${id}`,
      () => [head.inject('PUT', `/events/${id}`, { title: 'Too late' }), head.inject('POST', `/events/${id}/register`)])
    assertMessage(t, changed!, 404, 'Event not found')
    assertMessage(t, registered!, 500, 'Error registering for event')
  })
})

t.test('GET /events', async t => {
  t.test('lists all events with club and number of registrations', async t => {
    await app.sql`TRUNCATE events CASCADE`
    const empty = { events: [], pagination: { page: 1, pages: 0, total: 0, limit: 12 } }
    assertResponse(t, await inject(app, 'GET', '/events'), 200, empty)

    const club = await makeClub()
    const plain = await makeClub({ image_url: null })
    const busy = await makeEvent(club.id, { date: '2030-01-02T00:00:00Z' })
    const quiet = await makeEvent(plain.id, { date: '2001-01-01T00:00:00Z', image_url: null })
    for (let i = 0; i < 3; i++) await makeRegistration((await person(app)).id, busy.id)
    const expected = {
      events: [
        { ...busy, club: clubOf(club), registrationCount: 3 },
        { ...quiet, club: { name: plain.name, imageUrl: null }, registrationCount: 0 },
      ],
      pagination: { page: 1, pages: 1, total: 2, limit: 12 },
    }
    assertResponse(t, await inject(app, 'GET', '/events'), 200, expected)
    assertResponse(t, await inject(app, 'GET', '/events/?upcoming=true&clubId=x&page[]=7'), 200, expected)
    t.match(busy.createdAt, DATE_TIME)
  })

  t.test('page, limit and sort', async t => {
    await app.sql`TRUNCATE events CASCADE`
    const club = await makeClub()
    // In ascending order, and shuffled, so that no list is sorted by coincidence.
    const ordered = Array.from({ length: 20 }, (): string => randomUUID()).sort()
    const shuffled = ordered.map((_, i) => ordered[(i * 7 + 3) % 20]!)
    // Four events on each of five days.
    const day = (id: string) => Math.floor(ordered.indexOf(id) / 2) % 5
    for (const id of shuffled) await makeEvent(club.id, { id, date: `2030-01-0${day(id) + 1}T09:00:00Z` })
    const asc = [...ordered].sort((a, b) => day(a) - day(b) || (a < b ? -1 : 1))
    const desc = [...ordered].sort((a, b) => day(b) - day(a) || (a < b ? -1 : 1))
    const list = (query: string) => inject(app, 'GET', `/events?${query}`)

    for (const [query, all] of [['', desc], ['&sort=desc', desc], ['&sort=asc', asc]] as const) {
      t.test(`${query || 'no sort'}: by date, then by id, and pages do not overlap`, async t => {
        t.strictSame(ids((await list(`limit=50${query}`)).json().events), all)
        const paged = []
        for (let page = 1; page <= 7; page++) {
          const { events, pagination } = (await list(`page=${page}&limit=3${query}`)).json()
          t.strictSame(pagination, { page, pages: 7, total: 20, limit: 3 })
          paged.push(...ids(events))
        }
        t.strictSame(paged, all)
      })
    }

    const huge = '9'.repeat(400)
    const almost = 2 ** 63 - 1024
    const cases: [query: string, page: number, limit: number][] = [
      ['', 1, 12],
      ['page=&limit=', 1, 12],
      ['page=0&limit=0', 1, 12],
      ['page=abc&limit=abc', 1, 12],
      ['page=NaN&limit=Infinity', 1, 12],
      ['page=0x&limit=0b11', 1, 12],
      ['page=2&limit=5', 2, 5],
      ['page=2abc&limit=12abc', 2, 12],
      ['page=1.9&limit=3.9', 1, 3],
      ['page=2e3&limit=4e3', 2, 4],
      ['page=0x2&limit=0x10', 2, 16],
      ['page=02&limit=010', 2, 10],
      ['page=%202&limit=%2B3', 2, 3],
      ['page=3&limit=10', 3, 10],
      ['page=20&limit=1', 20, 1],
      ['page=21&limit=1', 21, 1],
      ['limit=20', 1, 20],
      ['limit=100000', 1, 100_000],
      ['limit=9007199254740991', 1, Number.MAX_SAFE_INTEGER],
      ['page=9007199254740991&limit=1', Number.MAX_SAFE_INTEGER, 1],
      ['page=1000000000000000', 1e15, 12],
      [`limit=${almost}`, 1, almost],
      ['limit=9223372036854774784', 1, almost],
      ['page=2&limit=9223372036854774784', 2, almost],
      ['page=9223372036854774784&limit=1', almost, 1],
    ]
    for (const [query, page, limit] of cases) {
      const response = await list(query)
      const { events, pagination } = response.json()
      t.equal(response.statusCode, 200, query)
      t.strictSame(pagination, { page, pages: Math.ceil(20 / limit), total: 20, limit }, query)
      t.strictSame(ids(events), desc.slice((page - 1) * limit, page * limit), query)
    }

    const failing = [
      'limit=-1', 'limit=-12abc', 'limit=-0x10', 'page=-1', 'page=-1&limit=-1', 'page=-5abc', 'page=2&limit=-5',
      'limit=9223372036854775807', 'limit=9223372036854775808', `limit=${huge}`, `limit=-${huge}`,
      'limit=10000000000000000000000', 'page=9223372036854775807', 'page=10000000000000000000000&limit=1',
      'page=4294967297&limit=4294967296', `page=${huge}`, `page=-${huge}`, `page=${huge}&limit=${huge}`,
      'page=3&limit=9223372036854774784', 'page=-9223372036854774784',
    ]
    for (const query of failing) assertMessage(t, await list(query), 500, 'Error fetching events', query)

    const invalid: [query: string, ...paths: string[]][] = [
      ['sort=', 'sort'], ['sort', 'sort'], ['sort=up', 'sort'], ['sort=DESC', 'sort'], ['sort=asc%20', 'sort'],
      ['sort=asc&sort=desc', 'sort'], ['sort=asc&sort=asc', 'sort'], ['page=1&page=1', 'page'],
      ['limit=1&limit=2', 'limit'], ['page=1&page=2&limit=1&limit=2', 'page', 'limit'],
    ]
    for (const [query, ...paths] of invalid) {
      const response = await list(query)
      t.strictSame([response.statusCode, response.json().message], [400, 'Validation error'], query)
      const found = new Set(response.json().errors.map(({ path }: { path: string }) => path))
      t.strictSame([...found].sort(), paths.sort(), query)
    }
  })
})

t.test('GET /events/mine', async t => {
  t.test('returns the events of the current club of the user, with the ids of their registrations', async t => {
    const club = await makeClub()
    const other = await makeClub({ image_url: null })
    const elsewhere = await makeEvent(other.id)
    const early = await makeEvent(club.id, { date: '2029-01-01T00:00:00Z', image_url: null })
    const late = await makeEvent(club.id, { date: '2031-01-01T00:00:00Z' })
    const registrations = [
      await makeRegistration((await person(app)).id, late.id), await makeRegistration((await person(app)).id, late.id),
    ]
    await makeRegistration((await person(app)).id, elsewhere.id)
    for (const role of ['CLUB_HEAD', 'ADMIN'] as const) {
      const someone = await person(app, role, { club_id: club.id })
      for (const url of ['/events/mine', '/events/mine/?page=2&limit=1&sort=asc']) {
        const response = await someone.inject('GET', url)
        const body = response.json()
        body.events[0].registrations.sort((a: Registration, b: Registration) => a.id < b.id ? -1 : 1)
        t.strictSame([response.statusCode, body], [200, {
          events: [
            { ...late, club: clubOf(club), registrations: ids(registrations).sort().map(id => ({ id })) },
            { ...early, club: clubOf(club), registrations: [] },
          ],
        }], role)
      }
      await app.sql`UPDATE users SET club_id = ${other.id} WHERE id = ${someone.id}`
      t.strictSame(ids((await someone.inject('GET', '/events/mine')).json().events), [elsewhere.id], role)
    }
  })

  t.test('rejects users without a club', async t => {
    for (const role of ['CLUB_HEAD', 'ADMIN'] as const) {
      const { inject } = await person(app, role)
      assertMessage(t, await inject('GET', '/events/mine'), 400, 'You are not associated with any club', role)
    }
  })
})

t.test('POST /events/:eventId/register', async t => {
  const club = await makeClub()
  const alreadyRegistered = 'You have already registered for this event'

  t.test('registers any user, once', async t => {
    const event = await makeEvent(club.id, { title: 'Go night' })
    for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
      const someone = await person(app, role, { first_name: 'Grace', last_name: 'Hopper' })
      const url = `/events/${event.id}/register`
      const response = await someone.inject('POST', url)
      const { registration } = response.json()
      const { id, registeredAt } = registration
      assertResponse(t, response, 201, {
        registration: {
          id,
          userId: someone.id,
          eventId: event.id,
          registeredAt,
          event: { title: 'Go night' },
          user: { firstName: 'Grace', lastName: 'Hopper' },
        },
      })
      t.type(id, 'string')
      t.match(registeredAt, DATE_TIME)
      assertMessage(t, await someone.inject('POST', url), 400, alreadyRegistered)
      const stored = await app.sql`SELECT id FROM event_registrations WHERE user_id = ${someone.id}`
      t.strictSame(ids([...stored] as unknown as Registration[]), [id])
      const other = await makeEvent(club.id)
      t.equal((await someone.inject('POST', `/events/${other.id}/register/`)).statusCode, 201)
    }
    t.equal(await countRegistrations(event.id), 3)
  })

  t.test('accepts past events, events of the user\'s club, and events without an image', async t => {
    const head = await makeHead(club)
    const { id } = await makeEvent(club.id, { date: '1999-01-01T00:00:00Z', image_url: null })
    t.equal((await head.inject('POST', `/events/${id}/register`)).statusCode, 201)
  })

  t.test('registers once of fifty concurrent requests by one user', async t => {
    const someone = await person(app)
    const { id } = await makeEvent(club.id)
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => someone.inject('POST', `/events/${id}/register`)))
    t.equal(responses.filter(({ statusCode }) => statusCode === 201).length, 1)
    for (const response of responses.filter(({ statusCode }) => statusCode !== 201)) {
      assertMessage(t, response, 400, alreadyRegistered)
    }
    t.equal(await countRegistrations(id), 1)
  })

  t.test('registers once during a concurrent registration', async t => {
    const someone = await person(app)
    const { id } = await makeEvent(club.id)
    const [response] = await contend(
      sql => sql`INSERT INTO event_registrations (user_id, event_id) VALUES (${someone.id}, ${id})`,
      () => [someone.inject('POST', `/events/${id}/register`)])
    assertMessage(t, response!, 400, alreadyRegistered)
    t.equal(await countRegistrations(id), 1)
  })
})

t.test('GET /events/registered', async t => {
  t.test('returns the registrations of the user, with event and club', async t => {
    const club = await makeClub()
    const plain = await makeClub({ image_url: null })
    const early = await makeEvent(plain.id, { date: '2029-01-01T00:00:00Z', image_url: null })
    const late = await makeEvent(club.id, { date: '2031-01-01T00:00:00Z' })
    for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
      const someone = await person(app, role, { club_id: club.id })
      assertResponse(t, await someone.inject('GET', '/events/registered'), 200, { registrations: [] })
      // Sorted by the date of the event, not of the registration.
      const one = await makeRegistration(someone.id, late.id)
      const two = await makeRegistration(someone.id, early.id)
      await makeRegistration((await person(app)).id, early.id)
      const registrations = [
        { ...one, userId: someone.id, eventId: late.id, event: { ...late, club: clubOf(club) } },
        { ...two, userId: someone.id, eventId: early.id, event: { ...early, club: clubOf(plain) } },
      ]
      for (const url of ['/events/registered', '/events/registered/', '/events/registered?page=2&limit=1']) {
        assertResponse(t, await someone.inject('GET', url), 200, { registrations })
      }
    }
  })
})

t.test('GET /events/:id/registrations', async t => {
  const club = await makeClub()
  const other = await makeClub()
  const head = await makeHead(club)
  const admin = await person(app, 'ADMIN')

  t.test('returns the registrations, newest first, then by id', async t => {
    const { id, title, date } = await makeEvent(club.id)
    const event = { id, title, date }
    assertResponse(t, await head.inject('GET', `/events/${id}/registrations`), 200, { event, registrations: [] })
    const ada = await person(app, 'STUDENT', { first_name: 'Ada', last_name: 'Lovelace' })
    const grace = await person(app, 'ADMIN', { first_name: 'Grace', last_name: 'Hopper' })
    const one = await makeRegistration(ada.id, id, { registered_at: '2026-01-01T00:00:00.001Z' })
    const [first, second] = [randomUUID(), randomUUID()].sort()
    const at = '2026-01-01T00:00:00.002Z'
    const three = await makeRegistration(head.id, id, { registered_at: at, id: second })
    const two = await makeRegistration(grace.id, id, { registered_at: at, id: first })
    await makeRegistration(ada.id, (await makeEvent(club.id)).id)
    const registrations = [
      { ...two, userId: grace.id, name: 'Grace Hopper', email: grace.email },
      { ...three, userId: head.id, name: 'Ada Lovelace', email: head.email },
      { ...one, userId: ada.id, name: 'Ada Lovelace', email: ada.email },
    ]
    for (const someone of [head, admin, await person(app, 'ADMIN', { club_id: other.id })]) {
      for (const url of [`/events/${id}/registrations`, `/events/${id}/registrations/?page=2`]) {
        assertResponse(t, await someone.inject('GET', url), 200, { event, registrations })
      }
    }
  })

  t.test('finds the reason for a missing list after admission', async t => {
    const { id } = await makeEvent(club.id)
    const late = await makeHead(other)
    const { operations } = app.queues
    const run = operations.run.bind(operations)
    const admitted = t.capture(operations, 'run', async (...work: Parameters<typeof run>) => {
      await app.sql`UPDATE users SET club_id = ${club.id} WHERE id = ${late.id}`
      return run(...work)
    })
    const url = `/events/${id}/registrations`
    assertMessage(t, await late.inject('GET', url), 403, 'Not allowed to view registrations for this event')
    t.equal(admitted().length, 1)
    t.equal((await late.inject('GET', url)).statusCode, 200)
  })

  t.test('reads the list once for all tokens of a user', async t => {
    const { id } = await makeEvent(club.id)
    const read = async (iat: number) => {
      const token = app.jwt.sign({ sub: head.id, userId: head.id, role: 'CLUB_HEAD', iat } as FastifyJWT['payload'])
      await inject(app, 'GET', `/events/${id}/registrations`, undefined, { authorization: `Bearer ${token}` })
      return app.cache.counts.misses
    }
    let iat = Math.floor(Date.now() / 1000)
    let isShared = false
    // Other databases of the server may commit, which adds misses.
    for (let time = 0; !isShared && time < 100; time++) {
      const misses = await read(iat--)
      isShared = await read(iat--) === misses
    }
    t.ok(isShared)
  })

  t.test('joins and trims the names', async t => {
    const names = [
      ['Ada', 'Lovelace', 'Ada Lovelace'],
      ['Ada', '', 'Ada'],
      ['', 'Lovelace', 'Lovelace'],
      ['', '', ''],
      [' Ada ', ' Lovelace ', 'Ada   Lovelace'],
      ['\tAda', 'Lovelace\n', 'Ada Lovelace'],
      ['Ada', '\u00a0', 'Ada'],
      ['Ada King', 'of Lovelace', 'Ada King of Lovelace'],
    ] as const
    for (const [first, last, name] of names) {
      const { id } = await makeEvent(club.id)
      await makeRegistration((await person(app, 'STUDENT', { first_name: first, last_name: last })).id, id)
      const { registrations } = (await head.inject('GET', `/events/${id}/registrations`)).json()
      t.equal(registrations[0].name, name)
    }
  })
})

t.test('PUT /events/:id', async t => {
  const club = await makeClub()
  const other = await makeClub({ image_url: null })
  const head = await makeHead(club)
  const stranger = await makeHead(other)
  const admin = await person(app, 'ADMIN')
  const message = 'Event updated successfully'
  const find = async (id: string) => {
    const [row] = await app.sql`SELECT * FROM events WHERE id = ${id}`
    return fieldsOf(row!)
  }

  t.test('changes only the given fields', async t => {
    const cases: [payload: object, changes: object][] = [
      [{}, {}],
      [{ title: 'abc' }, { title: 'abc' }],
      [{ description: '1234567890' }, { description: '1234567890' }],
      [{ data: '2032-02-03' }, { date: '2032-02-03T00:00:00.000Z' }],
      [{ imageUrl: 'data:,x' }, { imageUrl: 'data:,x' }],
      [{ clubId: '' }, {}],
      [{ clubId: club.id }, {}],
      [{ id: UNKNOWN, date: '2000-01-01', createdAt: '2000-01-01', title: 'Go night' }, { title: 'Go night' }],
      [{ ...body, title: 'All of it' }, { title: 'All of it' }],
    ]
    for (const someone of [head, admin]) {
      for (const [payload, changes] of cases) {
        const event = await makeEvent(club.id)
        const bystander = await makeEvent(club.id)
        await makeRegistration(admin.id, event.id)
        const changed = { ...event, ...changes }
        const response = await someone.inject('PUT', `/events/${event.id}`, payload)
        assertResponse(t, response, 200, { event: { ...changed, club: clubOf(club) }, message },
          JSON.stringify(payload))
        t.strictSame([await find(event.id), await find(bystander.id)], [changed, bystander])
        t.equal(await countRegistrations(event.id), 1)
      }
    }
  })

  t.test('moves an event to any club', async t => {
    const event = await makeEvent(club.id)
    const moved = { ...event, clubId: other.id, club: { name: other.name, imageUrl: null } }
    assertResponse(t, await head.inject('PUT', `/events/${event.id}`, { clubId: other.id }), 200,
      { event: moved, message })
    // The event now belongs to the other club.
    assertMessage(t, await head.inject('PUT', `/events/${event.id}`, {}), 403, 'Not allowed to modify this event')
    t.equal((await stranger.inject('PUT', `/events/${event.id}`, {})).statusCode, 200)
    t.equal((await admin.inject('PUT', `/events/${event.id}`, { clubId: club.id })).statusCode, 200)
    t.strictSame(await find(event.id), event)
  })

  t.test('returns 500 for an unknown club', async t => {
    const event = await makeEvent(club.id)
    for (const clubId of unknownIds(club.id)) {
      const response = await head.inject('PUT', `/events/${event.id}`, { clubId, title: 'Not to be seen' })
      assertMessage(t, response, 500, 'Error updating event', shown(clubId))
    }
    t.strictSame(await find(event.id), event)
  })

  t.test('returns 500 for a date that cannot be parsed or stored, and keeps the event', async t => {
    const event = await makeEvent(club.id)
    for (const data of badDates) {
      const response = await head.inject('PUT', `/events/${event.id}`, { data, title: 'Not to be seen' })
      assertMessage(t, response, 500, 'Error updating event', data.slice(0, 40))
    }
    t.strictSame(await find(event.id), event)
  })

  t.test('checks the body, then the event, then the permission, then the values', async t => {
    const { id } = await makeEvent(club.id)
    assertInvalid(t, await stranger.inject('PUT', `/events/${UNKNOWN}`, { title: '' }), ['title'])
    assertInvalid(t, await stranger.inject('PUT', `/events/${id}`, { title: '' }), ['title'])
    for (const payload of [{ data: 'tomorrow' }, { clubId: UNKNOWN }]) {
      assertMessage(t, await head.inject('PUT', `/events/${UNKNOWN}`, payload), 404, 'Event not found')
      assertMessage(t, await stranger.inject('PUT', `/events/${id}`, payload), 403, 'Not allowed to modify this event')
    }
  })
})
