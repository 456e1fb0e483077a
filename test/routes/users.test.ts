import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { ROLES } from '#lib/values/roles.js'
import { claimEmails, recordOutcomes } from '#lib/email/emails.js'
import { assertMessage, assertResponse, DATE_TIME, unknownIds } from '../assertions.ts'
import { bearer, bearerOfJson, build, inject, insert, person, type Person, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)

type Fields = Record<string, unknown>

const PAST = '2020-02-03T04:05:06.780Z'
const OLD = { created_at: PAST, updated_at: PAST }

let admin: Person
t.beforeEach(async () => { admin = await person(app, 'ADMIN') })

const storeClub = (fields: Fields = {}) => insert(app, 'clubs', fields)

const storeEvent = (clubId: string, fields: Fields = {}) => insert(app, 'events', { club_id: clubId, ...fields })

const storeBlog = (author: { id: string }, fields: Fields = {}) =>
  insert(app, 'blogs', { author_id: author.id, ...fields })

const storeMentor = (clubId: string) => insert(app, 'mentors', { club_id: clubId })

const register = (user: { id: string }, eventId: string, fields: Fields = {}) =>
  insert(app, 'event_registrations', { user_id: user.id, event_id: eventId, ...fields })

async function storedUser (id: string) {
  const [row] = await app.sql`SELECT * FROM users WHERE id = ${id}`
  return row
}

/** A user as the profile update returns it: every field, and the club. */
async function profile (id: string, club: { name: string } | null = null) {
  const row = await storedUser(id)
  const { email, password, role } = row!
  return {
    id,
    email,
    password,
    idpId: row!.idp_id,
    avatar: row!.avatar,
    firstName: row!.first_name,
    lastName: row!.last_name,
    role,
    clubId: row!.club_id,
    createdAt: new Date(row!.created_at).toISOString(),
    updatedAt: new Date(row!.updated_at).toISOString(),
    club,
  }
}

t.test('DELETE /users/:id deletes a user, also a club head or a member', async t => {
  for (const role of ROLES) {
    const user = await person(app, role)
    const clubId = await storeClub({ club_head_id: user.id })
    await app.sql`UPDATE users SET club_id = ${clubId} WHERE id = ${user.id}`
    assertMessage(t, await admin.inject('DELETE', `/users/${user.id}`), 200, 'User deleted successfully')
    t.equal(await storedUser(user.id), undefined)
    const [club] = await app.sql`SELECT club_head_id FROM clubs WHERE id = ${clubId}`
    t.equal(club?.club_head_id, user.id)
  }
})

t.test('DELETE /users/:id lets admins delete themselves', async t => {
  const me = await person(app, 'ADMIN')
  assertMessage(t, await me.inject('DELETE', `/users/${me.id}`), 200, 'User deleted successfully')
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
    // A like is before the deletion of its mentor, or after it.
    for (const { statusCode } of await Promise.all(toggles)) t.ok([200, 404].includes(statusCode), String(statusCode))
  }
})

t.test('DELETE /users/:id does not deadlock with a sender', async t => {
  const { id } = await person(app)
  const add = (template: string) =>
    insert(app, 'emails', { template, bulk: false, user_id: id, data: app.sql.json({}) })
  const first = await add('password-reset')
  await sleep(2)
  const second = await add('email-verification')
  // Behind the second one on the disk, as it is in the index.
  await app.sql`UPDATE emails SET due_at = now() + interval '5 minutes' WHERE id = ${first}`
  const { recorded, deleted } = await app.sql.begin(async sql => {
    await sql`SELECT FROM emails WHERE id = ${first} FOR UPDATE`
    const outcomes = [first, second].map(id => ({ id, status: 'sent', attempts: 1 } as const))
    const recorded = recordOutcomes(app.sql, outcomes).catch(error => error)
    await untilBlocked(app.sql)
    const deleted = admin.inject('DELETE', `/users/${id}`)
    await untilBlocked(app.sql, 2)
    return { recorded, deleted }
  })
  t.same(await recorded, undefined)
  assertMessage(t, await deleted, 200, 'User deleted successfully')
  t.equal((await app.sql`SELECT FROM emails WHERE user_id = ${id}`).length, 0)
})

t.test('A sender that has released an email does not wait for the deletion of its user', async t => {
  const { id } = await person(app)
  const email = await insert(app, 'emails', {
    template: 'password-reset', bulk: false, user_id: id, data: app.sql.json({}),
  })
  await app.sql.begin(async sql => {
    await sql`SELECT FROM users WHERE id = ${id} FOR UPDATE`
    const claimed = await app.sql.begin(async sender => {
      await recordOutcomes(sender, [{ id: email, status: 'pending', attempts: 0 }])
      return claimEmails(sender, { account: 20, bulk: 0 })
    })
    t.notOk(claimed.some(({ id }) => id === email), 'the next turn claims it')
  })
})

t.test('GET /users lists every user, with club and counts', async t => {
  const clubId = await storeClub({ name: 'Chess' })
  const ada = await person(app, 'CLUB_HEAD', {
    club_id: clubId, created_at: PAST, idp_id: 'idp-1', avatar: 'https://x.org/ada', password: 'secret hash',
  })
  const bob = await person(app, 'STUDENT', { first_name: 'Bob', last_name: 'Ross', created_at: '2020-01-01T00:00:00Z' })
  for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED']) await storeBlog(ada, { status })
  for (const user of [ada, ada, bob]) await register(user, await storeEvent(clubId))

  const response = await admin.inject('GET', '/users')
  t.equal(response.statusCode, 200)
  t.match(response.headers['content-type'], /^application\/json/)
  const { users, ...rest } = response.json()
  t.strictSame(rest, {})
  t.strictSame(users.filter(({ id }: Fields) => id === ada.id || id === bob.id), [
    {
      id: ada.id,
      email: ada.email,
      firstName: 'Ada',
      lastName: 'Lovelace',
      role: 'CLUB_HEAD',
      clubId,
      createdAt: '2020-02-03T04:05:06.780Z',
      club: { name: 'Chess' },
      _count: { eventRegistrations: 2, blogs: 3 },
    },
    {
      id: bob.id,
      email: bob.email,
      firstName: 'Bob',
      lastName: 'Ross',
      role: 'STUDENT',
      clubId: null,
      createdAt: '2020-01-01T00:00:00.000Z',
      club: null,
      _count: { eventRegistrations: 1, blogs: 0 },
    },
  ])
  const stored = await app.sql`SELECT id FROM users`
  t.equal(users.length, stored.length)
  t.notMatch(response.body, 'secret hash')
})

t.test('GET /users is sorted by newest, then by id, and has no pages', async t => {
  await app.sql`TRUNCATE users CASCADE`
  const [oldest, first, second, third, newest] = Array.from({ length: 5 }, () => randomUUID()).sort()
  const at = '2036-01-31T09:30:00.000Z'
  const [before, after] = ['2036-01-31T09:29:59.999Z', '2036-01-31T09:30:00.001Z']
  for (const [id, time] of [[second, at], [oldest, before], [third, at], [newest, after], [first, at]]) {
    await person(app, 'STUDENT', { id, created_at: time })
  }
  await app.sql`
    INSERT INTO users (email, password, first_name, last_name, created_at)
    SELECT n || '@example.org', '!', 'One', 'Of many', '2019-01-01' FROM generate_series(1, 150) AS n
  `
  const headers = bearer(app.issueToken({ id: randomUUID(), role: 'ADMIN' }))
  for (const url of ['/users', '/users/', '/users?page=2&limit=1']) {
    const response = await inject(app, 'GET', url, undefined, headers)
    t.equal(response.statusCode, 200)
    const ids = response.json().users.map(({ id }: Fields) => id)
    t.equal(ids.length, 155)
    t.strictSame(ids.slice(0, 5), [newest, first, second, third, oldest])
    t.strictSame(ids.slice(5), ids.slice(5).sort())
  }
})

t.test('GET /users/analytics counts rows, and omits roles without users', async t => {
  await app.sql`TRUNCATE users, clubs CASCADE`
  const token = app.issueToken({ id: randomUUID(), role: 'ADMIN' })
  const totals = { totalUsers: 0, totalClubs: 0, totalEvents: 0, totalBlogs: 0, totalMentors: 0 }
  t.strictSame((await inject(app, 'GET', '/users/analytics', undefined, bearer(token))).json(),
    { analytics: { ...totals, roleCounts: [], recentRegistrations: [] } }, 'of an empty database')
  const ada = await person(app, 'ADMIN')
  const bob = await person(app, 'STUDENT', { first_name: 'Bob', last_name: 'Ross' })
  const eve = await person(app, 'STUDENT')
  const [clubId] = await Promise.all(Array.from({ length: 4 }, () => storeClub()))
  const events = []
  for (let i = 0; i < 5; i++) events.push(await storeEvent(clubId!, { title: `Event ${i}` }))
  for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED', 'DRAFT', 'PUBLISHED', 'ARCHIVED']) {
    await storeBlog(bob, { status })
  }
  for (let i = 0; i < 2; i++) await storeMentor(clubId!)
  await insert(app, 'testimonials')
  const older = await register(bob, events[0]!, { registered_at: PAST })
  const newer = await register(eve, events[1]!, { registered_at: '2021-01-31T09:30:00Z' })

  const { analytics, ...rest } = (await ada.inject('GET', '/users/analytics')).json()
  t.strictSame(rest, {})
  const { roleCounts, ...others } = analytics
  t.strictSame(others, {
    totalUsers: 3,
    totalClubs: 4,
    totalEvents: 5,
    totalBlogs: 6,
    totalMentors: 2,
    recentRegistrations: [
      {
        id: newer,
        userId: eve.id,
        eventId: events[1],
        registeredAt: '2021-01-31T09:30:00.000Z',
        event: { title: 'Event 1' },
        user: { firstName: 'Ada', lastName: 'Lovelace' },
      },
      {
        id: older,
        userId: bob.id,
        eventId: events[0],
        registeredAt: '2020-02-03T04:05:06.780Z',
        event: { title: 'Event 0' },
        user: { firstName: 'Bob', lastName: 'Ross' },
      },
    ],
  })
  const byRole = (counts: Fields[]) => counts.sort((a, b) => String(a.role) < String(b.role) ? -1 : 1)
  t.strictSame(byRole(roleCounts), [{ role: 'ADMIN', _count: { role: 1 } }, { role: 'STUDENT', _count: { role: 2 } }])
  await person(app, 'CLUB_HEAD')
  // The former member, the author of erased users' posts.
  await person(app, 'STUDENT', { email: 'former-member' })
  const { analytics: after } = (await ada.inject('GET', '/users/analytics')).json()
  t.equal(after.totalUsers, 4)
  t.strictSame(byRole(after.roleCounts), [
    { role: 'ADMIN', _count: { role: 1 } }, { role: 'CLUB_HEAD', _count: { role: 1 } },
    { role: 'STUDENT', _count: { role: 2 } },
  ])
})

t.test('GET /users/analytics has the ten latest registrations, sorted by time, then by id', async t => {
  // An index scan would hide a missing ORDER BY.
  await app.sql`DROP INDEX event_registrations_newest`
  await app.sql`TRUNCATE event_registrations CASCADE`
  const eventId = await storeEvent(await storeClub())
  const registered = async (id: string, time: string) =>
    register(await person(app), eventId, { id, registered_at: time })
  const recent = async () => {
    const { recentRegistrations } = (await admin.inject('GET', '/users/analytics')).json().analytics
    return recentRegistrations.map(({ id }: Fields) => id)
  }

  // Sorted by id alone, the oldest would come first. More rows tie than the list shows.
  const ids = Array.from({ length: 14 }, () => randomUUID()).sort()
  const [oldest, ...tied] = ids.slice(0, 12)
  const [late, latest] = ids.slice(12)
  await registered(oldest!, '2026-01-31T09:29:59.999Z')
  t.strictSame(await recent(), [oldest])
  for (const id of tied.toReversed()) await registered(id, '2026-01-31T09:30:00.000Z')
  t.strictSame(await recent(), tied.slice(0, 10))
  await registered(late!, '2026-01-31T09:30:00.001Z')
  await registered(latest!, '2026-01-31T09:30:00.002Z')
  t.strictSame(await recent(), [latest, late, ...tied.slice(0, 8)])
})

t.test('PUT /users/:userId/role changes any role to any other, and returns the user', async t => {
  const clubId = await storeClub({ name: 'Sailing' })
  for (const from of ROLES) {
    for (const newRole of ROLES) {
      const club = from === 'ADMIN' ? null : { name: 'Sailing' }
      const user = await person(app, from, { club_id: club && clubId, ...OLD })
      const response = await admin.inject('PUT', `/users/${user.id}/role`, { newRole })
      const { id, email } = user
      assertResponse(t, response, 200, {
        user: { id, email, firstName: 'Ada', lastName: 'Lovelace', role: newRole, club },
        message: 'Role changed successfully',
      })
      const stored = await storedUser(user.id)
      t.equal(stored?.role, newRole)
      t.ok(new Date(stored?.updated_at) > new Date(PAST))
    }
  }
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
  await app.sql`UPDATE users SET role = 'STUDENT' WHERE id <> ${admin.id}`
  const last = await inject(app, 'PUT', `/users/${admin.id}/role`, { newRole: 'STUDENT' }, bearer(login.token))
  t.equal(last.statusCode, 200, 'so two admins can take the role from each other, and nobody is an admin')
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

t.test('PUT /users/:userId/club changes only the membership', async t => {
  for (const role of ROLES) {
    const head = await person(app, 'CLUB_HEAD')
    const name = `Club ${randomUUID()}`
    const clubId = await storeClub({ name, club_head_id: head.id })
    const user = await person(app, role, {
      club_id: await storeClub(), password: 'the hash', idp_id: 'idp-3', avatar: 'https://x.org/u', ...OLD,
    })
    const before = await profile(user.id)
    const response = await admin.inject('PUT', `/users/${user.id}/club`, { clubId, role: 'ADMIN', firstName: 'B' })
    const { updatedAt } = response.json().user
    const expected = { ...before, clubId, club: { name }, updatedAt }
    assertResponse(t, response, 200, { user: expected, message: 'User assigned to club successfully' }, role)
    t.ok(updatedAt > PAST, 'updatedAt advances')
    t.strictSame(await profile(user.id, { name }), expected)
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

t.test('PUT /users/:userId/club returns 500 for an unknown club', async t => {
  const clubId = await storeClub()
  const user = await person(app)
  const before = await storedUser(user.id)
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

t.test('PUT /users/:id returns every field of the user, including password and idpId, and the club', async t => {
  const clubId = await storeClub({ name: 'Go' })
  const user = await person(app, 'CLUB_HEAD', {
    password: 'the hash', idp_id: 'idp-2', avatar: 'https://x.org/u', ...OLD,
  })
  const before = await profile(user.id)
  const email = `${randomUUID()}@Example.ORG`
  const change = { firstName: 'Bob', lastName: 'Ross', email, clubId }
  const response = await admin.inject('PUT', `/users/${user.id}`, change)
  const { updatedAt } = response.json().user
  const expected = { ...before, ...change, club: { name: 'Go' }, updatedAt }
  assertResponse(t, response, 200, { user: expected, message: 'User updated successfully' })
  t.match(expected, { password: 'the hash', idpId: 'idp-2' })
  t.ok(updatedAt > PAST, 'updatedAt advances')
  t.strictSame(await profile(user.id, { name: 'Go' }), expected)
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

t.test('PUT /users/:id returns 500 for an unknown club, and keeps the user', async t => {
  const clubId = await storeClub()
  const user = await person(app, 'STUDENT', { club_id: clubId })
  const before = await storedUser(user.id)
  for (const unknown of ['', '\ud800', ...unknownIds(clubId)]) {
    const response = await admin.inject('PUT', `/users/${user.id}`, { firstName: 'Bob', clubId: unknown })
    assertMessage(t, response, 500, 'Error updating user', unknown.slice(0, 50))
  }
  t.strictSame(await storedUser(user.id), before)
})

t.test('PUT /users/:id returns 500 for the email of a different user, but accepts an unchanged one', async t => {
  const [user, other] = [await person(app), await person(app)]
  const before = await storedUser(user.id)
  const response = await admin.inject('PUT', `/users/${user.id}`, { firstName: 'Bob', email: other.email })
  assertMessage(t, response, 500, 'Error updating user')
  t.strictSame(await storedUser(user.id), before)
  t.equal((await admin.inject('PUT', `/users/${user.id}`, { email: user.email })).statusCode, 200)
})
