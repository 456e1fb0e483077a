import t from 'tap'

import { assertInvalid, assertMessage, assertResponse, DATE_TIME } from '../../assertions.ts'
import { build, createDatabase, inject, person } from '../../helper.ts'
import {
  app, badDates, body, clubOf, dates, type Event, FAR_TOO_LONG, ghost, invalidFields, makeClub, makeHead, send,
  UNKNOWN,
} from './fixtures.ts'

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

  t.test('ignores unknown fields, including id and date', async t => {
    const extra = { id: UNKNOWN, date: '2000-01-01', createdAt: '2000-01-01T00:00:00.000Z', club: {}, x: null }
    const { event } = (await head.inject('POST', '/events', { ...body, ...extra })).json()
    t.strictSame(Object.keys(event).sort(),
      ['club', 'clubId', 'createdAt', 'date', 'description', 'id', 'imageUrl', 'title'])
    t.not(event.id, extra.id)
    t.not(event.createdAt, extra.createdAt)
    t.equal(event.date, body.data)
  })

  t.test('accepts the shortest and the longest texts', async t => {
    const fields = [
      { title: 'abc' }, { title: '   ' }, { title: 'a😀' }, { title: FAR_TOO_LONG }, { description: '1234567890' },
      { description: FAR_TOO_LONG }, { description: '<script>alert("1")</script>' }, { imageUrl: 'data:,x' },
      { imageUrl: `https://img.example/${FAR_TOO_LONG}` }, { imageUrl: 'a:' },
    ]
    for (const each of fields) {
      const response = await head.inject('POST', '/events', { ...body, ...each })
      t.match([response.statusCode, response.json().event], [201, each])
    }
  })

  t.test('stores the date in UTC', async t => {
    for (const [data, date] of dates) {
      const response = await head.inject('POST', '/events', { ...body, data })
      t.strictSame([response.statusCode, response.json().event?.date], [201, date], data)
      const { events } = (await head.inject('GET', '/events/mine')).json()
      const { id } = response.json().event
      t.equal(events.find((event: Event) => event.id === id).date, date, `${data}, read again`)
    }
  })

  t.test('returns 500 for a date that cannot be parsed or stored', async t => {
    for (const data of badDates) {
      assertMessage(t, await head.inject('POST', '/events', { ...body, data }), 500, 'Error creating event',
        data.slice(0, 40))
    }
  })

  t.test('validates every field, and reports each issue', async t => {
    for (const [fields, ...paths] of invalidFields) {
      assertInvalid(t, await head.inject('POST', '/events', { ...body, ...fields }), paths, JSON.stringify(fields))
    }
    assertInvalid(t, await head.inject('POST', '/events', {}), ['title', 'description', 'data'])
    assertInvalid(t, await head.inject('POST', '/events', { imageUrl: 'x' }),
      ['title', 'description', 'data', 'imageUrl'])
    assertInvalid(t, await head.inject('POST', '/events', { ...body, data: undefined, date: body.data }), ['data'])
  })

  t.test('requires an object', async t => {
    for (const payload of ['[]', `[${JSON.stringify(body)}]`, '"text"', 'null', '1', 'true']) {
      assertInvalid(t, await send(head, 'POST', '/events', payload), [''], payload)
    }
  })

  t.test('requires imageUrl in effect', async t => {
    const { imageUrl, ...rest } = body
    assertMessage(t, await head.inject('POST', '/events', rest), 400, 'All fields are required')
    t.type(imageUrl, 'string')
  })

  t.test('requires a club', async t => {
    for (const someone of [await person(app, 'CLUB_HEAD'), await ghost('CLUB_HEAD')]) {
      const message = 'You must be a club head to create an event'
      assertMessage(t, await someone.inject('POST', '/events', body), 400, message)
      assertMessage(t, await someone.inject('POST', '/events', { ...body, clubId: club.id }), 400, message)
    }
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

  t.test('stores nothing when it rejects', async t => {
    const fresh = await makeHead(await makeClub())
    const { imageUrl: _, ...rest } = body
    for (const payload of [{}, rest, { ...body, title: 'ab' }, { ...body, data: 'tomorrow' }]) {
      t.not((await fresh.inject('POST', '/events', payload)).statusCode, 201)
    }
    assertResponse(t, await fresh.inject('GET', '/events/mine'), 200, { events: [] })
  })

  t.test('accepts lone surrogates', async t => {
    const response = await head.inject('POST', '/events', { ...body, title: 'half \ud83d of it' })
    if (response.statusCode === 400) assertInvalid(t, response, ['title'])
    else t.strictSame([response.statusCode, response.json().event.title], [201, 'half \ufffd of it'])
  })
})

t.test('Timestamps have one format, whatever the time zone of the database', async t => {
  const url = await createDatabase(t)
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
