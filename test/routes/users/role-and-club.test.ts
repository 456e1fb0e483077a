import { randomUUID } from 'node:crypto'

import t from 'tap'

import { ROLES } from '#lib/auth/accounts.js'
import { assertInvalid, assertMessage, DATE_TIME, unknownIds, unknownPaths } from '../../assertions.ts'
import { bearer, bearerOfJson, inject, person } from '../../helper.ts'
import { admin, app, PAST, profile, storeClub, storedUser } from './fixtures.ts'

t.test('PUT /users/:userId/role changes any role to any other, and returns the user', async t => {
  const clubId = await storeClub({ name: 'Sailing' })
  for (const from of ROLES) {
    for (const newRole of ROLES) {
      const user = await person(app, from, { club_id: clubId, created_at: PAST, updated_at: PAST })
      const response = await admin.inject('PUT', `/users/${user.id}/role`, { newRole })
      t.equal(response.statusCode, 200)
      t.strictSame(response.json(), {
        user: {
          id: user.id,
          email: user.email,
          firstName: 'Ada',
          lastName: 'Lovelace',
          role: newRole,
          club: { name: 'Sailing' },
        },
        message: 'Role changed successfully',
      })
      const stored = await storedUser(user.id)
      t.equal(stored?.role, newRole)
      t.ok(new Date(stored?.updated_at) > new Date(PAST))
    }
  }
})

t.test('PUT /users/:userId/role returns null without a club', async t => {
  const user = await person(app)
  t.equal((await admin.inject('PUT', `/users/${user.id}/role`, { newRole: 'ADMIN' })).json().user.club, null)
})

t.test('PUT /users/:userId/role does not change membership and club leadership', async t => {
  const head = await person(app, 'CLUB_HEAD')
  const clubId = await storeClub({ club_head_id: head.id })
  await app.sql`UPDATE users SET club_id = ${clubId} WHERE id = ${head.id}`
  const response = await admin.inject('PUT', `/users/${head.id}/role`, { newRole: 'STUDENT', clubId: null })
  t.equal(response.statusCode, 200)
  t.equal((await storedUser(head.id))?.club_id, clubId)
  const [club] = await app.sql`SELECT club_head_id FROM clubs WHERE id = ${clubId}`
  t.equal(club?.club_head_id, head.id)
})

t.test('An issued token keeps its role; the next sign-in gets the new one', async t => {
  const account = { email: `${randomUUID()}@example.org`, password: 'long enough' }
  const names = { firstName: 'Ada', lastName: 'Lovelace' }
  const { user, token } = (await inject(app, 'POST', '/auth/register', { ...account, ...names })).json()
  t.equal(user.role, 'STUDENT')
  await admin.inject('PUT', `/users/${user.id}/role`, { newRole: 'ADMIN' })
  t.equal((await inject(app, 'GET', '/users', undefined, bearer(token))).statusCode, 403)
  const login = (await inject(app, 'POST', '/auth/login', account)).json()
  t.equal(login.user.role, 'ADMIN')
  await admin.inject('PUT', `/users/${user.id}/role`, { newRole: 'STUDENT' })
  t.equal((await inject(app, 'GET', '/users', undefined, bearer(login.token))).statusCode, 200)
})

t.test('PUT /users/:userId/role validates newRole', async t => {
  const user = await person(app)
  const bodies = [{}, { role: 'ADMIN' }, ...['admin', '', ' ADMIN', 'GUEST', null, 5, true, [], ['ADMIN'], {}]
    .map(newRole => ({ newRole }))]
  for (const body of bodies) {
    for (const id of [user.id, admin.id, 'not-a-uuid']) {
      assertInvalid(t, await admin.inject('PUT', `/users/${id}/role`, body), ['newRole'], JSON.stringify(body))
    }
  }
  const headers = bearerOfJson(admin.token)
  for (const body of ['[]', '"ADMIN"', 'null']) {
    assertInvalid(t, await inject(app, 'PUT', `/users/${user.id}/role`, body, headers), [''], body)
  }
  assertInvalid(t, await inject(app, 'PUT', `/users/${user.id}/role`, '', headers), ['newRole'], 'no body')
  t.equal((await storedUser(user.id))?.role, 'STUDENT')
})

t.test('PUT /users/:userId/role rejects the id of the admin who sends it, whatever the role', async t => {
  const me = await person(app, 'ADMIN')
  const gone = await person(app, 'ADMIN')
  await app.sql`DELETE FROM users WHERE id = ${gone.id}`
  for (const newRole of ROLES) {
    for (const { id, inject } of [me, gone]) {
      assertMessage(t, await inject('PUT', `/users/${id}/role`, { newRole }), 400, 'You cannot change your own role')
    }
  }
  t.equal((await storedUser(me.id))?.role, 'ADMIN')
})

t.test('PUT /users/:userId/role returns 500 for an unknown id', async t => {
  const me = await person(app, 'ADMIN')
  for (const unknown of unknownPaths(me.id)) {
    const response = await me.inject('PUT', `/users/${unknown}/role`, { newRole: 'STUDENT' })
    assertMessage(t, response, 500, 'Error changing role', unknown.slice(0, 50))
  }
  t.equal((await storedUser(me.id))?.role, 'ADMIN', 'nor is it a way to change one\'s own')
})

t.test('PUT /users/:userId/club changes only the membership', async t => {
  for (const role of ROLES) {
    const head = await person(app, 'CLUB_HEAD')
    const name = `Club ${randomUUID()}`
    const clubId = await storeClub({ name, club_head_id: head.id })
    const user = await person(app, role, {
      club_id: await storeClub(),
      password: 'the hash',
      idp_id: 'idp-3',
      avatar: 'https://x.org/u',
      created_at: PAST,
      updated_at: PAST,
    })
    const response = await admin.inject('PUT', `/users/${user.id}/club`, { clubId, role: 'ADMIN', firstName: 'B' })
    t.equal(response.statusCode, 200)
    const { user: { updatedAt, ...rest }, ...others } = response.json()
    t.strictSame(others, { message: 'User assigned to club successfully' })
    t.strictSame(rest, {
      id: user.id,
      email: user.email,
      password: 'the hash',
      idpId: 'idp-3',
      avatar: 'https://x.org/u',
      firstName: 'Ada',
      lastName: 'Lovelace',
      role,
      clubId,
      createdAt: PAST,
      club: { name },
    })
    t.match(updatedAt, DATE_TIME)
    t.ok(updatedAt > PAST, 'updatedAt advances')
    t.strictSame(response.json().user, await profile(user.id, { name }))
    const [club] = await app.sql`SELECT club_head_id FROM clubs WHERE id = ${clubId}`
    t.equal(club?.club_head_id, head.id)
  }
})

t.test('PUT /users/:userId/club accepts the id of the admin who sends it, and is idempotent', async t => {
  const me = await person(app, 'ADMIN')
  const clubId = await storeClub()
  for (const time of ['first', 'second']) {
    const response = await me.inject('PUT', `/users/${me.id}/club`, { clubId })
    t.strictSame([response.statusCode, response.json().user.clubId], [200, clubId], time)
  }
})

t.test('PUT /users/:userId/club validates clubId', async t => {
  const clubId = await storeClub()
  const user = await person(app, 'STUDENT', { club_id: clubId })
  const bodies = [{}, { club: clubId }, ...['', null, 5, false, [], [clubId], {}, '\0'].map(clubId => ({ clubId }))]
  for (const body of bodies) {
    for (const id of [user.id, 'not-a-uuid']) {
      assertInvalid(t, await admin.inject('PUT', `/users/${id}/club`, body), ['clubId'], JSON.stringify(body))
    }
  }
  const headers = bearerOfJson(admin.token)
  for (const body of ['[]', JSON.stringify(clubId), 'null']) {
    assertInvalid(t, await inject(app, 'PUT', `/users/${user.id}/club`, body, headers), [''], body)
  }
  assertInvalid(t, await inject(app, 'PUT', `/users/${user.id}/club`, '', headers), ['clubId'], 'no body')
  t.equal((await storedUser(user.id))?.club_id, clubId)
})

t.test('PUT /users/:userId/club returns 500 for an unknown user or club', async t => {
  const clubId = await storeClub()
  const user = await person(app)
  const before = await storedUser(user.id)
  for (const unknown of unknownPaths(user.id)) {
    const response = await admin.inject('PUT', `/users/${unknown}/club`, { clubId })
    assertMessage(t, response, 500, 'Error assigning user to club', unknown.slice(0, 50))
  }
  for (const unknown of ['\ud800', ...unknownIds(clubId)]) {
    const response = await admin.inject('PUT', `/users/${user.id}/club`, { clubId: unknown })
    assertMessage(t, response, 500, 'Error assigning user to club', unknown.slice(0, 50))
  }
  t.strictSame(await storedUser(user.id), before)
})

t.test('DELETE /users/:userId/club is a validation error, for any id', async t => {
  const clubId = await storeClub()
  const member = await person(app, 'STUDENT', { club_id: clubId })
  const headers = bearerOfJson(admin.token)
  for (const id of [member.id, admin.id, randomUUID(), 'not-a-uuid', '%00', '']) {
    for (const response of [
      await admin.inject('DELETE', `/users/${id}/club`),
      await inject(app, 'DELETE', `/users/${id}/club`, undefined, headers),
      await admin.inject('DELETE', `/users/${id}/club`, { clubId }),
    ]) {
      const { message, errors, ...rest } = response.json()
      t.strictSame([response.statusCode, message, rest], [400, 'Validation error', {}], id)
      t.ok(errors.length > 0)
      for (const issue of errors) t.strictSame(Object.keys(issue).sort(), ['message', 'path'])
    }
  }
  t.equal((await storedUser(member.id))?.club_id, clubId)
})
