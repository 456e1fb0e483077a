import { randomUUID } from 'node:crypto'

import t from 'tap'

import { assertInvalid, assertMessage, DATE_TIME, unknownIds, unknownPaths } from '../../assertions.ts'
import { bearerOfJson, inject, person } from '../../helper.ts'
import { admin, app, type Fields, PAST, profile, register, storeClub, storedUser, storeEvent } from './fixtures.ts'

t.test('PUT /users/:id returns every field of the user, including password and idpId, and the club', async t => {
  const clubId = await storeClub({ name: 'Go' })
  const user = await person(app, 'CLUB_HEAD', {
    password: 'the hash', idp_id: 'idp-2', avatar: 'https://x.org/u', created_at: PAST, updated_at: PAST,
  })
  const email = `${randomUUID()}@Example.ORG`
  const change = { firstName: 'Bob', lastName: 'Ross', email, clubId }
  const response = await admin.inject('PUT', `/users/${user.id}`, change)
  t.equal(response.statusCode, 200)
  const { user: { updatedAt, ...rest }, ...others } = response.json()
  t.strictSame(others, { message: 'User updated successfully' })
  t.strictSame(rest, {
    id: user.id,
    ...change,
    password: 'the hash',
    idpId: 'idp-2',
    avatar: 'https://x.org/u',
    role: 'CLUB_HEAD',
    createdAt: PAST,
    club: { name: 'Go' },
  })
  t.match(updatedAt, DATE_TIME)
  t.ok(updatedAt > PAST, 'updatedAt advances')
  t.strictSame(response.json().user, await profile(user.id, { name: 'Go' }))
})

t.test('PUT /users/:id returns null for fields without a value', async t => {
  const user = await person(app)
  const { user: { idpId, avatar, clubId, club } } = (await admin.inject('PUT', `/users/${user.id}`, {})).json()
  t.strictSame({ idpId, avatar, clubId, club }, { idpId: null, avatar: null, clubId: null, club: null })
})

t.test('PUT /users/:id accepts an empty object, and leaves omitted fields unchanged', async t => {
  const clubId = await storeClub({ name: 'Rowing' })
  const user = await person(app, 'STUDENT', { password: 'the hash', club_id: clubId, created_at: PAST })
  const { updatedAt: _, ...before } = await profile(user.id, { name: 'Rowing' })
  const bodies = [
    {},
    { role: 'ADMIN', password: 'another', idpId: 'x', avatar: 'y', id: randomUUID(), createdAt: new Date(), extra: 1 },
    { role: 5, password: null, club: { name: 'Z' } },
  ]
  for (const body of bodies) {
    const response = await admin.inject('PUT', `/users/${user.id}`, body)
    t.equal(response.statusCode, 200)
    const { updatedAt, ...after } = response.json().user
    t.strictSame(after, before)
    t.match(updatedAt, DATE_TIME)
  }
})

/** Values at both bounds of each rule. */
const RULES: [string, unknown[], unknown[]][] = [
  ['firstName', ['B', ' ', '0', '😀', 'x'.repeat(10_000)], ['', null, 0, 5, false, [], ['B'], {}, 'a\0b']],
  ['lastName', ['R', ' ', '0', '漢', '<b>'], ['', null, 0, 5, true, [], ['R'], {}, '\0']],
  ['email',
    [`${randomUUID()}@example.org`, `UP.per+tag-${randomUUID()}@EXAMPLE.co.uk`],
    ['', 'ada', 'ada@', '@example.org', 'ada@example', 'a b@example.org', 'a@b@example.org', ' ada@example.org',
      'ada@example.org\0', null, 5, [], ['ada@example.org'], {}]],
]

for (const [field, good, bad] of RULES) {
  t.test(`PUT /users/:id changes only ${field}, and validates it`, async t => {
    const user = await person(app, 'STUDENT', { created_at: PAST, updated_at: PAST })
    for (const value of good) {
      const { updatedAt: before, ...expected } = { ...await profile(user.id), [field]: value }
      const response = await admin.inject('PUT', `/users/${user.id}`, { [field]: value })
      t.equal(response.statusCode, 200, String(value).slice(0, 50))
      const { updatedAt, ...rest } = response.json().user
      t.strictSame(rest, expected)
      t.ok(updatedAt >= before)
    }
    const before = await storedUser(user.id)
    for (const value of bad) {
      assertInvalid(t, await admin.inject('PUT', `/users/${user.id}`, { [field]: value }), [field],
        JSON.stringify(value))
    }
    t.strictSame(await storedUser(user.id), before)
  })
}

t.test('PUT /users/:id stores a lone surrogate as U+FFFD', async t => {
  const { id } = await person(app)
  const response = await admin.inject('PUT', `/users/${id}`, { firstName: '\ud800', lastName: 'a\udc00b' })
  const { user: { firstName, lastName } } = response.json()
  t.strictSame([response.statusCode, firstName, lastName], [200, '\ufffd', 'a\ufffdb'])
})

t.test('PUT /users/:id reports every issue, and requires an object', async t => {
  const { id } = await person(app)
  const body = { firstName: '', lastName: '', email: '', clubId: 5 }
  assertInvalid(t, await admin.inject('PUT', `/users/${id}`, body), ['clubId', 'email', 'firstName', 'lastName'])
  const headers = bearerOfJson(admin.token)
  for (const body of ['[]', '"text"', 'null']) {
    assertInvalid(t, await inject(app, 'PUT', `/users/${id}`, body, headers), [''], body)
  }
})

t.test('PUT /users/:id sets the club, keeps it when omitted, and clears it with null', async t => {
  const [chess, rowing] = [await storeClub({ name: 'Chess II' }), await storeClub({ name: 'Rowing II' })]
  const user = await person(app)
  const steps: [Fields, string | null, { name: string } | null][] = [
    [{ clubId: null }, null, null],
    [{ clubId: chess }, chess, { name: 'Chess II' }],
    [{ clubId: rowing, firstName: 'Bob' }, rowing, { name: 'Rowing II' }],
    [{ firstName: 'Eve' }, rowing, { name: 'Rowing II' }],
    [{}, rowing, { name: 'Rowing II' }],
    [{ clubId: null }, null, null],
  ]
  for (const [body, clubId, club] of steps) {
    const response = await admin.inject('PUT', `/users/${user.id}`, body)
    t.equal(response.statusCode, 200)
    t.strictSame([response.json().user.clubId, response.json().user.club], [clubId, club], JSON.stringify(body))
    t.equal((await storedUser(user.id))?.club_id, clubId)
    t.equal((await storedUser(user.id))?.role, 'STUDENT')
  }
})

t.test('PUT /users/:id returns 500 for an unknown club, 400 for an invalid one, and changes nothing', async t => {
  const clubId = await storeClub()
  const user = await person(app, 'STUDENT', { club_id: clubId })
  const before = await storedUser(user.id)
  for (const unknown of ['', '\ud800', ...unknownIds(clubId)]) {
    const response = await admin.inject('PUT', `/users/${user.id}`, { firstName: 'Bob', clubId: unknown })
    assertMessage(t, response, 500, 'Error updating user', unknown.slice(0, 50))
  }
  for (const other of [5, 0, false, [], [clubId], {}, `${clubId}\0`]) {
    const response = await admin.inject('PUT', `/users/${user.id}`, { firstName: 'Bob', clubId: other })
    assertInvalid(t, response, ['clubId'], JSON.stringify(other))
  }
  t.strictSame(await storedUser(user.id), before)
})

t.test('PUT /users/:id returns 500 for the email of another user, but accepts an unchanged one', async t => {
  const [user, other] = [await person(app), await person(app)]
  const before = await storedUser(user.id)
  const response = await admin.inject('PUT', `/users/${user.id}`, { firstName: 'Bob', email: other.email })
  assertMessage(t, response, 500, 'Error updating user')
  t.strictSame(await storedUser(user.id), before)
  t.equal((await admin.inject('PUT', `/users/${user.id}`, { email: user.email })).statusCode, 200)
})

t.test('PUT /users/:id returns 404 for an unknown id, after validation', async t => {
  const { id } = await person(app)
  const before = await storedUser(id)
  for (const unknown of unknownPaths(id)) {
    const about = unknown.slice(0, 50)
    for (const body of [{}, { firstName: 'Bob' }, { clubId: null }]) {
      assertMessage(t, await admin.inject('PUT', `/users/${unknown}`, body), 404, 'User not found', about)
    }
    assertInvalid(t, await admin.inject('PUT', `/users/${unknown}`, { firstName: '' }), ['firstName'], about)
  }
  t.strictSame(await storedUser(id), before)
})

t.test('A value of the wrong type is one issue', async t => {
  const { id } = await person(app)
  for (const [url, body] of [['', { clubId: 5 }], ['/role', { newRole: 5 }], ['/club', { clubId: 5 }]] as const) {
    const { errors } = (await admin.inject('PUT', `/users/${id}${url}`, body)).json()
    t.strictSame(errors.map(({ path }: Fields) => path), Object.keys(body))
  }
})

t.test('Only the two updates return a password', async t => {
  const user = await person(app, 'STUDENT', { password: 'the hash' })
  const clubId = await storeClub({ club_head_id: user.id })
  await register(user, await storeEvent(clubId))
  const responses = [
    await admin.inject('GET', '/users'),
    await admin.inject('GET', '/users/analytics'),
    await admin.inject('PUT', `/users/${user.id}/role`, { newRole: 'ADMIN' }),
    await admin.inject('PUT', `/users/${user.id}`, { clubId: 'none' }),
    await admin.inject('PUT', `/users/${user.id}`, { email: 'none' }),
    await admin.inject('PUT', `/users/${user.id}/club`, { clubId: 'none' }),
    await admin.inject('DELETE', `/users/${user.id}`),
  ]
  for (const { body } of responses) t.notMatch(body, /the hash|password/i)
})
