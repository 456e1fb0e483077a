import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { encodeState } from '#lib/auth/oauth-state.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { createSecretToken, hashSecretToken } from '#lib/auth/secret-tokens.js'
import { createLogger } from '#lib/http/logger.js'
import { fillQueue } from '../clients.ts'
import { stopClock } from '../clock.ts'
import { PNG } from '../fixtures.ts'
import {
  bearer, build, buildWithRoutes, createDatabase, inject, insert, MAIL, nameOf, type Person, person,
  untilBlocked,
} from '../helper.ts'
import { AGENDA_EVENT } from '../operations.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import t, { type Test } from '../suite.ts'

const PASSWORD = 'correct horse'
const NAMES = { firstName: 'Ada', lastName: 'Lovelace' }
const EMAIL = /[\w-]+@[\w-]+\.\w+/
const TOKEN = /eyJ[\w-]+/

/** The log of all services in this file. */
let log = ''
const logger = () => createLogger('info', { write (line) { log += line } })

const DATABASE_URL = await createDatabase()
const provider = await startFakeProvider(t)
const { app, routes } = await buildWithRoutes(t, {
  DATABASE_URL,
  ...CLIENT,
  IDP_ISSUER: provider.issuer,
  FRONTEND_URL: 'https://app.example.org',
  SIGN_IN_ATTEMPTS: '2',
  REGISTRATIONS_PER_NETWORK: '2',
}, logger())
const { sql } = app
const admin = await person(app, 'ADMIN')

/** The audit lines of these requests, without common fields. */
async function auditOf (work: () => Promise<unknown>) {
  const start = log.length
  await work()
  return log.slice(start).split('\n').filter(Boolean).map(line => JSON.parse(line)).filter(({ event }) => event)
    .map(({ level, time, pid, hostname, reqId, msg, ...line }) => line)
}

let addresses = 0

/** Sends a request from an address of its own. Returns its audit lines. */
async function auditFrom (url: string, payload: object, remoteAddress = `192.0.2.${++addresses}`) {
  const [line, ...others] = await auditOf(() => app.inject({ method: 'POST', url, payload, remoteAddress }))
  return { ...line, ...others.length > 0 && { others } }
}

const newEmail = () => `${randomUUID()}@example.org`

const withPassword = async () => person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })

const makeClub = () => insert(app, 'clubs')
const makeEvent = async (club?: string) => insert(app, 'events', { club_id: club ?? await makeClub() })
const makeMentor = async () => insert(app, 'mentors', { club_id: await makeClub() })
const makeTestimonial = () => insert(app, 'testimonials')
const makeBlog = () => insert(app, 'blogs', { status: 'DRAFT', author_id: admin.id })

t.test('A registration is logged', async t => {
  const email = newEmail()
  const line = await auditFrom('/auth/register', { email, password: PASSWORD, ...NAMES }, '192.0.2.200')
  const [row] = await sql`SELECT id FROM users WHERE email = ${email}`
  const about = { method: 'registration', network: '192.0.2.200' }
  t.strictSame(line, { event: 'sign-in', ...about, user: row!.id })

  const refused = await auditFrom('/auth/register', { email, password: PASSWORD, ...NAMES }, '192.0.2.200')
  t.strictSame(refused, { event: 'sign-in-refused', ...about, reason: 'User already exists' })
  t.match(await auditFrom('/auth/register', { email, password: PASSWORD, ...NAMES }, '192.0.2.200'),
    { event: 'sign-in-refused', ...about, reason: 'Too many registrations, please try again later' })
})

t.test('A sign-in with a password is logged', async t => {
  const { id: user, email } = await withPassword()
  const signIn = (password: string, as = email) =>
    auditFrom('/auth/login', { email: as, password }, '2001:db8:1:2:3:4:5:6')
  const about = { method: 'password', network: '2001:db8:1::/48' }
  const refused = { event: 'sign-in-refused', ...about }

  t.strictSame(await signIn(PASSWORD), { event: 'sign-in', ...about, user })
  t.strictSame(await signIn('hunter22'), { ...refused, user, reason: 'Wrong password' })
  t.strictSame(await signIn(''), { ...refused, reason: 'All fields are required' })
  t.strictSame(await signIn('hunter22'), { ...refused, user, reason: 'Wrong password' })
  t.strictSame(await signIn(PASSWORD),
    { ...refused, user, reason: 'Too many failed sign-ins, please try again later' })
  t.strictSame(await signIn(PASSWORD, newEmail()), { ...refused, reason: 'Unknown email' }, 'no account, no id')
})

t.test('A sign-in whose password could not be verified is logged', async t => {
  const other = await build(t, { DATABASE_URL }, logger())
  await other.sql.end()
  const [line] = await auditOf(() => inject(other, 'POST', '/auth/login', { email: newEmail(), password: PASSWORD }))
  t.strictSame(line, { event: 'sign-in-refused', method: 'password', network: '127.0.0.1', reason: 'Login failed' })
})

t.test('A sign-in whose client leaves the queue of passwords is logged', async t => {
  const other = await build(t, { DATABASE_URL }, logger())
  const { passwords } = other.queues
  const release = fillQueue(passwords)
  const { waiting } = passwords
  const address = await other.listen({ host: '127.0.0.1', port: 0 })
  const lines = await auditOf(async () => {
    const leaving = new AbortController()
    const response = fetch(`${address}/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: newEmail(), password: PASSWORD }),
      signal: leaving.signal,
    })
    while (passwords.waiting === waiting) await sleep(5)
    leaving.abort()
    await t.rejects(response, { name: 'AbortError' })
    while (passwords.waiting > waiting) await sleep(5)
  })
  release()
  t.match(lines, [{ event: 'sign-in-refused', reason: 'The client did not wait' }])
})

const idToken = async (claims: object) => {
  const idToken = await provider.idToken({ ...claims })
  return auditFrom('/auth/google', { idToken }, '192.0.2.201')
}

/** Signs in with these claims of the provider. */
async function callback (claims: object) {
  provider.responses['/userinfo'] = { ...provider.claims, ...claims }
  const state = encodeState({ n: 'nonce', r: '/' })
  const [line] = await auditOf(() => app.inject({
    url: `/auth/google/callback?code=hunter2&state=${state}`,
    headers: { cookie: 'oauth_state_nonce=nonce' },
    remoteAddress: '192.0.2.201',
  }))
  return line
}

for (const [way, signIn] of Object.entries({ idToken, callback })) {
  t.test(`A sign-in with the provider is logged: ${way}`, async t => {
    const about = { method: 'provider', network: '192.0.2.201' }
    const identity = { sub: randomUUID(), email: newEmail() }
    const { user, ...created } = await signIn(identity)
    t.strictSame(created, { event: 'sign-in', ...about, account: 'created' })
    t.strictSame(await sql`SELECT id FROM users WHERE email = ${identity.email}`.then(rows => rows[0]), { id: user })
    t.strictSame(await signIn(identity), { event: 'sign-in', ...about, user, account: null })

    const { id, email } = await withPassword()
    t.strictSame(
      await signIn({ sub: randomUUID(), email }), { event: 'sign-in', ...about, user: id, account: 'linked' }
    )

    const refused = await signIn({ sub: randomUUID(), email, email_verified: false })
    const reason = way === 'idToken' ? 'Invalid IdP token' : 'No email in profile'
    t.strictSame(refused, { event: 'sign-in-refused', ...about, reason })
  })
}

t.test('A sign-in with an invalid ID token is logged', async t => {
  t.match(await auditFrom('/auth/google', { idToken: await provider.idToken({ aud: 'another client' }) }),
    { event: 'sign-in-refused', method: 'provider', reason: 'IdP login failed' })
})

t.test('An export that is read after its timeout is not sent, so it is not logged', async t => {
  const slow = await build(t, { DATABASE_URL, DATABASE_POOL_SIZE: '1', DATABASE_TIMEOUT: '30' }, logger())
  const pass = stopClock(t)
  t.strictSame(await auditOf(async () => {
    await sql.begin(async sql => {
      await sql`LOCK TABLE clubs`
      const response = slow.inject({ url: '/exports/users.csv', headers: bearer(admin.token) }).then()
      await untilBlocked(app.sql)
      pass(30_000)
      t.equal((await response).statusCode, 500)
    })
    await slow.close()
  }), [])
})

type Send = (url: string, payload?: unknown) => Promise<Record<string, unknown>[]>

/** Every operation that changes a role or membership, deletes, moderates or exports, with the fields that it logs. */
const OPERATIONS: Record<string, (send: Send, t: Test) => Promise<void>> = {
  async 'GET /exports/users.csv' (send, t) {
    t.strictSame(await send('/exports/users.csv'), [{ event: 'users-exported' }])
    t.strictSame(await sendAs(admin, 'HEAD')('/exports/users.csv'), [])
  },
  async 'GET /exports/events/:id/registrations.csv' (send, t) {
    const target = await makeEvent()
    const lines = await send(`/exports/events/${target}/registrations.csv`)
    t.strictSame(lines, [{ event: 'registrations-exported', target }])
    t.strictSame(await sendAs(admin, 'HEAD')(`/exports/events/${target}/registrations.csv`), [])
  },
  async 'POST /me/calendar' (send, t) {
    t.strictSame(await send('/me/calendar'), [{ event: 'calendar-created' }])
  },
  async 'DELETE /me/pictures/:id' (send, t) {
    const target = await insert(app, 'pictures', { user_id: admin.id, large: PNG, small: PNG, width: 1, height: 1 })
    t.strictSame(await send(`/me/pictures/${target}`), [{ event: 'picture-deleted', target }])
  },
  async 'DELETE /me' (_send, t) {
    const ada = await person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })
    t.strictSame(await sendAs(ada, 'DELETE')('/me', { currentPassword: PASSWORD }),
      [{ event: 'user-deleted', user: ada.id }])
  },
  async 'PUT /me/password' (send, t) {
    await sql`UPDATE users SET password = ${await hashPassword(PASSWORD)} WHERE id = ${admin.id}`
    const passwords = { currentPassword: PASSWORD, newPassword: 'correct horse battery' }
    t.strictSame(await send('/me/password', passwords), [{ event: 'password-changed', user: admin.id, by: 'password' }])
    await sql`DELETE FROM revoked_tokens`
    t.strictSame(await send('/me/password', passwords), [{ event: 'password-refused', network: '127.0.0.1' }])
  },
  async 'PUT /users/:userId/role' (send, t) {
    const { id: user } = await person(app)
    t.strictSame(await send(`/users/${user}/role`, { newRole: 'CLUB_HEAD' }),
      [{ event: 'role-changed', user, role: 'CLUB_HEAD' }])
    t.strictSame(await send(`/users/${randomUUID()}/role`, { newRole: 'CLUB_HEAD' }), [], 'no user changed')
  },
  async 'PUT /users/:userId/club' (send, t) {
    const [{ id: user }, club] = [await person(app), await makeClub()]
    t.strictSame(await send(`/users/${user}/club`, { clubId: club }), [{ event: 'membership-changed', user, club }])
    t.strictSame(await send(`/users/${user}/club`, { clubId: randomUUID() }), [], 'nothing changed')
  },
  async 'PUT /users/:id' (send, t) {
    const [{ id: user }, other, club] = [await person(app), await person(app), await makeClub()]
    t.strictSame(await send(`/users/${user}`, { email: newEmail(), firstName: 'Grace', 'x@example.org': 1 }),
      [{ event: 'user-changed', user, fields: ['firstName', 'email'] }])
    t.strictSame(await send(`/users/${user}`, { clubId: club }), [
      { event: 'user-changed', user, fields: ['clubId'] }, { event: 'membership-changed', user, club },
    ])
    t.strictSame(await send(`/users/${user}`, { clubId: null }), [
      { event: 'user-changed', user, fields: ['clubId'] }, { event: 'membership-changed', user, club: null },
    ])
    t.strictSame(await send(`/users/${user}`, { email: other.email }), [], 'the email is taken')
  },
  async 'POST /clubs' (send, t) {
    const { id: user, email: clubHeadEmail } = await person(app)
    const name = randomUUID()
    const lines = await send('/clubs', { name, description: 'A club', clubHeadEmail })
    const [club] = await sql`SELECT id FROM clubs WHERE name = ${name}`
    t.strictSame(lines, [
      { event: 'role-changed', user, role: 'CLUB_HEAD' }, { event: 'membership-changed', user, club: club!.id },
    ])
  },
  async 'PUT /blogs/:id' (send, t) {
    const target = await makeBlog()
    t.strictSame(await send(`/blogs/${target}`, { status: 'PUBLISHED' }),
      [{ event: 'blog-moderated', target, status: 'PUBLISHED', fields: ['status'] }])
    t.strictSame(await send(`/blogs/${target}`, { title: 'Another' }),
      [{ event: 'blog-moderated', target, status: 'PUBLISHED', fields: ['title'] }])
  },
  async 'POST /blogs/:id/approve' (send, t) {
    const target = await makeBlog()
    t.strictSame(await send(`/blogs/${target}/approve`), [{ event: 'blog-moderated', target, status: 'PUBLISHED' }])
  },
  async 'POST /blogs/:id/archive' (send, t) {
    const target = await makeBlog()
    t.strictSame(await send(`/blogs/${target}/archive`), [{ event: 'blog-moderated', target, status: 'ARCHIVED' }])
  },
  async 'DELETE /blogs/:id' (send, t) {
    const target = await makeBlog()
    t.strictSame(await send(`/blogs/${target}`), [{ event: 'blog-deleted', target }])
    t.strictSame(await send(`/blogs/${target}`), [], 'already deleted')
  },
  async 'DELETE /users/:id' (send, t) {
    const { id: user } = await person(app)
    t.strictSame(await send(`/users/${user}`), [{ event: 'user-deleted', user }])
    t.strictSame(await send(`/users/${user}`), [], 'already deleted')
  },
  // Always a 400.
  async 'DELETE /users/:userId/club' (send, t) {
    t.strictSame(await send(`/users/${admin.id}/club`), [])
  },
  async 'DELETE /account/:id' (send, t) {
    const { id: user } = await person(app)
    t.strictSame(await send(`/account/${user}`), [{ event: 'user-deleted', user }])
  },
  async 'DELETE /agenda/:id/seats/:registrationId' (send, t) {
    const [event, { id: user }] = [await makeEvent(), await person(app)]
    const target = await insert(app, 'event_registrations', { event_id: event, user_id: user })
    t.strictSame(await send(`/agenda/${event}/seats/${target}`), [{ event: 'registration-deleted', target }])
  },
  async 'POST /agenda' (_send, t) {
    const head = await person(app, 'CLUB_HEAD', { club_id: await makeClub() })
    const drawAt = '2029-01-01T10:00:00.000Z'
    const body = { ...AGENDA_EVENT, capacity: 3, drawAt }
    const lines = await sendAs(head, 'POST')('/agenda', body)
    const [event] = await sql`SELECT id FROM events ORDER BY id DESC LIMIT 1`
    t.strictSame(lines, [{ event: 'draw-set', target: event!.id, drawAt }])
    t.strictSame(await sendAs(head, 'POST')('/agenda', AGENDA_EVENT), [], 'no draw')
  },
  async 'PUT /agenda/:id' (send, t) {
    const target = await insert(app, 'events', { club_id: await makeClub(), date: new Date('2030-01-01') })
    const drawAt = '2029-12-01T10:00:00.000Z'
    t.strictSame(await send(`/agenda/${target}`, { capacity: 3, drawAt }), [{ event: 'draw-set', target, drawAt }])
    t.strictSame(await send(`/agenda/${target}`, { place: 'Room 1', drawAt }), [], 'the same')
    t.strictSame(await send(`/agenda/${target}`, { drawAt: null }), [{ event: 'draw-set', target, drawAt: null }])
  },
  async 'POST /agenda/:id/copies' (send, t) {
    const event = await insert(app, 'events', { club_id: await makeClub(), date: new Date('2030-01-01') })
    await admin.inject('PUT', `/agenda/${event}`, { capacity: 3, drawAt: '2029-12-01T10:00:00.000Z' })
    const lines = await send(`/agenda/${event}/copies`, { dates: ['2030-01-08T00:00:00Z', '2020-01-01T00:00:00Z'] })
    const [copy] = await sql`SELECT event_id AS id FROM event_details ORDER BY draw_at DESC NULLS LAST LIMIT 1`
    t.strictSame(lines, [{ event: 'draw-set', target: copy!.id, drawAt: '2029-12-08T10:00:00.000Z' }])
  },
  async 'PUT /me/clubs/:clubId' (send, t) {
    const club = await insert(app, 'clubs')
    t.strictSame(await send(`/me/clubs/${club}`, {}),
      [{ event: 'membership-changed', user: admin.id, club, state: 'requested' }])
    t.strictSame(await send(`/me/clubs/${club}`, {}), [], 'again')
  },
  async 'DELETE /me/clubs/:clubId' (send, t) {
    const club = await insert(app, 'clubs')
    await app.sql`INSERT INTO club_members (user_id, club_id, state) VALUES (${admin.id}, ${club}, 'member')`
    t.strictSame(await send(`/me/clubs/${club}`),
      [{ event: 'membership-changed', user: admin.id, club, state: null }])
    await app.sql`UPDATE users SET club_id = ${club} WHERE id = ${admin.id}`
    t.strictSame(await send(`/me/clubs/${club}`), [
      { event: 'membership-changed', user: admin.id, club, state: null },
      { event: 'office-changed', user: admin.id, club, office: null },
    ])
  },
  async 'PUT /me/clubs/:clubId/office' (send, t) {
    const club = await insert(app, 'clubs')
    const head = await person(app, 'CLUB_HEAD', { club_id: club })
    await app.sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${club}`
    await app.sql`
      INSERT INTO club_members (user_id, club_id, state, offered, offered_by, offered_at)
      VALUES (${admin.id}, ${club}, 'member', 'head', ${head.id}, now())
    `
    t.strictSame(await send(`/me/clubs/${club}/office`, { accept: true }), [
      { event: 'office-changed', user: admin.id, club, office: 'head' },
      { event: 'office-changed', user: head.id, club, office: 'deputy' },
    ])
    await app.sql`UPDATE users SET club_id = NULL WHERE id = ${admin.id}`
  },
  async 'PUT /club-pages/:id' (send, t) {
    const club = await insert(app, 'clubs')
    t.strictSame(await send(`/club-pages/${club}`, { joining: 'open' }),
      [{ event: 'club-changed', club, fields: ['joining'] }])
  },
  async 'PUT /club-pages/:id/members/:userId' (send, t) {
    const club = await insert(app, 'clubs')
    const { id: user } = await person(app, 'CLUB_HEAD', { club_id: club })
    t.strictSame(await send(`/club-pages/${club}/members/${user}`, { office: null }), [
      { event: 'office-changed', user, club, office: null }, { event: 'role-changed', user, role: 'STUDENT' },
    ])
    t.strictSame(await send(`/club-pages/${club}/members/${user}`, { state: 'refused' }),
      [{ event: 'membership-changed', user, club, state: 'refused' }])
  },
  async 'DELETE /events/:id' (send, t) {
    const target = await makeEvent()
    t.strictSame(await send(`/events/${target}`), [{ event: 'event-deleted', target }])
  },
  async 'DELETE /mentors/:id' (send, t) {
    const target = await makeMentor()
    t.strictSame(await send(`/mentors/${target}`), [{ event: 'mentor-deleted', target }])
  },
  async 'DELETE /me/calendar' (send, t) {
    await send('/me/calendar')
    await admin.inject('POST', '/me/calendar')
    t.strictSame(await send('/me/calendar'), [{ event: 'calendar-deleted' }])
  },
  async 'DELETE /me/tokens' (send, t) {
    t.strictSame(await send('/me/tokens'), [{ event: 'tokens-revoked' }])
    t.strictSame(await send('/me/tokens'), [], 'with a revoked token')
    await sql`DELETE FROM revoked_tokens`
  },
  async 'PUT /me/notifications' (send, t) {
    t.strictSame(await send('/me/notifications', { notifications: { blogDecision: true, 'of a stranger': 1 } }),
      [{ event: 'notifications-changed', fields: ['blogDecision'] }])
  },
  async 'POST /agenda/:id/message' (_send, t) {
    const batch = await build(t, { ...MAIL, DATABASE_URL }, logger())
    const target = await makeEvent()
    const message = { subject: 'Boards', text: 'Bring a board, please.' }
    const send = (id: string) =>
      auditOf(() => inject(batch, 'POST', `/agenda/${id}/message`, message, bearer(admin.token)))
    t.strictSame(await send(target), [{ event: 'message-sent', actor: admin.id, target }])
    t.strictSame(await send(randomUUID()), [], 'no event')
  },
  // Without a sign-in, the user is the recipient of the email.
  async 'POST /account/unsubscribe/:token' (_send, t) {
    const { id: user } = await person(app)
    const [token, template] = [createSecretToken(), 'event-reminder']
    await insert(app, 'emails', {
      template, bulk: true, user_id: user, data: {}, status: 'sent', token_hash: hashSecretToken(token),
    })
    const send = (token: string) => auditOf(() => inject(app, 'POST', `/account/unsubscribe/${token}`))
    t.strictSame(await send(token), [{ event: 'notifications-changed', user, template, by: 'email' }])
    t.strictSame(await send(token), [], 'turned off already')
    t.strictSame(await send(createSecretToken()), [], 'no such link')
    t.notMatch(log, token, 'nor is the token in any line')
  },
  async 'DELETE /testimonials/:id' (send, t) {
    const target = await makeTestimonial()
    t.strictSame(await send(`/testimonials/${target}`), [{ event: 'testimonial-deleted', target }])
  },
}

const sendAs = (actor: Person, method: string) => async (url: string, payload?: unknown) => {
  const lines = await auditOf(() => actor.inject(method as 'PUT', url, payload))
  return lines.map(({ actor: by, ...line }) => by === actor.id ? line : { ...line, by })
}

for (const [operation, run] of Object.entries(OPERATIONS)) {
  t.test(`${operation} logs the actor and the target`, async t => {
    await run(sendAs(admin, operation.split(' ')[0]!), t)
  })
}

t.test('All operations that delete are covered', async t => {
  const deleting = routes.filter(({ method }) => method === 'DELETE').map(nameOf)
  t.ok(deleting.length > 4)
  for (const operation of deleting) t.ok(OPERATIONS[operation], operation)
})

t.test('A repeated request with an Idempotency-Key is logged once', async t => {
  const { email: clubHeadEmail } = await person(app)
  const mailing = await build(t, { ...MAIL, DATABASE_URL }, logger())
  const message = { subject: 'Boards', text: 'Bring a board, please.' }
  const requests: [string, object, number][] = [
    ['/clubs', { name: 'Chess', description: 'A club', clubHeadEmail }, 2],
    [`/me/events/${await makeEvent()}/message`, message, 1],
  ]
  for (const [url, body, count] of requests) {
    const send = () => auditOf(() => inject(mailing, 'POST', url, body, {
      ...bearer(admin.token), 'idempotency-key': url,
    }))
    t.equal((await send()).length, count, url)
    t.strictSame(await send(), [], `${url} again`)
  }
})

t.test('A 403 logs the user', async t => {
  const [student, head] = [await person(app), await person(app, 'CLUB_HEAD', { club_id: await makeClub() })]
  t.strictSame(await sendAs(student, 'GET')('/users'), [{ event: 'access-denied' }])
  t.strictSame(await sendAs(head, 'DELETE')(`/events/${await makeEvent()}`), [{ event: 'access-denied' }])
  const [line] = await auditOf(async () => inject(app, 'GET', `/blogs/${await makeBlog()}`))
  t.strictSame(line, { event: 'access-denied' }, 'or no user for a 401')
})

t.test('An operation that may have taken effect logs the user', async t => {
  const [{ id }, other] = [await person(app), await person(app)]
  const start = log.length
  await admin.inject('PUT', `/users/${id}`, { email: other.email })
  const lines = log.slice(start).split('\n').filter(Boolean).map(line => JSON.parse(line))
  t.match(lines.find(({ msg }) => msg === 'Request refused'), { actor: admin.id })
})

t.test('An admin who is created at the start is logged', async t => {
  const { id: user, email } = await person(app)
  const variables = { DATABASE_URL, ADMIN_EMAIL: email, ADMIN_PASSWORD: PASSWORD }
  const start = () => auditOf(() => build(t, variables, logger()))
  t.strictSame(await start(), [{ event: 'role-changed', user, role: 'ADMIN' }])
  t.strictSame(await start(), [])
})

t.test('No line has an email, a password or a token', async t => {
  const lines = log.split('\n').filter(Boolean)
  t.ok(lines.length > 60)
  const secret = (line: string) => EMAIL.test(line) || TOKEN.test(line) ||
    /correct horse|hunter2|argon2id\$/.test(line) || line.includes(CLIENT.IDP_CLIENT_SECRET)
  t.strictSame(lines.filter(secret), [])
})
