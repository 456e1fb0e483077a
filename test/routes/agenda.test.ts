import { strict as assert } from 'node:assert'

import fc from 'fast-check'

import { eraseAccount } from '#lib/accounts/erasure.js'
import { assertInvalid, assertMessage } from '../assertions.ts'
import { build, inject, insert, MAIL, type Person, person, untilBlocked } from '../helper.ts'
import { AGENDA_EVENT, DETAILS, EVENT } from '../operations.ts'
import t from '../suite.ts'

// Hundreds of changes of one event follow one another, which takes longer than 10 s on a slow machine.
const app = await build(t, { ...MAIL, DATABASE_TIMEOUT: '60' })
const { sql } = app
// The sender would write the emails of batches at any time.
await sql.unsafe(`
  CREATE FUNCTION never_due() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.due_at := '2999-01-01';
    RETURN NEW;
  END $$;
  CREATE TRIGGER never_due BEFORE INSERT ON email_batches FOR EACH ROW EXECUTE FUNCTION never_due();
`)

const HOUR = 3_600_000
const soon = (hours: number) => new Date(Math.ceil(Date.now() / HOUR + hours) * HOUR)

const club = await insert(app, 'clubs', { name: 'Chess' })
const head = await person(app, 'CLUB_HEAD', { club_id: club })
const people = await Promise.all(Array.from({ length: 8 }, () =>
  person(app, 'STUDENT', { email_verified_at: new Date() })))
const [ada, bob, cleo, dan] = people as [Person, Person, Person, Person]

const addEvent = (date = soon(48), fields: object = {}) => insert(app, 'events', { date, club_id: club, ...fields })
const put = (id: string, changes: object) => head.inject('PUT', `/agenda/${id}`, changes)
const register = (who: Person, id: string) => who.inject('POST', `/events/${id}/register`)
const answer = (who: Person, id: string, coming: boolean) => who.inject('PUT', `/me/seats/${id}`, { coming })

interface Listed { registrationId: string, userId: string, state: string, position: number | null }
const list = async (id: string): Promise<Listed[]> => (await head.inject('GET', `/agenda/${id}/seats`)).json().seats

/** A seat in short: `seated`, `waiting 1`, `declined`. */
const inShort = ({ state, position }: Pick<Listed, 'state' | 'position'>) =>
  position === null ? state : `${state} ${position}`

/** The seats of people in short. */
async function seats (id: string) {
  const all = await list(id)
  return people.flatMap(({ id }) => all.filter(({ userId }) => userId === id).map(inShort))
}

/** The same as each person sees their own. */
async function ownSeats (id: string) {
  const own = await Promise.all(people.map(async person => (await person.inject('GET', '/me/seats')).json().seats))
  return own.flat().filter(({ event }) => event.id === id).map(inShort)
}

/** The states in the exported file, in the order of people. */
async function exportedStates (id: string) {
  const { body } = await head.inject('GET', `/exports/events/${id}/registrations.csv`)
  return people.flatMap(({ email }) => body.split('\r\n').filter(line => line.includes(email))
    .map(line => line.split(',').at(-2)))
}

/** Who was told about a seat, in order, since the last call. */
async function told (id: string) {
  const rows = await sql<{ users: string[] }[]>`
    WITH gone AS (DELETE FROM email_batches WHERE template = 'seat' AND event_id = ${id} RETURNING *)
    SELECT to_jsonb(user_ids) AS users FROM gone ORDER BY gone.id
  `
  return rows.flatMap(({ users }) => users).map(user => people.findIndex(({ id }) => id === user))
}

const agenda = async (query = '') => (await inject(app, 'GET', `/agenda${query}`)).json()
const titles = async (query = '') => (await agenda(query)).events.map(({ title }: { title: string }) => title)

t.test('GET /agenda', async t => {
  const other = await insert(app, 'clubs')
  const day = 24 * HOUR
  async function add (title: string, inHours: number, hours?: number, clubId = club) {
    const id = await addEvent(new Date(Date.now() + inHours * HOUR), { title, club_id: clubId })
    if (hours) await sql`INSERT INTO event_details (event_id, duration_ms) VALUES (${id}, ${hours * HOUR})`
  }
  await add('over', -3)
  await add('over early', -1, 0.5)
  await add('running', -1.5)
  await add('long', -5, 10)
  await add('festival', -100, 200)
  await add('past festival', -100, 50)
  await add('next year', 365 * 24)
  await add('soon', 1)
  await add('soon elsewhere', 2, 1, other)

  t.test('lists what comes or runs, earliest first', async t => {
    t.strictSame(await titles(), ['festival', 'long', 'running', 'soon', 'soon elsewhere', 'next year'])
    t.strictSame(await titles(`?club=${other}`), ['soon elsewhere'])
    t.strictSame(await titles('?club=nobody'), [])
    t.strictSame(await titles(`?club=${other}&club=nobody`), ['soon elsewhere'])
    t.strictSame(await titles(`?club=${other}&club=${club}`), await titles())
  })

  t.test('lists events between two times, with those that run', async t => {
    const at = (hours: number) => new Date(Date.now() + hours * HOUR).toISOString()
    t.strictSame(await titles(`?from=${at(-0.75)}&to=${at(1.5)}`), [
      'festival', 'long', 'running', 'over early', 'soon',
    ])
    t.strictSame(await titles(`?from=${at(-60)}&to=${at(-4)}`), ['festival', 'past festival', 'long'])
    const offset = encodeURIComponent(at(-0.75).replace('Z', '+00:00'))
    t.strictSame(await titles(`?from=${offset}&to=${at(-1.2)}`), ['festival', 'long', 'running'])
  })

  t.test('has pages without gaps, also for equal dates', async t => {
    for (let n = 0; n < 3; n++) await addEvent(new Date(Date.now() + 10 * day), { title: `same ${n}` })
    const all = await agenda()
    t.equal(all.next, null)
    for (const limit of [1, 2, 4, 9]) {
      const found = []
      for (let next: string | null = ''; next !== null;) {
        const page = await agenda(`?limit=${limit}${next && `&cursor=${next}`}`)
        t.ok(page.events.length <= limit)
        found.push(...page.events)
        next = page.next
      }
      t.strictSame(found, all.events, `${limit}`)
    }
  })

  t.test('refuses wrong parameters', async t => {
    const cursor = (text: string) => Buffer.from(text).toString('base64url')
    const wrong = [
      'from=', 'from=soon', 'from=2026-01-31', 'to=2026-02-30T00:00:00Z', 'limit=0', 'limit=101', 'limit=-1', 'limit=x',
      'limit=', 'cursor=', 'cursor=x', `cursor=${cursor('soon')}`, `cursor=${cursor(`2026-01-31T00:00:00Z ${club}x`)}`,
      `cursor=${cursor(`2026-02-30T00:00:00Z ${club}`)}`, `cursor=${cursor(`infinity ${club}`)}`, 'cursor=%00',
      `cursor=${cursor(`2026-01-31T00:00:00Z ${club} x`)}`, `cursor=${'x'.repeat(5000)}`, 'cursor=a&cursor=b',
      // JavaScript knows this offset, and PostgreSQL does not.
      `cursor=${cursor(`2026-01-31T00:00:00.000+20:00 ${club}`)}`,
      `cursor=${cursor(`2026-01-31T00:00:00.000Z ${club}`)}!`, 'club=x&'.repeat(51),
    ]
    for (const query of wrong) {
      assertInvalid(t, await inject(app, 'GET', `/agenda?${query}`), [query.split('=')[0]!], query.slice(0, 60))
    }
  })
})

t.test('GET /agenda/:id shows the public details, of past events too', async t => {
  const id = await addEvent(new Date('2020-01-31T09:30:00Z'), { image_url: 'https://example.org/e.png' })
  const { event } = (await inject(app, 'GET', `/agenda/${id}`)).json()
  t.match(event, { id, endsAt: null, place: null, hasOnlineUrl: false, capacity: null, seatsLeft: null })
  const details = { endsAt: '2020-02-02T09:30:00.000Z', place: 'Room 1', onlineUrl: 'https://x.org/', capacity: 2 }
  const managed = (await put(id, details)).json().event
  t.match(managed, details)
  await register(ada, id)
  const shown = (await inject(app, 'GET', `/agenda/${id}`)).json().event
  const { onlineUrl, ...known } = managed
  t.strictSame(shown, {
    ...known, hasOnlineUrl: true, registrationCount: 1, comingCount: 1, seatsLeft: 1, waitingCount: 0,
  })
  const [listed] = (await inject(app, 'GET', '/events?limit=1&sort=asc')).json().events
  t.strictSame(Object.keys(listed).filter(field => field in details), [], 'the contract has no details')
})

/** Sends a request with an Idempotency-Key. */
const sendOnce = (key: string, url: string, payload: object, { token } = head) =>
  inject(app, 'POST', url, payload, { authorization: `Bearer ${token}`, 'idempotency-key': key })

t.test('POST /agenda', async t => {
  t.test('creates an event with all its details', async t => {
    const details = { endsAt: '2031-02-03T02:00:00.000Z', place: 'Room 1', onlineUrl: 'https://x.org/', capacity: 5 }
    const response = await head.inject('POST', '/agenda', { ...AGENDA_EVENT, ...details, clubId: 'x', id: 'x' })
    t.equal(response.statusCode, 201)
    const created = response.json().event
    t.match(created, { ...AGENDA_EVENT, ...details, clubId: club, club: { name: 'Chess' }, seatsLeft: 5 })
    t.strictSame((await head.inject('GET', `/agenda/${created.id}/seats`)).json().event, created)
    const { endsAt, ...event } = AGENDA_EVENT
    const bare = (await head.inject('POST', '/agenda', { ...event, place: null })).json().event
    t.match(bare, { endsAt: null, place: null, onlineUrl: null, capacity: null, hasOnlineUrl: false })
    // JavaScript knows these, and PostgreSQL does not, or rounds them.
    for (const [date, stored] of [
      ['2030-01-01T10:00:00+16:00', '2029-12-31T18:00:00.000Z'],
      ['2030-01-01T10:00:00.99999999Z', '2030-01-01T10:00:00.999Z'],
    ]) t.equal((await head.inject('POST', '/agenda', { ...event, date })).json().event?.date, stored)
  })

  t.test('saves nothing of an event with a wrong detail', async t => {
    const count = async () => (await sql`SELECT FROM events`).length
    const before = await count()
    // A URL parser removes line breaks, and a calendar would get a line of its own.
    const wrong = ['http:', 'https://x.org/\r\nBEGIN:VALARM', 'https://x.org/\n', 'https://x.org/\ta']
      .map((onlineUrl): [string, unknown] => ['onlineUrl', onlineUrl])
    for (const [field, value] of [['endsAt', AGENDA_EVENT.date], ['capacity', 0], ...wrong] as [string, unknown][]) {
      assertInvalid(t, await head.inject('POST', '/agenda', { ...AGENDA_EVENT, [field]: value }), [field])
    }
    assertMessage(t, await (await person(app, 'CLUB_HEAD')).inject('POST', '/agenda', AGENDA_EVENT), 400,
      'You must be a club head to create an event')
    t.equal(await count(), before)
  })

  t.test('with a key returns the event as it is now, and not to a head who has moved to a different club', async t => {
    const mover = await person(app, 'CLUB_HEAD', { club_id: club })
    const send = () => sendOnce('key', '/agenda', AGENDA_EVENT, mover)
    const { event: { id } } = (await send()).json()
    await put(id, { capacity: 7 })
    t.match((await send()).json().event, { id, capacity: 7 })
    await sql`UPDATE users SET club_id = ${await insert(app, 'clubs')} WHERE id = ${mover.id}`
    assertMessage(t, await send(), 403, 'Not allowed to modify this event')
  })
})

t.test('PUT /agenda/:id', async t => {
  t.test('changes the given fields, and null removes a value', async t => {
    const id = await addEvent(new Date('2030-01-01'))
    const { event } = (await put(id, DETAILS)).json()
    t.match(event, DETAILS)
    t.strictSame((await put(id, {})).json().event, event)
    t.strictSame((await put(id, { place: 'Room 2' })).json().event, { ...event, place: 'Room 2' })
    const nothing = Object.fromEntries(Object.keys(DETAILS).map(field => [field, null]))
    t.match((await put(id, nothing)).json().event, nothing)
  })

  t.test('ignores other fields, even if they have the name of a column', async t => {
    const id = await addEvent()
    const others = Object.fromEntries(
      ['durationMs', 'duration_ms', 'seatedUntil', 'eventId', 'until', 'sequence', 'clubId'].map(name => [name, 'x'])
    )
    t.match((await put(id, { ...others, place: 'Room 1' })).json().event, { id, place: 'Room 1', endsAt: null })
  })

  t.test('moves the end along with the date', async t => {
    const id = await addEvent(new Date('2030-03-30T10:00:00Z'))
    await put(id, { endsAt: '2030-03-31T10:00:00+02:00' })
    const move = (data: string) => head.inject('PUT', `/events/${id}`, { data })
    const end = async () => (await inject(app, 'GET', `/agenda/${id}`)).json().event.endsAt
    t.equal(await end(), '2030-03-31T08:00:00.000Z')
    await move('2030-10-26T10:00:00Z')
    t.equal(await end(), '2030-10-27T08:00:00.000Z')
    await move('9999-12-31T10:00:00Z')
    t.equal(await end(), '9999-12-31T23:59:59.999Z', 'years have four digits')
  })

  t.test('counts a new end, place and online link as changes, and tells those who come', async t => {
    const id = await addEvent()
    await register(ada, id)
    const changes = async () => {
      const [row] = await sql`
        SELECT sequence, (SELECT count(*)::int FROM email_batches WHERE key = ${id}) AS batches
        FROM events WHERE id = ${id}
      `
      return Object.values(row!)
    }
    await put(id, { capacity: 5 })
    t.strictSame(await changes(), [0, 0])
    await put(id, { place: 'Room 1' })
    t.strictSame(await changes(), [1, 1])
    await put(id, { place: 'Room 1', endsAt: soon(50).toISOString() })
    t.strictSame(await changes(), [2, 1])
    for (let n = 0; n < 2; n++) {
      await put(id, { onlineUrl: 'https://x.org/' })
      t.strictSame(await changes(), [3, 1])
    }
  })

  t.test('changes title, text, picture, date and details at once, and tells it in one email', async t => {
    const TITLE = 'Open day'
    const id = await addEvent(undefined, { title: TITLE })
    await register(ada, id)
    const changes = {
      title: 'Open evening',
      description: 'All are welcome.',
      imageUrl: 'https://x.org/a.png',
      date: soon(72).toISOString(),
      endsAt: soon(74).toISOString(),
      place: 'Room 1',
      capacity: 5,
    }
    t.match((await put(id, changes)).json().event, { id, ...changes })
    t.match((await put(id, { date: soon(96).toISOString() })).json().event, { endsAt: soon(98).toISOString() })
    const rows = await sql`
      SELECT sequence, data -> 'known' ->> 'title' AS title FROM events JOIN email_batches ON event_id = events.id
      WHERE events.id = ${id}
    `
    t.strictSame([...rows], [{ sequence: 2, title: TITLE }], 'the email tells the difference from the first title')
    await put(id, { description: 'Everybody is welcome.' })
    t.strictSame((await sql`SELECT sequence FROM events WHERE id = ${id}`)[0]!.sequence, 2, 'as PUT /events/:id')
  })

  t.test('changes nothing if a detail is wrong', async t => {
    const id = await addEvent()
    await register(ada, id)
    const before = await sql`SELECT to_jsonb(events) FROM events WHERE id = ${id}`
    const date = soon(72).toISOString()
    for (const wrong of [{ endsAt: date }, { capacity: 0 }]) {
      assertInvalid(t, await put(id, { title: 'Open evening', date, ...wrong }), Object.keys(wrong))
    }
    t.strictSame([...await sql`SELECT to_jsonb(events) FROM events WHERE id = ${id}`], [...before])
    t.strictSame([...await sql`SELECT FROM email_batches WHERE event_id = ${id}`], [])
  })

  t.test('has a smaller room unseat nobody', async t => {
    const id = await addEvent()
    for (const who of people.slice(0, 4)) await register(who, id)
    await put(id, { capacity: 2 })
    t.strictSame(await seats(id), ['seated', 'seated', 'seated', 'seated'])
    await register(people[4]!, id)
    await answer(ada, id, false)
    t.strictSame(await seats(id), ['declined', 'seated', 'seated', 'seated', 'waiting 1'])
    await answer(ada, id, true)
    t.strictSame(await seats(id), ['waiting 2', 'seated', 'seated', 'seated', 'waiting 1'], 'who returns is last')
    for (const who of [bob, cleo]) await answer(who, id, false)
    t.strictSame(await seats(id), ['waiting 1', 'declined', 'declined', 'seated', 'seated'])
    t.strictSame(await told(id), [4])
    await put(id, { capacity: 1 })
    t.strictSame(await seats(id), ['waiting 1', 'declined', 'declined', 'seated', 'seated'])
    await put(id, { capacity: 3 })
    t.strictSame([await seats(id), await told(id)], [['seated', 'declined', 'declined', 'seated', 'seated'], [0]])
    await put(id, { capacity: 1 })
    await put(id, { capacity: null })
    t.strictSame(await told(id), [])
  })

  t.test('tells who gets a seat at an event that is prolonged after its end', async t => {
    const id = await addEvent(new Date(Date.now() - 3 * HOUR))
    await put(id, { capacity: 1 })
    for (const who of [ada, bob, cleo]) await register(who, id)
    await put(id, { capacity: 2 })
    t.strictSame(await told(id), [], 'a seat at a past event is no news')
    await put(id, { capacity: 3, endsAt: new Date(Date.now() + HOUR).toISOString() })
    t.strictSame(await told(id), [2])
  })
})

t.test('POST /agenda/:id/copies moves the details along', async t => {
  const { id } = (await head.inject('POST', '/events', { ...EVENT, data: '2030-01-01T00:00:00Z' })).json().event
  const bare = await head.inject('POST', `/agenda/${id}/copies`, { dates: ['2030-01-08T10:00:00Z'] })
  t.match(bare.json().events, [{ title: EVENT.title, endsAt: null, capacity: null }])
  const { id: _, createdAt, ...original } = (await put(id, DETAILS)).json().event
  t.match(original, DETAILS)
  await register(ada, id)
  const dates = ['2030-01-15T10:00:00Z', '2030-01-08T11:00:00+01:00']
  const { events } = (await head.inject('POST', `/agenda/${id}/copies`, { dates })).json()
  t.match(events, [
    {
      date: '2030-01-08T10:00:00.000Z',
      endsAt: '2030-01-08T10:00:00.001Z',
      opensAt: '2029-12-08T20:00:00.000Z',
      closesAt: '3000-01-06T20:00:00.000Z',
    },
    { date: '2030-01-15T10:00:00.000Z', endsAt: '2030-01-15T10:00:00.001Z' },
  ])
  for (const event of events) {
    const { onlineUrl, ...shown } = (await head.inject('GET', `/agenda/${event.id}/seats`)).json().event
    t.strictSame([event, (await inject(app, 'GET', `/agenda/${event.id}`)).json().event], [shown, shown])
    const { date, endsAt, createdAt } = event
    const { opensAt, closesAt } = event
    t.strictSame({ onlineUrl, ...shown }, { id: event.id, ...original, date, endsAt, opensAt, closesAt, createdAt })
  }
})

t.test('POST /agenda/:id/copies creates at most 1 MB of copies', async t => {
  const text = { title: 'é'.repeat(100_000), description: 'x'.repeat(50_000) }
  const { event: { id } } = (await head.inject('POST', '/agenda', { ...AGENDA_EVENT, ...text })).json()
  const dates = Array.from({ length: 5 }, (_, n) => `2030-01-0${n + 1}T10:00:00.000Z`)
  const refusal = await head.inject('POST', `/agenda/${id}/copies`, { dates })
  t.equal(refusal.statusCode, 400)
  t.match(refusal.json().errors, [{
    path: 'dates', message: /^must have at most 4 items, because the event has 250,\d{3} bytes$/,
  }])
  t.match((await head.inject('POST', `/agenda/${id}/copies`, { dates: dates.slice(1) })).json().events,
    dates.slice(1).map(date => ({ ...text, date })))
  await sql`UPDATE events SET description = repeat('x', 1100000) WHERE id = ${id}`
  t.equal((await head.inject('POST', `/agenda/${id}/copies`, { dates: dates.slice(0, 2) })).statusCode, 400)
  t.equal((await head.inject('POST', `/agenda/${id}/copies`, { dates: dates.slice(0, 1) })).statusCode, 201)
})

t.test('POST /agenda/:id/copies takes the end of each copy, for a clock change', async t => {
  // Berlin leaves summer time on 27 October 2030.
  const evening = { ...AGENDA_EVENT, date: '2030-10-19T18:00:00.000Z', endsAt: '2030-10-20T00:00:00.000Z' }
  const { event: { id } } = (await head.inject('POST', '/agenda', evening)).json()
  const dates = ['2030-11-02T19:00:00.000Z', '2030-10-26T18:00:00.000Z']
  const ends = ['2030-11-03T01:00:00.000Z', '2030-10-27T01:00:00.000Z']
  const { events } = (await head.inject('POST', `/agenda/${id}/copies`, { dates, ends })).json()
  t.strictSame(events.map(({ date, endsAt, place }: any) => [date, endsAt, place]), [
    [dates[1], ends[1], 'Room 1'], [dates[0], ends[0], 'Room 1'],
  ])
  const bare = await addEvent()
  const copies = (await head.inject('POST', `/agenda/${bare}/copies`, { dates, ends })).json().events
  t.strictSame(copies.map(({ endsAt }: any) => endsAt), [ends[1], ends[0]], 'an event without details')
})

t.test('Registration opens and closes', async t => {
  const at = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString()
  const [past, future] = [at(-HOUR), at(HOUR)]

  t.test('refuses people before it opens and after it closes, and says so', async t => {
    const id = await addEvent()
    for (const [window, message] of [
      [{ opensAt: future }, 'Registration for this event has not opened yet'],
      [{ opensAt: null, closesAt: past }, 'Registration for this event has closed'],
      [{ opensAt: at(-2 * HOUR), closesAt: past }, 'Registration for this event has closed'],
      [{ opensAt: future, closesAt: at(2 * HOUR) }, 'Registration for this event has not opened yet'],
    ] as const) {
      t.match((await put(id, window)).json().event, window)
      assertMessage(t, await register(ada, id), 400, message)
    }
    t.strictSame(await seats(id), [])
    await put(id, { opensAt: past, closesAt: future })
    t.equal((await register(ada, id)).statusCode, 201)
    await put(id, { opensAt: null, closesAt: null })
    t.equal((await register(bob, id)).statusCode, 201)
  })

  t.test('lets registered people answer after it closes (concrexit #3657)', async t => {
    const id = await addEvent()
    await register(ada, id)
    await put(id, { closesAt: past })
    assertMessage(t, await register(ada, id), 400, 'You have already registered for this event')
    assertMessage(t, await register(bob, id), 400, 'Registration for this event has closed')
    t.equal((await answer(ada, id, false)).json().seat.state, 'declined')
    t.equal((await answer(ada, id, true)).json().seat.state, 'seated')
  })

  t.test('is refused if it closes before it opens', async t => {
    const id = await addEvent()
    await put(id, { opensAt: '2030-01-02T10:00:00Z' })
    for (const changes of [
      { closesAt: '2030-01-02T10:00:00Z' }, { opensAt: '2030-01-02T10:00:00Z', closesAt: '2030-01-02T11:00:00+02:00' },
    ]) {
      const response = await put(id, changes)
      assertInvalid(t, response, ['opensAt'])
      t.equal(response.json().errors[0].message, 'must be before closesAt')
    }
    t.equal((await put(id, { closesAt: '2030-01-02T10:00:00.001Z' })).statusCode, 200)
    assertInvalid(t, await put(id, { opensAt: '2030-01-02T10:00:00.001Z' }), ['opensAt'])
    assertInvalid(t, await head.inject('POST', '/agenda', { ...AGENDA_EVENT, opensAt: future, closesAt: past }), [
      'opensAt',
    ])
  })

  t.test('at the same local time for a series, also when clocks change (OCG clears it)', async t => {
    // Berlin leaves summer time on 27 October 2030.
    const berlin = await build(t, { ...MAIL, MAIL_TIME_ZONE: 'Europe/Berlin' })
    const club = await insert(berlin, 'clubs')
    const head = await person(berlin, 'CLUB_HEAD', { club_id: club })
    const window = { opensAt: '2030-10-12T10:00:00.000Z', closesAt: '2030-10-18T22:00:00.000Z' }
    const event = { ...AGENDA_EVENT, date: '2030-10-19T18:00:00.000Z', endsAt: null, ...window }
    const { event: { id } } = (await head.inject('POST', '/agenda', event)).json()
    const dates = ['2030-10-26T18:00:00.000Z', '2030-11-02T19:00:00.000Z']
    const { events } = (await head.inject('POST', `/agenda/${id}/copies`, { dates })).json()
    t.strictSame(events.map(({ opensAt, closesAt }: any) => [opensAt, closesAt]), [
      ['2030-10-19T10:00:00.000Z', '2030-10-25T22:00:00.000Z'],
      ['2030-10-26T10:00:00.000Z', '2030-11-01T23:00:00.000Z'],
    ])

    for (const [window, date, moved] of [
      // 02:30 does not exist on 31 March 2030.
      [['2030-03-24T01:30:00.000Z', '2030-03-24T02:15:00.000Z'], '2030-03-31T10:00:00.000Z',
        ['2030-03-31T01:30:00.000Z', '2030-03-31T02:15:00.000Z']],
      // From 02:30 until 02:15 on 27 October 2030
      [['2030-10-27T00:30:00.000Z', '2030-10-27T01:15:00.000Z'], '2030-11-03T11:00:00.000Z',
        ['2030-11-03T01:30:00.000Z', '2030-11-03T02:15:00.000Z']],
    ] as const) {
      const [opensAt, closesAt] = window
      const event = { ...AGENDA_EVENT, date: `${opensAt.slice(0, 10)}T11:00:00.000Z`, endsAt: null, opensAt, closesAt }
      const { event: { id } } = (await head.inject('POST', '/agenda', event)).json()
      const { events: [copy] } = (await head.inject('POST', `/agenda/${id}/copies`, { dates: [date] })).json()
      t.strictSame([copy.opensAt, copy.closesAt], moved)
    }
  })

  t.test('in years of four digits, also of a copy', async t => {
    const [first, last] = ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z']
    const [afterFirst, beforeLast] = ['0001-01-01T00:00:00.001Z', '9999-12-31T23:59:59.998Z']
    for (const window of [{ opensAt: first, closesAt: afterFirst }, { opensAt: beforeLast, closesAt: last }]) {
      const date = '2030-01-19T18:00:00.000Z'
      const body = { ...AGENDA_EVENT, date, endsAt: null, ...window }
      const { event } = (await head.inject('POST', '/agenda', body)).json()
      t.match(event, window)
      const dates = ['2030-01-12T18:00:00.000Z', '2030-01-26T18:00:00.000Z']
      const { events } = (await head.inject('POST', `/agenda/${event.id}/copies`, { dates })).json()
      const moved = events[window.opensAt === first ? 0 : 1]
      t.strictSame([moved.opensAt, moved.closesAt], [window.opensAt, window.closesAt])
    }
    const window = { opensAt: '9998-12-31T10:00:00.000Z', closesAt: '2030-01-01T10:00:00.000Z' }
    const far = { ...AGENDA_EVENT, date: '9999-12-31T10:00:00.000Z', endsAt: null }
    for (const [name, expected] of [['opensAt', '2029-12-31T10:00:00.000Z'], ['closesAt', first]] as const) {
      const { event: { id } } = (await head.inject('POST', '/agenda', { ...far, [name]: window[name] })).json()
      const dates = ['2030-12-31T10:00:00.000Z']
      const { events: [copy] } = (await head.inject('POST', `/agenda/${id}/copies`, { dates })).json()
      t.equal(copy[name], expected)
    }
  })

  t.test('closes beside registrations: each response fits a moment of the request', async t => {
    const id = await addEvent()
    const guests = await Promise.all(Array.from({ length: 30 }, () => person(app, 'STUDENT')))
    const [, ...responses] = await Promise.all([
      put(id, { closesAt: past }), ...guests.map(guest => register(guest, id)),
    ])
    const taken = responses.filter(({ statusCode }) => statusCode === 201)
    t.equal((await list(id)).length, taken.length)
    for (const response of responses) {
      if (response.statusCode !== 201) assertMessage(t, response, 400, 'Registration for this event has closed')
    }
  })
})

t.test('POST /agenda/:id/copies with a key creates once', async t => {
  const { event: { id } } = (await head.inject('POST', '/agenda', AGENDA_EVENT)).json()
  const body = { dates: ['2031-03-03T00:00:00.000Z', '2031-03-10T00:00:00.000Z'] }
  const send = () => sendOnce('copies', `/agenda/${id}/copies`, body)
  const first = (await send()).json()
  t.equal(first.events.length, 2)
  t.strictSame((await send()).json(), first)
  await head.inject('DELETE', `/events/${first.events[0].id}`)
  t.strictSame((await send()).json(), { events: [first.events[1]] }, 'what is left')
})

t.test('PUT /me/seats/:eventId and GET /me/seats', async t => {
  const id = await addEvent(soon(100))
  await put(id, { capacity: 1, onlineUrl: 'https://x.org/' })
  await register(ada, id)
  await register(bob, id)
  const own = async (who: Person) => (await who.inject('GET', '/me/seats')).json().seats
    .find(({ event }: { event: { id: string } }) => event.id === id)
  t.match(await own(ada), { state: 'seated', position: null, onlineUrl: 'https://x.org/', event: { seatsLeft: 0 } })
  t.match(await own(bob), { state: 'waiting', position: 1, onlineUrl: null, event: { hasOnlineUrl: true } })
  t.notOk(JSON.stringify(await own(bob)).includes('x.org'))

  const { seat } = (await answer(ada, id, false)).json()
  t.match(seat, { state: 'declined', position: null, onlineUrl: null })
  t.strictSame(seat, await own(ada))
  t.match(await own(bob), { state: 'seated', onlineUrl: 'https://x.org/' })
  t.strictSame(await told(id), [1])
  for (const coming of [false, true, true]) await answer(ada, id, coming)
  t.match(await own(ada), { state: 'waiting', position: 1 }, 'a repeated answer keeps the place in line')
  assertMessage(t, await register(ada, id), 400, 'You have already registered for this event')
  assertMessage(t, await answer(cleo, id, true), 404, 'Registration not found')
})

t.test('PUT /me/seats/:eventId changes no list of who was there, after the end', async t => {
  const id = await addEvent(soon(100))
  await put(id, { capacity: 1 })
  for (const who of [ada, bob]) await register(who, id)
  await sql`UPDATE events SET date = now() - interval '3 hours' WHERE id = ${id}`
  for (const [who, coming] of [[ada, false], [ada, true], [bob, true], [bob, false]] as const) {
    assertMessage(t, await answer(who, id, coming), 409, 'The event is over')
  }
  assertMessage(t, await answer(cleo, id, true), 404, 'Registration not found')
  t.strictSame([await seats(id), await told(id)], [['seated', 'waiting 1'], []])
  await sql`UPDATE events SET date = now() - interval '1 hour' WHERE id = ${id}`
  t.equal((await answer(ada, id, false)).statusCode, 200, 'while it runs, people may leave')
})

t.test('GET /agenda/:id/seats finds the reason for a missing list after admission', async t => {
  const id = await addEvent()
  const late = await person(app, 'CLUB_HEAD')
  const { operations } = app.queues
  const run = operations.run.bind(operations)
  const admitted = t.capture(operations, 'run', async (...work: Parameters<typeof run>) => {
    await sql`UPDATE users SET club_id = ${club} WHERE id = ${late.id}`
    return run(...work)
  })
  const url = `/agenda/${id}/seats`
  assertMessage(t, await late.inject('GET', url), 403, 'Not allowed to view registrations for this event')
  t.equal(admitted().length, 1)
  t.equal((await late.inject('GET', url)).statusCode, 200)
})

t.test('DELETE /agenda/:id/seats/:registrationId takes a person off the list, and tells them once', async t => {
  const id = await addEvent()
  await sql`UPDATE users SET email_verified_at = now() WHERE id IN ${sql([ada.id, bob.id])}`
  await put(id, { capacity: 1 })
  for (const who of [ada, bob]) await register(who, id)
  const [first] = await list(id)
  const remove = (event = id) => head.inject('DELETE', `/agenda/${event}/seats/${first!.registrationId}`)
  assertMessage(t, await remove(await addEvent()), 404, 'Registration not found')
  const responses = await Promise.all([remove(), remove(), remove()])
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 404, 404])
  const emails = await sql`SELECT user_id FROM emails WHERE template = 'seat-removed'`
  t.strictSame([...emails], [{ user_id: ada.id }])
  t.strictSame([await seats(id), await told(id)], [['seated'], [1]])
  t.equal((await register(ada, id)).statusCode, 201)
  t.strictSame(await seats(id), ['waiting 1', 'seated'])

  const past = await addEvent(new Date('2020-01-01'))
  await register(ada, past)
  await head.inject('DELETE', `/agenda/${past}/seats/${(await list(past))[0]!.registrationId}`)
  t.equal((await sql`SELECT FROM emails WHERE template = 'seat-removed'`).count, 1, 'a past event is no news')
})

// Each is a defect that another system had, with the right result here.
t.test('Known defects of waiting lists', async t => {
  const full = async (capacity = 2, registered = 5) => {
    const id = await addEvent()
    await put(id, { capacity })
    for (const who of people.slice(0, registered)) await register(who, id)
    return id
  }

  t.test('A registration while seats are free gets one at once, and is never left waiting', async t => {
    t.strictSame(await seats(await full(3, 2)), ['seated', 'seated'])
  })

  t.test('A grown room seats as many people as it has seats (monoweb #2430, #2453)', async t => {
    const id = await full()
    await put(id, { capacity: 4 })
    t.strictSame([await seats(id), await told(id)], [['seated', 'seated', 'seated', 'seated', 'waiting 1'], [2, 3]])
  })

  t.test('Positions have no gaps and no doubles after somebody leaves the line', async t => {
    const id = await full()
    await answer(dan, id, false)
    t.strictSame(await seats(id), ['seated', 'seated', 'waiting 1', 'declined', 'waiting 2'])
    t.strictSame(await told(id), [], 'somebody who waits gives no seat up')
    const { event } = (await inject(app, 'GET', `/agenda/${id}`)).json()
    t.match(event, { registrationCount: 5, comingCount: 4, seatsLeft: 0 }, 'those who watch the event see a change')
  })

  t.test('A seat that is given up or taken away seats the next (monoweb #2758, #2852)', async t => {
    const id = await full()
    await head.inject('DELETE', `/agenda/${id}/seats/${(await list(id))[0]!.registrationId}`)
    t.strictSame([await seats(id), await told(id)], [['seated', 'seated', 'waiting 1', 'waiting 2'], [2]])
    await answer(bob, id, false)
    t.strictSame([await seats(id), await told(id)], [['declined', 'seated', 'seated', 'waiting 1'], [3]])
  })

  t.test('Who comes back is last, and everybody who gets a seat is told (monoweb #3279)', async t => {
    const id = await full()
    await answer(ada, id, false)
    await answer(ada, id, true)
    t.strictSame([await seats(id), await told(id)], [['waiting 3', 'seated', 'seated', 'waiting 1', 'waiting 2'], [2]])
  })

  t.test('A declined registration counts once, however often it is declined (Hi.Events PR 1072)', async t => {
    const id = await full(3, 2)
    for (const coming of [false, false, true, false]) await answer(ada, id, coming)
    const { event } = (await inject(app, 'GET', `/agenda/${id}`)).json()
    t.match(event, { registrationCount: 2, comingCount: 1, seatsLeft: 2 })
  })

  t.test('A full event takes people who wait, and tells them when it grows (Hi.Events #315)', async t => {
    const id = await full(2, 3)
    await put(id, { capacity: 20 })
    t.strictSame(await told(id), [2])
  })

  t.test('A seat that is given up seats one person who waits, the first (JEM #1926)', async t => {
    const id = await full()
    await answer(ada, id, false)
    t.strictSame([await seats(id), await told(id)], [['declined', 'seated', 'seated', 'waiting 1', 'waiting 2'], [2]])
  })

  t.test('Who waits and answers again, or cancels, does not get a seat by that (JEM #1663)', async t => {
    const id = await full()
    for (const coming of [true, false, false]) await answer(cleo, id, coming)
    t.strictSame(await seats(id), ['seated', 'seated', 'declined', 'waiting 1', 'waiting 2'])
    await answer(cleo, id, true)
    t.strictSame([await seats(id), await told(id)], [['seated', 'seated', 'waiting 3', 'waiting 1', 'waiting 2'], []])
  })

  t.test('Nobody waits while a seat is free (pretix #3628)', async t => {
    const id = await full(4, 5)
    for (const who of [ada, bob, people[4]!, cleo]) {
      await answer(who, id, false)
      const { seatsLeft, waitingCount } = (await inject(app, 'GET', `/agenda/${id}`)).json().event
      t.equal(waitingCount, (await seats(id)).filter(seat => seat.startsWith('waiting')).length)
      t.ok(seatsLeft === 0 || !(await seats(id)).some(seat => seat.startsWith('waiting')))
    }
  })

  t.test('A deleted account frees its seat, whoever deletes it', async t => {
    const admin = await person(app, 'ADMIN')
    const deletions: Record<string, (gone: Person) => Promise<unknown>> = {
      'by a command': ({ id }) => eraseAccount(sql, sql`${id}::uuid`, { outbox: app.outbox }),
      'by the owner': gone => gone.inject('DELETE', '/me', { currentPassword: null }),
      'by an admin': ({ id }) => admin.inject('DELETE', `/account/${id}`),
    }
    for (const [way, remove] of Object.entries(deletions)) {
      const gone = await person(app)
      const id = await addEvent()
      await put(id, { capacity: 1 })
      await register(gone, id)
      await register(ada, id)
      await remove(gone)
      t.strictSame([await seats(id), await told(id)], [['seated'], [0]], way)
    }
  })

  t.test('A limit that is removed seats everybody', async t => {
    const id = await full()
    await put(id, { capacity: null })
    t.strictSame([await seats(id), await told(id)], [Array(5).fill('seated'), [2, 3, 4]])
    t.equal((await inject(app, 'GET', `/agenda/${id}`)).json().event.seatsLeft, null)
  })
})

t.test('360 writes at once leave as many people seated as there are seats, and lose nobody', async t => {
  const crowd = await Promise.all(Array.from({ length: 120 }, () => person(app)))
  const id = await addEvent()
  await put(id, { capacity: 20 })
  await Promise.all(crowd.map(who => register(who, id)))
  const first = await list(id)
  // Each person answers three times at once, and every fourth does not come in the end.
  const answers = crowd.map(async (who, n) => {
    for (const coming of [false, n % 8 === 0, n % 4 !== 0]) await answer(who, id, coming)
  })
  await Promise.all(answers)
  const last = await list(id)
  const positions = (wanted: string) => last.filter(({ state }) => state === wanted).map(({ position }) => position)
  t.strictSame([positions('seated').length, positions('declined').length], [20, 30])
  t.strictSame(positions('waiting'), Array.from({ length: 70 }, (_, n) => n + 1))
  t.strictSame(last.map(({ userId }) => userId).sort(), crowd.map(({ id }) => id).sort())
  t.equal(first.filter(({ state }) => state === 'seated').length, 20)
})

/** A person in the line of the model. */
interface Model {
  capacity: number | null
  /** Those who come, in line, with whether they have been seated. */
  line: { who: number, seated: boolean }[]
  declined: Set<number>
  told: number[]
}

/** Seats people from the front: who has a seat keeps it. */
function seatModel (model: Model, leaves?: number) {
  model.line = model.line.filter(({ who }) => who !== leaves)
  let taken = model.line.filter(({ seated }) => seated).length
  for (const place of model.line) {
    if (place.seated || (model.capacity !== null && taken >= model.capacity)) continue
    place.seated = true
    taken++
    model.told.push(place.who)
  }
}

interface Real { id: string }
type Command = fc.AsyncCommand<Model, Real>

/** Runs a change in the model and in the service, and compares them. */
const command = (name: string, change: (model: Model) => boolean, send: (real: Real) => Promise<number>): Command => ({
  check: () => true,
  toString: () => name,
  async run (model, real) {
    model.told = []
    const isPossible = change(model)
    const status = await send(real)
    const expected = people.map((_, who) => {
      if (model.declined.has(who)) return 'declined'
      const place = model.line.find(place => place.who === who)
      const waiting = model.line.filter(({ seated }) => !seated)
      return place && (place.seated ? 'seated' : `waiting ${waiting.indexOf(place) + 1}`)
    }).filter(state => state !== undefined)
    const { event } = (await inject(app, 'GET', `/agenda/${real.id}`)).json()
    const left = model.capacity === null ? null : Math.max(0, model.capacity - model.line.length)
    const waiting = model.line.filter(({ seated }) => !seated).length
    const found = [status < 300, await seats(real.id), await told(real.id), event.seatsLeft, event.waitingCount]
    assert.deepEqual(found, [isPossible, expected, model.told, left, waiting])
  },
})

const has = (model: Model, who: number) => model.declined.has(who) || model.line.some(place => place.who === who)
const whoever = fc.nat(people.length - 1)

const join = (model: Model, who: number) => {
  model.line.push({ who, seated: false })
  seatModel(model)
  // People who get a seat at once are not told by an email of their own.
  model.told = model.told.filter(told => told !== who)
}

const commands = fc.commands([
  whoever.map(who => command(`register ${who}`, model => {
    if (has(model, who)) return false
    join(model, who)
    return true
  }, async ({ id }) => (await register(people[who]!, id)).statusCode)),
  whoever.map(who => command(`decline ${who}`, model => {
    if (!has(model, who)) return false
    model.declined.add(who)
    seatModel(model, who)
    return true
  }, async ({ id }) => (await answer(people[who]!, id, false)).statusCode)),
  whoever.map(who => command(`return ${who}`, model => {
    if (!has(model, who)) return false
    if (model.declined.delete(who)) join(model, who)
    return true
  }, async ({ id }) => (await answer(people[who]!, id, true)).statusCode)),
  whoever.map(who => command(`remove ${who}`, model => {
    if (!has(model, who)) return false
    model.declined.delete(who)
    seatModel(model, who)
    return true
  }, async ({ id }) => {
    const seat = (await list(id)).find(({ userId }) => userId === people[who]!.id)
    return (await head.inject('DELETE', `/agenda/${id}/seats/${seat?.registrationId ?? 'none'}`)).statusCode
  })),
  fc.option(fc.integer({ min: 1, max: 6 })).map(capacity => command(`capacity ${capacity}`, model => {
    model.capacity = capacity
    seatModel(model)
    return true
  }, async ({ id }) => (await put(id, { capacity })).statusCode)),
], { maxCommands: 40 })

t.test('Seats follow a simple model, whatever people do, and everybody sees the same', async t => {
  await fc.assert(fc.asyncProperty(commands, async commands => {
    const id = await addEvent()
    const model: Model = { capacity: null, line: [], declined: new Set(), told: [] }
    await fc.asyncModelRun(() => ({ model, real: { id } }), commands)
    const expected = await seats(id)
    assert.deepEqual(await ownSeats(id), expected)
    assert.deepEqual(await exportedStates(id), expected.map(seat => seat.split(' ')[0]))
  }), { numRuns: 40 })
  t.end()
})

t.test('Changes at the same time give everybody who waited one email for one seat', async t => {
  for (let round = 0; round < 5; round++) {
    const id = await addEvent()
    await put(id, { capacity: 3 })
    for (const who of people) await register(who, id)
    const before = await list(id)
    await Promise.all([
      answer(ada, id, false), answer(bob, id, false), put(id, { capacity: 4 }),
      head.inject('DELETE', `/agenda/${id}/seats/${before[2]!.registrationId}`), answer(ada, id, false),
    ])
    t.strictSame((await told(id)).sort(), [3, 4, 5, 6])
    t.strictSame(await seats(id), ['declined', 'declined', 'seated', 'seated', 'seated', 'seated', 'waiting 1'])
  }
})

t.test('A registration locks the event before its seats, whatever the names of the triggers are', async t => {
  const id = await addEvent()
  await put(id, { capacity: 1 })
  await sql`ALTER TRIGGER line_up ON event_registrations RENAME TO "A"`
  t.teardown(() => sql`ALTER TRIGGER "A" ON event_registrations RENAME TO line_up`)
  let registering!: ReturnType<typeof register>
  await sql.begin(async transaction => {
    await transaction`SELECT FROM events WHERE id = ${id} FOR UPDATE`
    registering = register(ada, id)
    await untilBlocked(sql)
    const { count } = await transaction`SELECT FROM event_details WHERE event_id = ${id} FOR UPDATE NOWAIT`
    t.equal(count, 1)
  })
  t.equal((await registering).statusCode, 201)
})

t.test('A clock that was set back lets nobody overtake', async t => {
  const id = await addEvent()
  await put(id, { capacity: 1 })
  await register(ada, id)
  await sql`UPDATE event_answers SET since = now() + interval '1 hour' WHERE event_id = ${id}`
  await register(bob, id)
  t.strictSame(await seats(id), ['seated', 'waiting 1'])
})
