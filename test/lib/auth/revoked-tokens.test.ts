import { PassThrough } from 'node:stream'

import type { FastifyInstance } from 'fastify'

import { hashPassword } from '#lib/auth/passwords.js'
import { findCredentials, signInWithIdentity } from '#routes/auth/queries.js'
import { assertResponse } from '../../assertions.ts'
import { bearer, bearerOfJson, build, createDatabase, inject, person } from '../../helper.ts'
import t from '../../suite.ts'

const DATABASE_URL = await createDatabase()
const [app, other] = await Promise.all([build(t, { DATABASE_URL }), build(t, { DATABASE_URL })])

const PASSWORD = 'correct horse'
const ENDED = { message: 'Invalid or expired token' }

const get = (token: string, path = '/auth/me', service: FastifyInstance = app) =>
  inject(service, 'GET', path, undefined, bearer(token))

const statusesOf = (token: string) =>
  Promise.all([app, other].map(async service => (await get(token, '/auth/me', service)).statusCode))

const signOut = (token: string) => inject(app, 'DELETE', '/me/tokens', undefined, bearer(token))

/** Signs in with the password. Returns the token. */
const signIn = async (email: string) =>
  (await inject(other, 'POST', '/auth/login', { email, password: PASSWORD })).json().token as string

t.test('DELETE /me/tokens revokes all tokens of the user at every instance, and no others', async t => {
  const ada = await person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })
  const bob = await person(app)
  const tokens = [ada.token, await signIn(ada.email), await signIn(ada.email)]
  for (const token of tokens) t.strictSame(await statusesOf(token), [200, 200])
  assertResponse(t, await signOut(tokens[1]!), 200, { message: 'Signed out everywhere' })
  for (const token of tokens) t.strictSame(await statusesOf(token), [401, 401])
  assertResponse(t, await signOut(tokens[1]!), 401, ENDED)
  t.strictSame(await statusesOf(bob.token), [200, 200])
})

t.test('A token that is issued after an end is valid until the next one', async t => {
  const ada = await person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })
  let ended = ada.token
  for (let time = 0; time < 3; time++) {
    await signOut(ended)
    const token = await signIn(ada.email)
    t.strictSame([await statusesOf(ended), await statusesOf(token)], [[401, 401], [200, 200]])
    ended = token
  }
})

t.test('A revocation also revokes the token of a sign-in that began before', async t => {
  const ada = await person(app)
  const account = await findCredentials(app.sql, ada.email)
  await signOut(ada.token)
  const late = app.issueToken({ id: ada.id, role: ada.role, epoch: account!.epoch })
  t.strictSame(await statusesOf(late), [401, 401])
})

t.test('A sign-in with the provider gives a valid token after an end', async t => {
  const identity = { id: 'subject', email: 'grace@example.org', avatar: null, firstName: 'Grace', lastName: 'Hopper' }
  let token: string | undefined
  for (const expected of ['created', null, 'linked']) {
    if (expected === 'linked') await app.sql`UPDATE users SET idp_id = NULL WHERE email = ${identity.email}`
    const { userId: id, role, epoch, account } = await signInWithIdentity(app.sql, app.outbox, identity)
    t.equal(account, expected)
    token = app.issueToken({ id, role, epoch })
    t.strictSame(await statusesOf(token), [200, 200])
    await signOut(token)
    t.strictSame(await statusesOf(token), [401, 401])
  }
})

t.test('A missing or invalid token and the role are checked before the end', async t => {
  const [student, admin] = [await person(app), await person(app, 'ADMIN')]
  for (const { token } of [student, admin]) await signOut(token)
  assertResponse(t, await inject(app, 'GET', '/users'), 401, { message: 'Access token required' })
  assertResponse(t, await get('x', '/users'), 401, ENDED)
  assertResponse(t, await get(student.token, '/users'), 403, { message: 'Forbidden' })
  assertResponse(t, await get(admin.token, '/users'), 401, ENDED)
  const { statusCode } = await admin.inject('POST', '/clubs', {})
  t.equal(statusCode, 401, 'the body is validated afterwards')
})

t.test('A request whose body arrives after an end is refused', async t => {
  const ada = await person(app)
  const { verifyToken } = app
  const verified = new Promise<void>(resolve => {
    t.intercept(app, 'verifyToken', {
      value (token: string) {
        resolve()
        return verifyToken(token)
      },
    })
  })
  const payload = new PassThrough()
  const headers = { ...bearerOfJson(ada.token), 'transfer-encoding': 'chunked' }
  const response = app.inject({ method: 'PUT', url: '/me/notifications', headers, payload })
  await verified
  await signOut(ada.token)
  payload.end('{"notifications":{"eventReminder":false}}')
  assertResponse(t, await response, 401, ENDED)
  t.equal((await app.sql`SELECT FROM notifications WHERE user_id = ${ada.id}`).length, 0)
})

t.test('Another role and the deletion of the account end no token', async t => {
  const [ada, admin] = [await person(app), await person(app, 'ADMIN')]
  await admin.inject('PUT', `/users/${ada.id}/role`, { newRole: 'CLUB_HEAD' })
  t.strictSame(await statusesOf(ada.token), [200, 200])
  await admin.inject('DELETE', `/users/${ada.id}`)
  assertResponse(t, await get(ada.token), 401, { message: 'Unauthorized' })
  t.equal((await get(ada.token, '/mentors/liked')).statusCode, 200)
})

t.test('The deletion of the account revives no token', async t => {
  const [ada, admin] = [await person(app, 'ADMIN'), await person(app, 'ADMIN')]
  await signOut(ada.token)
  await admin.inject('DELETE', `/users/${ada.id}`)
  assertResponse(t, await get(ada.token, '/users'), 401, ENDED)
})

t.test('GET /blogs/:id ignores a revoked token', async t => {
  const ada = await person(app)
  const insert = async (status: string) => (await app.sql<[{ id: string }]>`
    INSERT INTO blogs (title, content, status, author_id) VALUES ('A title', 'Content', ${status}, ${ada.id})
    RETURNING id
  `)[0].id
  const [draft, published] = [await insert('DRAFT'), await insert('PUBLISHED')]
  t.equal((await get(ada.token, `/blogs/${draft}`)).statusCode, 200)
  await signOut(ada.token)
  assertResponse(t, await get(ada.token, `/blogs/${draft}`), 403, { message: 'You are not allowed to view this blog' })
  t.equal((await get(ada.token, `/blogs/${published}`)).statusCode, 200)
})

t.test('A token without a user of this service is looked up nowhere', async t => {
  for (const id of ['', 'x', "{'", 'x'.repeat(36), '0190A1B2-C3D4-7E5F-8A6B-7C8D9E0F1A2B']) {
    const { validations } = app.cache.counts
    const { statusCode } = await get(app.issueToken({ id, role: 'STUDENT' }), '/me/export')
    t.not(statusCode, 500, id)
    t.equal(app.cache.counts.validations, validations, id)
  }
})

t.test('A request reads the snapshot once, also when it is served from memory', async t => {
  const ada = await person(app)
  await get(ada.token)
  const before = { ...app.cache.counts }
  t.equal((await get(ada.token)).statusCode, 200)
  t.equal(app.cache.counts.validations, before.validations + 1)
})

t.test('Operations fail as declared when the read of the snapshot does', async t => {
  const app = await build(t, { DATABASE_URL })
  const [ada, admin] = [await person(app), await person(app, 'ADMIN')]
  await app.database.shortSql.end({ timeout: 0 })
  const message = 'Error fetching registered events'
  assertResponse(t, await get(ada.token, '/events/registered', app), 500, { message })
  const club = { name: 'Chess', description: 'Openings and endings', clubHeadEmail: ada.email }
  assertResponse(t, await admin.inject('POST', '/clubs', club), 500, { message: 'Error creating club' })
  t.strictSame(await app.sql`SELECT count(*)::int FROM clubs`.then(([row]) => row), { count: 0 }, 'nothing is written')
  for (const [path, message] of [['/events', 'Error fetching events'], ['/blogs', 'Failed to fetch blogs']] as const) {
    assertResponse(t, await get(ada.token, path, app), 500, { message }, 'its snapshot is not known')
  }
})

t.test('GET /me/export says when the tokens were revoked', async t => {
  const ada = await person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })
  await signOut(ada.token)
  const { tokens } = (await get(await signIn(ada.email), '/me/export')).json()
  t.match(tokens, { revokedAt: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ })
})
