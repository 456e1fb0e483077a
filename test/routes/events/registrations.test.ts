import t from 'tap'

import { assertMessage, assertResponse, DATE_TIME, unknownPaths } from '../../assertions.ts'
import { inject, person } from '../../helper.ts'
import {
  app, body, clubOf, contend, countRegistrations, type Event, ghost, ids, makeClub, makeEvent, makeHead, makeIds,
  makeRegistration, type Registration, send, UNKNOWN,
} from './fixtures.ts'

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

  t.test('ignores the body', async t => {
    const { id } = await makeEvent(club.id)
    const other = await person(app)
    const forged = JSON.stringify({ userId: other.id, eventId: UNKNOWN })
    for (const payload of [undefined, '', '{}', '[]', 'null', '"x"', '1', forged]) {
      const someone = await person(app)
      const response = await send(someone, 'POST', `/events/${id}/register`, payload)
      const { userId, eventId } = response.json().registration
      t.strictSame([response.statusCode, userId, eventId], [201, someone.id, id], payload ?? 'none')
    }
    assertResponse(t, await other.inject('GET', '/events/registered'), 200, { registrations: [] })
  })

  t.test('returns 500 for an unknown event', async t => {
    const someone = await person(app)
    const { id } = await makeEvent(club.id)
    for (const unknown of [...unknownPaths(id), '']) {
      const response = await someone.inject('POST', `/events/${unknown}/register`)
      assertMessage(t, response, 500, 'Error registering for event', unknown.slice(0, 60))
    }
    t.equal(await countRegistrations(id), 0)
  })

  t.test('returns 500 for a deleted user', async t => {
    const { id } = await makeEvent(club.id)
    for (const someone of [await ghost('STUDENT'), await ghost('ADMIN')]) {
      assertMessage(t, await someone.inject('POST', `/events/${id}/register`), 500, 'Error registering for event')
    }
    t.equal(await countRegistrations(id), 0)
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

  t.test('registers once beside a concurrent registration in progress', async t => {
    const someone = await person(app)
    const { id } = await makeEvent(club.id)
    const [response] = await contend(
      sql => sql`INSERT INTO event_registrations (user_id, event_id) VALUES (${someone.id}, ${id})`,
      () => [someone.inject('POST', `/events/${id}/register`)])
    assertMessage(t, response!, 400, alreadyRegistered)
    t.equal(await countRegistrations(id), 1)
  })

  t.test('registers fifty users concurrently', async t => {
    const { id } = await makeEvent(club.id)
    const people = await Promise.all(Array.from({ length: 50 }, () => person(app)))
    const responses = await Promise.all(people.map(someone => someone.inject('POST', `/events/${id}/register`)))
    t.strictSame(responses.map(({ statusCode }) => statusCode), Array(50).fill(201))
    t.equal(new Set(responses.map(response => response.json().registration.id)).size, 50)
    const { events } = (await inject(app, 'GET', '/events?limit=10000')).json()
    t.equal(events.find((event: Event) => event.id === id).registrationCount, 50)
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

  t.test('is sorted by event date descending, then by id', async t => {
    const club = await makeClub()
    const someone = await person(app)
    const { ordered, shuffled } = makeIds()
    const day = (id: string) => ordered.indexOf(id) % 3
    for (const id of shuffled) {
      const event = await makeEvent(club.id, { date: `2030-01-0${day(id) + 1}T00:00:00Z` })
      await makeRegistration(someone.id, event.id, { id })
    }
    const expected = [...ordered].sort((a, b) => day(b) - day(a) || (a < b ? -1 : 1))
    t.strictSame(ids((await someone.inject('GET', '/events/registered')).json().registrations), expected)
  })

  t.test('is empty for a deleted user', async t => {
    assertResponse(t, await (await ghost('STUDENT')).inject('GET', '/events/registered'), 200, { registrations: [] })
  })
})

t.test('GET /events/:id/registrations', async t => {
  const club = await makeClub()
  const other = await makeClub()
  const head = await makeHead(club)
  const admin = await person(app, 'ADMIN')

  t.test('returns the registrations, newest first', async t => {
    const { id, title, date } = await makeEvent(club.id)
    const event = { id, title, date }
    for (const someone of [head, admin]) {
      assertResponse(t, await someone.inject('GET', `/events/${id}/registrations`), 200, { event, registrations: [] })
    }
    const ada = await person(app, 'STUDENT', { first_name: 'Ada', last_name: 'Lovelace' })
    const grace = await person(app, 'ADMIN', { first_name: 'Grace', last_name: 'Hopper' })
    const one = await makeRegistration(ada.id, id, { registered_at: '2026-01-01T00:00:00.001Z' })
    const two = await makeRegistration(grace.id, id, { registered_at: '2026-01-01T00:00:00.002Z' })
    await makeRegistration(ada.id, (await makeEvent(club.id)).id)
    const registrations = [
      { ...two, userId: grace.id, name: 'Grace Hopper', email: grace.email },
      { ...one, userId: ada.id, name: 'Ada Lovelace', email: ada.email },
    ]
    for (const someone of [head, admin, await person(app, 'ADMIN', { club_id: other.id })]) {
      for (const url of [`/events/${id}/registrations`, `/events/${id}/registrations/?page=2`]) {
        assertResponse(t, await someone.inject('GET', url), 200, { event, registrations })
      }
    }
  })

  t.test('is sorted by id for equal times', async t => {
    const { event } = (await head.inject('POST', '/events', body)).json()
    const { ordered, shuffled } = makeIds()
    const second = (id: string) => ordered.indexOf(id) % 3
    for (const id of shuffled) {
      const fields = { id, registered_at: `2026-01-01T00:00:0${second(id)}.000Z` }
      await makeRegistration((await person(app)).id, event.id, fields)
    }
    const expected = [...ordered].sort((a, b) => second(b) - second(a) || (a < b ? -1 : 1))
    t.strictSame(ids((await head.inject('GET', `/events/${event.id}/registrations`)).json().registrations), expected)
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

  t.test('allows the head of the current club of the event, and admins', async t => {
    const { id } = await makeEvent(club.id)
    const changing = await makeHead(club)
    await app.sql`UPDATE users SET club_id = ${other.id} WHERE id = ${changing.id}`
    const refused = [await makeHead(other), changing, await person(app, 'CLUB_HEAD'), await ghost('CLUB_HEAD')]
    for (const someone of refused) {
      const response = await someone.inject('GET', `/events/${id}/registrations`)
      assertMessage(t, response, 403, 'Not allowed to view registrations for this event')
    }
    await app.sql`UPDATE users SET club_id = ${club.id} WHERE id = ${changing.id}`
    t.equal((await changing.inject('GET', `/events/${id}/registrations`)).statusCode, 200)
    await app.sql`UPDATE events SET club_id = ${other.id} WHERE id = ${id}`
    assertMessage(t, await head.inject('GET', `/events/${id}/registrations`), 403,
      'Not allowed to view registrations for this event')
  })

  t.test('returns 404 for an unknown event', async t => {
    const { id } = await makeEvent(club.id)
    for (const unknown of unknownPaths(id)) {
      for (const someone of [head, admin]) {
        const response = await someone.inject('GET', `/events/${unknown}/registrations`)
        assertMessage(t, response, 404, 'Event not found', unknown.slice(0, 60))
      }
    }
  })

  t.test('requires an id', async t => {
    for (const someone of [head, admin]) {
      assertMessage(t, await someone.inject('GET', '/events//registrations'), 400, 'Event ID is required')
    }
    const student = await person(app)
    assertMessage(t, await student.inject('GET', '/events//registrations'), 403, 'Forbidden')
  })
})
