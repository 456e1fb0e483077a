import t from 'tap'

import { assertInvalid, assertMessage, unknownPaths } from '../../assertions.ts'
import { person } from '../../helper.ts'
import {
  app, contend, countRegistrations, ghost, makeClub, makeEvent, makeHead, makeRegistration, send,
} from './fixtures.ts'

t.test('DELETE /events/:id', async t => {
  const club = await makeClub()
  const other = await makeClub()
  const head = await makeHead(club)
  const stranger = await makeHead(other)
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
      assertMessage(t, await someone.inject('DELETE', `/events/${id}`), 404, 'Event not found')
      assertMessage(t, await someone.inject('POST', `/events/${id}/register`), 500, 'Error registering for event')
    }
  })

  t.test('accepts an empty JSON body, and ignores any other', async t => {
    for (const payload of [undefined, '', '{}', '[1]', 'null']) {
      const { id } = await makeEvent(club.id)
      assertMessage(t, await send(head, 'DELETE', `/events/${id}`, payload), 200, message, payload)
    }
    assertMessage(t, await head.inject('DELETE', `/events/${(await makeEvent(club.id)).id}/`), 200, message)
  })

  t.test('allows the head of the current club of the event, and admins', async t => {
    const { id } = await makeEvent(club.id)
    await makeRegistration(admin.id, id)
    const changing = await makeHead(club)
    await app.sql`UPDATE users SET club_id = ${other.id} WHERE id = ${changing.id}`
    const refused = [stranger, changing, await person(app, 'CLUB_HEAD'), await ghost('CLUB_HEAD')]
    for (const someone of refused) {
      assertMessage(t, await someone.inject('DELETE', `/events/${id}`), 403, 'Not allowed to delete this event')
    }
    t.strictSame([await exists(id), await countRegistrations(id)], [true, 1])
    await app.sql`UPDATE users SET club_id = ${club.id} WHERE id = ${changing.id}`
    assertMessage(t, await changing.inject('DELETE', `/events/${id}`), 200, message)
  })

  t.test('returns 404 for an unknown event', async t => {
    const { id } = await makeEvent(club.id)
    for (const unknown of unknownPaths(id)) {
      for (const someone of [head, admin]) {
        assertMessage(t, await someone.inject('DELETE', `/events/${unknown}`), 404, 'Event not found',
          unknown.slice(0, 60))
      }
    }
    t.equal(await exists(id), true)
  })

  t.test('rejects an empty id', async t => {
    assertInvalid(t, await admin.inject('DELETE', '/events//'), ['id'])
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
