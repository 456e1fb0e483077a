import t from 'tap'

import { assertInvalid, assertMessage, assertResponse, shown, unknownIds, unknownPaths } from '../../assertions.ts'
import { person } from '../../helper.ts'
import {
  app, badDates, body, clubOf, countRegistrations, dates, ghost, invalidFields, makeClub, makeEvent, makeHead,
  makeRegistration, send, UNKNOWN,
} from './fixtures.ts'

t.test('PUT /events/:id', async t => {
  const club = await makeClub()
  const other = await makeClub({ image_url: null })
  const head = await makeHead(club)
  const stranger = await makeHead(other)
  const admin = await person(app, 'ADMIN')
  const message = 'Event updated successfully'
  const find = async (id: string) => {
    const rows = await app.sql`
      SELECT id, title, description, image_url AS "imageUrl", date, club_id AS "clubId", created_at AS "createdAt"
      FROM events WHERE id = ${id}
    `
    return JSON.parse(JSON.stringify(rows[0]))
  }

  t.test('changes only the given fields', async t => {
    const cases: [payload: object, changes: object][] = [
      [{}, {}],
      [{ title: 'abc' }, { title: 'abc' }],
      [{ description: '1234567890' }, { description: '1234567890' }],
      [{ data: '2031-02-03' }, { date: '2031-02-03T00:00:00.000Z' }],
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

  t.test('keeps an imageUrl of null', async t => {
    const event = await makeEvent(club.id, { image_url: null })
    const response = await head.inject('PUT', `/events/${event.id}/`, { title: 'Still plain' })
    assertResponse(t, response, 200, { event: { ...event, title: 'Still plain', club: clubOf(club) }, message })
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

  t.test('stores the date in UTC', async t => {
    const { id } = await makeEvent(club.id)
    for (const [data, date] of dates) {
      const response = await head.inject('PUT', `/events/${id}`, { data })
      t.strictSame([response.statusCode, response.json().event?.date], [200, date], data)
    }
  })

  t.test('returns 500 for a date that cannot be parsed or stored, and changes nothing', async t => {
    const event = await makeEvent(club.id)
    for (const data of badDates) {
      const response = await head.inject('PUT', `/events/${event.id}`, { data, title: 'Not to be seen' })
      assertMessage(t, response, 500, 'Error updating event', data.slice(0, 40))
    }
    t.strictSame(await find(event.id), event)
  })

  t.test('validates every field, and reports each issue', async t => {
    const event = await makeEvent(club.id)
    const cases: typeof invalidFields = [
      ...invalidFields, [{ clubId: null }, 'clubId'], [{ clubId: 1 }, 'clubId'], [{ clubId: ['x'] }, 'clubId'],
      [{ clubId: '\0' }, 'clubId'],
    ]
    for (const [fields, ...paths] of cases) {
      assertInvalid(t, await head.inject('PUT', `/events/${event.id}`, fields), paths, JSON.stringify(fields))
    }
    for (const payload of ['[]', '"text"', 'null', '1', 'false']) {
      assertInvalid(t, await send(head, 'PUT', `/events/${event.id}`, payload), [''], payload)
    }
    t.strictSame(await find(event.id), event)
  })

  t.test('allows the head of the current club of the event, and admins', async t => {
    const event = await makeEvent(club.id)
    const changing = await makeHead(other)
    const refused = [stranger, changing, await person(app, 'CLUB_HEAD'), await ghost('CLUB_HEAD')]
    for (const someone of refused) {
      const response = await someone.inject('PUT', `/events/${event.id}`, { title: 'Taken over' })
      assertMessage(t, response, 403, 'Not allowed to modify this event')
    }
    t.strictSame(await find(event.id), event)
    await app.sql`UPDATE users SET club_id = ${club.id} WHERE id = ${changing.id}`
    t.equal((await changing.inject('PUT', `/events/${event.id}`, {})).statusCode, 200)
    await app.sql`UPDATE users SET club_id = NULL WHERE id = ${changing.id}`
    assertMessage(t, await changing.inject('PUT', `/events/${event.id}`, {}), 403, 'Not allowed to modify this event')
    for (const fields of [{}, { club_id: other.id }]) {
      const someone = await person(app, 'ADMIN', fields)
      t.equal((await someone.inject('PUT', `/events/${event.id}`, {})).statusCode, 200)
    }
  })

  t.test('returns 404 for an unknown event', async t => {
    const { id } = await makeEvent(club.id)
    for (const unknown of unknownPaths(id)) {
      for (const someone of [head, admin, await person(app, 'CLUB_HEAD')]) {
        const response = await someone.inject('PUT', `/events/${unknown}`, {})
        assertMessage(t, response, 404, 'Event not found', unknown.slice(0, 60))
      }
    }
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

  t.test('rejects an empty id', async t => {
    assertInvalid(t, await admin.inject('PUT', '/events//', {}), ['id'])
  })
})
