import t from 'tap'

import { ROLES } from '#lib/auth/accounts.js'
import { assertInvalid, assertMessage, unknownPaths } from '../../assertions.ts'
import { bearerOfJson, inject, person, type Person } from '../../helper.ts'
import { admin, app, register, storeBlog, storeClub, storedUser, storeEvent, storeMentor } from './fixtures.ts'

t.test('DELETE /users/:id deletes a user, also a club head or a member', async t => {
  for (const role of ROLES) {
    const user = await person(app, role)
    const clubId = await storeClub({ club_head_id: user.id })
    await app.sql`UPDATE users SET club_id = ${clubId} WHERE id = ${user.id}`
    assertMessage(t, await admin.inject('DELETE', `/users/${user.id}`), 200, 'User deleted successfully')
    t.equal(await storedUser(user.id), undefined)
    const [club] = await app.sql`SELECT club_head_id FROM clubs WHERE id = ${clubId}`
    t.equal(club?.club_head_id, user.id)
    assertMessage(t, await admin.inject('DELETE', `/users/${user.id}`), 404, 'User not found')
  }
})

t.test('DELETE /users/:id accepts an empty JSON body', async t => {
  const user = await person(app)
  const headers = bearerOfJson(admin.token)
  const response = await inject(app, 'DELETE', `/users/${user.id}`, undefined, headers)
  assertMessage(t, response, 200, 'User deleted successfully')
})

t.test('DELETE /users/:id lets admins delete themselves', async t => {
  const me = await person(app, 'ADMIN')
  assertMessage(t, await me.inject('DELETE', `/users/${me.id}`), 200, 'User deleted successfully')
  assertMessage(t, await me.inject('DELETE', `/users/${me.id}`), 404, 'User not found')
})

t.test('DELETE /users/:id returns 500 while blogs or registrations reference the user; likes are deleted', async t => {
  const clubId = await storeClub()
  const mentorId = await storeMentor(clubId)
  const other = await person(app)
  const like = ({ id }: Person) => app.sql`INSERT INTO mentor_likes ${app.sql({ user_id: id, mentor_id: mentorId })}`
  const likes = async () => (await app.sql`SELECT user_id FROM mentor_likes WHERE mentor_id = ${mentorId}`).length
  await like(other)

  for (const relate of [
    (user: Person) => storeBlog(user, { status: 'ARCHIVED' }),
    async (user: Person) => register(user, await storeEvent(clubId)),
  ]) {
    const user = await person(app)
    await like(user)
    const related = await relate(user)
    assertMessage(t, await admin.inject('DELETE', `/users/${user.id}`), 500, 'Error deleting user')
    t.ok(await storedUser(user.id))
    t.equal(await likes(), 2, 'the like is kept')

    await app.sql`DELETE FROM blogs WHERE id = ${related}`
    await app.sql`DELETE FROM event_registrations WHERE id = ${related}`
    assertMessage(t, await admin.inject('DELETE', `/users/${user.id}`), 200, 'User deleted successfully')
    t.equal(await likes(), 1)
  }
})

t.test('DELETE /users/:id does not deadlock with likes and deletions of mentors', async t => {
  const clubId = await storeClub()
  for (let round = 0; round < 10; round++) {
    const users = await Promise.all(Array.from({ length: 4 }, () => person(app)))
    const mentors = await Promise.all(Array.from({ length: 30 }, () => storeMentor(clubId)))
    await app.sql`
      INSERT INTO mentor_likes (user_id, mentor_id)
      SELECT users.id, mentors.id FROM users, mentors
      WHERE users.id IN ${app.sql(users.map(({ id }) => id))} AND mentors.id IN ${app.sql(mentors)}
      ORDER BY random()
    `
    const deletions = [
      ...users.map(({ id }) => `/users/${id}`), ...mentors.map(id => `/mentors/${id}`),
    ].sort(() => Math.random() - 0.5)
    const toggles = mentors.map(id => admin.inject('POST', `/mentors/${id}/like`))
    const deleted = await Promise.all(deletions.map(url => admin.inject('DELETE', url)))
    t.strictSame(deleted.map(({ statusCode }) => statusCode), deletions.map(() => 200))
    for (const { statusCode } of await Promise.all(toggles)) t.ok([200, 404].includes(statusCode), String(statusCode))
  }
})

t.test('DELETE /users/:id returns 404 for an unknown id', async t => {
  const { id } = await person(app)
  for (const unknown of unknownPaths(id)) {
    assertMessage(t, await admin.inject('DELETE', `/users/${unknown}`), 404, 'User not found', unknown.slice(0, 50))
  }
  t.ok(await storedUser(id))
})

t.test('An empty id is a validation error', async t => {
  const clubId = await storeClub()
  assertInvalid(t, await admin.inject('PUT', '/users//role', { newRole: 'ADMIN' }), ['userId'])
  assertInvalid(t, await admin.inject('PUT', '/users//club', { clubId }), ['userId'])
  assertInvalid(t, await admin.inject('DELETE', '/users//'), ['id'])
})
