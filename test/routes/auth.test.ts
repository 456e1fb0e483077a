import type { FastifyJWT } from '@fastify/jwt'
import { randomUUID } from 'node:crypto'

import argon2 from 'argon2'

import { hashPassword } from '#lib/auth/passwords.js'
import { assertMessage, assertResponse } from '../assertions.ts'
import { build, createDatabase, inject, insert, MAIL, person } from '../helper.ts'
import t from '../suite.ts'

const DATABASE_URL = await createDatabase()
const app = await build(t, { DATABASE_URL })

const PASSWORD = 'correct horse'
const ARGON2ID = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]+\$[\w+/]+$/

const newEmail = () => `${randomUUID()}@example.org`

/** A valid registration with these fields; `undefined` removes one. */
const account = (fields: Record<string, unknown> = {}): Record<string, unknown> =>
  ({ email: newEmail(), password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace', ...fields })

const register = (payload?: unknown) => inject(app, 'POST', '/auth/register', payload)
const login = (payload?: unknown) => inject(app, 'POST', '/auth/login', payload)
const me = (token: string) => inject(app, 'GET', '/auth/me', undefined, { authorization: `Bearer ${token}` })

const stored = async (email: unknown) => (await app.sql`SELECT * FROM users WHERE email = ${String(email)}`)[0]!

t.test('POST /auth/register', async t => {
  t.test('returns 201 with the account and a token', async t => {
    const body = account()
    const response = await register(body)
    const { user, token, ...others } = response.json()
    t.strictSame([response.statusCode, others], [201, {}])
    t.strictSame(user, { id: user.id, firstName: 'Ada', lastName: 'Lovelace', email: body.email, role: 'STUDENT' })
    t.match(app.jwt.verify(token), { sub: user.id, role: 'STUDENT' })
    t.equal((await me(token)).json().user.id, user.id, 'the token is valid')
    t.equal(response.headers['set-cookie'], undefined, 'no application cookie')
  })

  t.test('creates a STUDENT without club, avatar and idpId', async t => {
    const body = account()
    const { user } = (await register(body)).json()
    const { password, created_at: created, updated_at: updated, ...row } = await stored(body.email)
    t.strictSame(row, {
      id: user.id,
      email: body.email,
      idp_id: null,
      email_verified_at: null,
      avatar: null,
      first_name: 'Ada',
      last_name: 'Lovelace',
      role: 'STUDENT',
      club_id: null,
    })
    t.strictSame(created, updated)
    t.match(password, ARGON2ID)
  })

  t.test('is case-sensitive in the email', async t => {
    const name = randomUUID()
    const emails = [`a${name}@x.org`, `A${name}@x.org`, `a${name}@X.org`]
    for (const email of emails) {
      const response = await register(account({ email }))
      t.equal(response.statusCode, 201)
      t.equal(response.json().user.email, email)
      t.ok(await stored(email))
    }
  })

  t.test('does not trim', async t => {
    const body = account({ firstName: ' Ada ', lastName: ' ', password: '        ' })
    const { user } = (await register(body)).json()
    t.match(user, { firstName: ' Ada ', lastName: ' ' })
    t.equal((await login({ email: body.email, password: '        ' })).statusCode, 200)
    t.equal((await login({ email: body.email, password: '       ' })).statusCode, 401)
  })

  t.test('stores a lone surrogate as U+FFFD', async t => {
    const body = account({ firstName: 'a\ud800b' })
    t.equal((await register(body)).json().user.firstName, 'a\ufffdb')
    t.equal((await stored(body.email)).first_name, 'a\ufffdb')
  })

  t.test('returns 409 for an existing email, and leaves the account unchanged', async t => {
    const body = account()
    await register(body)
    const before = await stored(body.email)
    const response = await register({ ...body, password: 'another password', firstName: 'Eve' })
    t.equal(response.statusCode, 409)
    t.strictSame(response.json(), { message: 'User already exists' })
    t.strictSame(await stored(body.email), before)
  })

  t.test('creates one account from twenty concurrent registrations', async t => {
    const email = newEmail()
    const responses = await Promise.all(Array.from({ length: 20 }, () => register(account({ email }))))
    const refused = responses.filter(({ statusCode }) => statusCode !== 201)
    t.equal(refused.length, 19)
    for (const response of refused) {
      t.strictSame([response.statusCode, response.json()], [409, { message: 'User already exists' }])
    }
    t.strictSame([...await app.sql`SELECT count(*)::int FROM users WHERE email = ${email}`], [{ count: 1 }])
  })
})

t.test('POST /auth/login', async t => {
  const body = account()
  const { user: { id } } = (await register(body)).json()
  const email = String(body.email)

  t.test('returns 200 with userId, email, role and a token', async t => {
    const response = await login({ email, password: PASSWORD })
    const { user, token, ...others } = response.json()
    t.strictSame([response.statusCode, others, user], [200, {}, { userId: id, email, role: 'STUDENT' }])
    t.match(app.jwt.verify(token), { sub: id, role: 'STUDENT' })
    t.equal((await me(token)).json().user.id, id, 'the token is valid')
    t.equal(response.headers['set-cookie'], undefined, 'no application cookie')
  })

  t.test('returns 401 for a wrong password or an unknown email', async t => {
    const idp = await person(app)
    const table: [string, { email: string, password: string }][] = [
      ['unknown email', { email: newEmail(), password: PASSWORD }],
      ['wrong password', { email, password: 'wrong horse' }],
      ['wrong case', { email, password: PASSWORD.toUpperCase() }],
      ['a space more', { email, password: `${PASSWORD} ` }],
      ['the hash itself', { email, password: (await stored(email)).password }],
      ['email in another case', { email: email.toUpperCase(), password: PASSWORD }],
      ['the placeholder of an account of the IdP', { email: idp.email, password: '!' }],
      ['a password for an account of the IdP', { email: idp.email, password: PASSWORD }],
      ['a lone surrogate', { email, password: '\ud800' }],
      ['a very long password', { email, password: 'x'.repeat(10_000) }],
    ]
    for (const [what, credentials] of table) {
      const response = await login(credentials)
      t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid credentials' }], what)
    }
  })

  t.test('returns 400 for an empty password', async t => {
    for (const address of [email, newEmail()]) {
      const response = await login({ email: address, password: '' })
      t.strictSame([response.statusCode, response.json()], [400, { message: 'All fields are required' }])
    }
  })
})

t.test('GET /auth/me', async t => {
  t.test('returns the user with avatar and club', async t => {
    const name = `Club ${randomUUID()}`
    const imageUrl = 'https://example.org/club.png'
    const avatar = 'https://example.org/ada.png'
    const clubs = [null, { name, imageUrl: null }, { name: `${name} II`, imageUrl }]
    for (const club of clubs) {
      const id = club && await insert(app, 'clubs', { name: club.name, image_url: club.imageUrl })
      const fields = club && { club_id: id, avatar }
      const user = await person(app, 'CLUB_HEAD', fields ?? {})
      assertResponse(t, await user.inject('GET', '/auth/me'), 200, {
        user: {
          id: user.id,
          firstName: 'Ada',
          lastName: 'Lovelace',
          email: user.email,
          avatar: club && avatar,
          role: 'CLUB_HEAD',
          club: club && { id, ...club },
        },
      })
    }
  })

  t.test('reads the user from the database, not from the token', async t => {
    const ada = await person(app)
    const email = newEmail()
    await app.sql`
      UPDATE users SET first_name = 'Grace', last_name = 'Hopper', email = ${email}, role = 'ADMIN' WHERE id = ${ada.id}
    `
    t.match((await ada.inject('GET', '/auth/me')).json(), {
      user: { id: ada.id, firstName: 'Grace', lastName: 'Hopper', email, role: 'ADMIN' },
    })
    t.equal((await me(app.issueToken({ id: ada.id, role: 'CLUB_HEAD' }))).json().user.role, 'ADMIN')
  })

  t.test('returns 401 when the token names no user', async t => {
    for (const sub of [undefined, '', 'not-a-uuid', 'nul\u0000', '\ud800', 'x'.repeat(500)]) {
      const claims = { role: 'STUDENT', ...sub === undefined ? {} : { sub } }
      const response = await me(app.jwt.sign(claims as FastifyJWT['payload']))
      t.strictSame([response.statusCode, response.json()], [401, { message: 'Unauthorized' }],
        `sub: ${JSON.stringify(sub)?.slice(0, 20)}`)
    }
  })

  t.test('must not be cached, and varies by credentials', async t => {
    const response = await (await person(app)).inject('GET', '/auth/me')
    const directives = String(response.headers['cache-control']).split(', ')
    t.ok(directives.includes('no-cache'))
    t.ok(directives.includes('no-store'))
    t.equal(response.headers.vary, 'Origin, Authorization, Cookie')
    const refused = await app.inject('/auth/me')
    for (const { headers } of [response, refused]) {
      t.match(headers, { 'cache-control': /no-store/, pragma: 'no-cache', expires: '0' })
    }
    t.equal(response.headers['set-cookie'], undefined, 'the token is not refreshed')
  })
})

t.test('POST /auth/register and /auth/login return their 500 when a token cannot be signed', async t => {
  const body = account()
  await register(body)
  t.intercept(app, 'issueToken', { value () { throw new Error('no key') } })
  assertResponse(t, await register(account()), 500, { message: 'Registration failed' })
  assertResponse(t, await login({ email: body.email, password: PASSWORD }), 500, { message: 'Login failed' })
})

t.test('When too many passwords wait for hashing, only operations with a password return 503', async t => {
  // All come from one network. Of two networks, the network that holds less would get a place of the other.
  const app = await build(t, { ...MAIL, DATABASE_URL })
  const ada = await person(app, 'STUDENT', { password: await hashPassword(PASSWORD) })
  let release!: (verified: boolean) => void
  const released = new Promise<boolean>(resolve => { release = resolve })
  t.intercept(argon2, 'verify', { value: () => released })
  const emails = Array.from({ length: 330 }, newEmail)
  const waiting = emails.map(email => inject(app, 'POST', '/auth/login', { email, password: PASSWORD }))
  const refused = await Promise.any(waiting)
  t.equal(refused.statusCode, 503)
  t.equal(refused.headers['retry-after'], '5')
  for (const response of [
    refused,
    await inject(app, 'POST', '/auth/register', account()),
    await ada.inject('PUT', '/me/password', { currentPassword: PASSWORD, newPassword: 'a battery and a staple' }),
    await ada.inject('POST', '/me/email', { email: newEmail(), currentPassword: PASSWORD }),
    await ada.inject('DELETE', '/me', { currentPassword: PASSWORD }),
  ]) {
    t.strictSame(
      [response.statusCode, response.json()],
      [503, { message: 'Too many people are signing in, please try again in a few seconds' }]
    )
  }
  t.equal((await inject(app, 'GET', '/events')).statusCode, 200)

  release(false)
  const statuses = (await Promise.all(waiting)).map(({ statusCode }) => statusCode)
  t.ok(statuses.filter(status => status === 401).length >= 300)
  t.strictSame([...new Set(statuses)].sort(), [401, 503])
  const counted = await app.sql`
    SELECT split_part(key, ' ', 1) AS email FROM rate_limits
    WHERE name = 'failed-sign-ins-for-account'
  `
  t.strictSame(counted.map(({ email }) => email).filter(email => emails.includes(email)).sort(),
    emails.filter((_, i) => statuses[i] === 401).sort(), 'only what was verified counts as a failure')
  t.equal((await inject(app, 'POST', '/auth/register', account())).statusCode, 201, 'recovered')
})

t.test('POST /auth/register tries no second time after an error that may have created the account', async t => {
  const app = await build(t, MAIL)
  const lost = Object.assign(new Error('write CONNECTION_CLOSED'), { code: 'CONNECTION_CLOSED' })
  t.intercept(app.outbox, 'enqueue', { value () { throw lost } })
  const body = account()
  assertMessage(t, await inject(app, 'POST', '/auth/register', body), 500, 'Registration failed')
  t.equal((await app.sql`SELECT FROM users WHERE email = ${String(body.email)}`).length, 0)
})
