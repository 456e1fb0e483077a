import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import PostalMime from 'postal-mime'

import { ROLES } from '#lib/values/roles.js'
import { signOut } from '#lib/accounts/accounts.js'
import { eraseUser } from '#lib/accounts/erasure.js'
import { hashPassword, PLACEHOLDER } from '#lib/auth/passwords.js'
import { revokeTokens } from '#lib/auth/revoked-tokens.js'
import { createLogger } from '#lib/http/logger.js'
import { Sender } from '#lib/email/sender.js'
import { SmtpTransport } from '#lib/email/smtp.js'
import { templates } from '#lib/email/templates.js'
import { assertInvalid, assertMessage, assertResponse } from '../assertions.ts'
import { HASH, PASSWORD } from '../fixtures.ts'
import {
  bearer, build, buildWithoutSender, createDatabase, inject, insert, type Person, person, untilBlocked,
} from '../helper.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import { messageIdOf, startMailServer } from '../smtp.ts'
import t, { type Test } from '../suite.ts'

const NEW = 'a battery and a staple'
const NAMES = { firstName: 'Ada', lastName: 'Lovelace' }
const ACCEPTED = 'If this email has an account, an email is on its way'
const INVALID = 'Invalid or expired link'

/** The interval at which emails are sent, in milliseconds. */
const TICK = 50

const lines: string[] = []
const logger = () => createLogger('trace', { write (line) { lines.push(line) } })
const server = await startMailServer(t)
const provider = await startFakeProvider(t)
const DATABASE_URL = await createDatabase()
const variables = { DATABASE_URL, ...CLIENT, IDP_ISSUER: provider.issuer }
const email = { SMTP_URL: server.url, MAIL_FROM: 'community@example.org' }
// A sender with short turns replaces the sender of the app.
const app = await buildWithoutSender(t, {
  ...variables, ...email, FRONTEND_URL: 'https://app.example.org,https://other.example.org', SIGN_IN_ATTEMPTS: '3',
}, logger())
const { config, log } = app
const sender = new Sender({ sql: app.sql, config, log, transport: new SmtpTransport(config) }, {
  tick: TICK, pause: { first: TICK, longest: TICK }, stop: 1000,
})
sender.start()
t.teardown(() => sender.stop())
const withoutEmail = await build(t, variables)
// Its sender cannot write the links of others.
const withoutFrontend = await build(t, { ...variables, ...email, DATABASE_URL: await createDatabase() })
const { sql } = app

const newPerson = (fields: Record<string, unknown> = {}, of = app) =>
  person(of, 'STUDENT', { password: HASH, ...fields })
const newEmail = () => `${randomUUID()}@example.org`
/** The same mailbox in other letters. nodemailer writes domains in small letters. */
const inCapitals = (email: string) => email.replace(/^[^@]+/, name => name.toUpperCase())

const emailsTo = (email: string) => server.emails.filter(({ to }) => to.includes(email))

/** Waits for the nth email to an address. */
async function mailTo (email: string, n = 1) {
  const deadline = performance.now() + 30_000
  while (emailsTo(email).length < n) {
    if (performance.now() > deadline) throw new Error(`No email ${n} to ${email}`)
    await sleep(20)
  }
  return PostalMime.parse(emailsTo(email)[n - 1]!.raw)
}

/** The token in the link of the nth email to an address. */
async function tokenTo (t: Test, email: string, page: string, n = 1) {
  const { text, html } = await mailTo(email, n)
  const link = new RegExp(`https://app\\.example\\.org/${page}#token=([\\w-]{43})`)
  const [, token] = link.exec(text!) ?? []
  t.ok(token, 'a link')
  t.equal(link.exec(html!)?.[1], token, 'the same in HTML')
  return token!
}

/** Waits until no email to these addresses waits. */
async function untilQuiet (...addresses: string[]) {
  const waiting = () => sql`
    SELECT FROM emails JOIN users ON users.id = user_id WHERE users.email IN ${sql(addresses)} AND status = 'pending'
  `
  while ((await waiting()).count > 0) await sleep(20)
}

/** Sends a request from a network of its own. */
let networks = 0
const post = (url: string, payload: object, { remoteAddress = `198.51.100.${++networks}`, via = app } = {}) =>
  via.inject({ method: 'POST', url, payload, remoteAddress })

const forget = (email: string, options = {}) => post('/account/password/forgot', { email }, options)
const reset = (token: string, password = NEW, options = {}) =>
  post('/account/password/reset', { token, password }, options)
const verify = (token: string, options = {}) => post('/account/email/verify', { token }, options)
const signIn = async (email: string, password: string) => (await post('/auth/login', { email, password })).statusCode
const isSignedIn = async (token: string) => (await inject(app, 'GET', '/auth/me', undefined, bearer(token))).statusCode
const change = ({ token }: { token: string }, currentPassword: string, newPassword = NEW) =>
  inject(app, 'PUT', '/me/password', { currentPassword, newPassword }, bearer(token))

const provenAt = async (email: string) =>
  (await sql`SELECT email_verified_at AS at FROM users WHERE email = ${email}`)[0]!.at as Date | null

const count = async (query: Promise<{ count: number }>) => (await query).count

/** The response to the deletion of an account without posts and pictures. */
const DELETED = { message: 'Account deleted successfully', kept: { publishedBlogs: 0, pictures: 0 } }

t.test('A forgotten password is set by the link in an email, once', async t => {
  const { id, email, token: old } = await newPerson()
  assertMessage(t, await forget(email), 202, ACCEPTED)
  const token = await tokenTo(t, email, 'reset-password')
  const rows = await sql`
    SELECT account_tokens::text AS row FROM account_tokens WHERE user_id = ${id}
    UNION ALL SELECT emails::text FROM emails WHERE user_id = ${id}
  `
  t.equal(rows.length, 2)
  t.notMatch(JSON.stringify(rows), token, 'only the hash is stored')

  assertMessage(t, await reset(token), 200, 'Password set successfully')
  t.strictSame([await signIn(email, PASSWORD), await signIn(email, NEW)], [401, 200])
  t.equal(await isSignedIn(old), 401, 'earlier tokens are revoked')
  assertMessage(t, await reset(token), 400, INVALID)
  t.match(await mailTo(email, 2), { subject: 'Your password for Community was changed' })
  t.ok(await provenAt(email), 'and the email is verified')
  t.notOk(lines.some(line => line.includes(token) || line.includes(email)), 'the log has neither token nor email')
})

t.test('A forgotten password is found in other cases, and the email goes to the email of the account', async t => {
  const { id, email } = await newPerson()
  assertMessage(t, await forget(email.toUpperCase()), 202, ACCEPTED)
  await tokenTo(t, email, 'reset-password')
  // Two accounts that differ in case only: each gets the email of its own address.
  await newPerson({ email: email.toUpperCase() })
  assertMessage(t, await forget(email), 202, ACCEPTED)
  await mailTo(email, 2)
  t.equal(await count(sql`SELECT FROM emails WHERE user_id = ${id}`), 2)
})

t.test('An unknown email gets the same response in the same time, and no email', async t => {
  const timed = async (email: string) => {
    const start = performance.now()
    assertMessage(t, await forget(email), 202, ACCEPTED)
    return performance.now() - start
  }
  const times: { known: number[], unknown: number[] } = { known: [], unknown: [] }
  for (let n = 0; n < 3; n++) {
    const { email } = await newPerson()
    times.known.push(await timed(email))
    times.unknown.push(await timed(newEmail()))
    await mailTo(email)
  }
  // Other work on the machine makes some of them slower.
  const [known, unknown] = [Math.min(...times.known), Math.min(...times.unknown)]
  t.ok(Math.min(known, unknown) >= 499, JSON.stringify(times))
  t.ok(Math.max(known, unknown) < 1.5 * Math.min(known, unknown), JSON.stringify(times))
  assertInvalid(t, await post('/account/password/forgot', { email: 'x' }), ['email'])
})

t.test('An account without a password gets its first one by email', async t => {
  const ada = await person(app)
  assertMessage(t, await change(ada, '!'), 401, 'Current password is wrong')
  await forget(ada.email)
  t.equal((await reset(await tokenTo(t, ada.email, 'reset-password'))).statusCode, 200)
  t.equal(await signIn(ada.email, NEW), 200)
})

t.test('Only the link of the latest email works', async t => {
  const { email } = await newPerson()
  await forget(email)
  const older = await tokenTo(t, email, 'reset-password')
  await forget(email)
  const token = await tokenTo(t, email, 'reset-password', 2)
  assertMessage(t, await reset(older), 400, INVALID)
  t.equal((await reset(token)).statusCode, 200)
})

/** Enqueues an email whose first copy arrives, but the response of the mail server is lost. */
async function loseResponse (id: string, enqueue: () => Promise<unknown>) {
  // The sender has its fault with the next connection. An earlier email may open another one.
  for (; server.open() > 0; await sleep(20)) server.hangUp()
  server.fault = () => ({ stage: 'response' })
  await enqueue()
  while (await count(sql`SELECT FROM emails WHERE user_id = ${id} AND error IS NOT NULL`) === 0) await sleep(20)
  server.fault = () => undefined
}

/** Has the sender try the emails of a user again, and waits until it has. */
async function retry (id: string) {
  await sql`UPDATE emails SET due_at = now() WHERE user_id = ${id} AND error IS NOT NULL`
  while (await count(sql`SELECT FROM emails WHERE user_id = ${id} AND error IS NOT NULL`) > 0) await sleep(20)
}

t.test('An email that is sent again is the same email: its link stays the same', async t => {
  for (const [page, enqueue, open] of [
    ['reset-password', ({ email }: Person) => forget(email), (token: string) => reset(token)],
    ['verify-email', (who: Person) => who.inject('POST', '/me/email/verification'), (token: string) => verify(token)],
  ] as const) {
    const ada = await newPerson()
    await loseResponse(ada.id, () => enqueue(ada))
    await retry(ada.id)
    const [first, second] = [await tokenTo(t, ada.email, page), await tokenTo(t, ada.email, page, 2)]
    t.equal(first, second)
    t.strictSame(new Set(emailsTo(ada.email).map(({ raw }) => messageIdOf(raw))).size, 1)
    t.equal((await open(first)).statusCode, 200, 'a mailbox that drops doubles keeps the first')
    assertMessage(t, await open(second), 400, INVALID)
  }
})

t.test('A link that was used does not come back with a second copy of its email', async t => {
  const { id, email } = await newPerson()
  await loseResponse(id, () => forget(email))
  const token = await tokenTo(t, email, 'reset-password')
  t.equal((await reset(token)).statusCode, 200)
  await retry(id)
  t.match(await mailTo(email, 2), { subject: 'Your password for Community was changed' })
  t.equal(emailsTo(email).length, 2)
  assertMessage(t, await reset(token), 400, INVALID)
})

t.test('A second copy of an older email does not replace the link of a newer email', async t => {
  const { id, email } = await newPerson()
  await loseResponse(id, () => forget(email))
  await forget(email)
  const token = await tokenTo(t, email, 'reset-password', 2)
  await retry(id)
  t.equal(emailsTo(email).length, 2)
  t.equal((await reset(token)).statusCode, 200)
})

t.test('The link in a copy to an earlier address does not work for a new address', async t => {
  const ada = await newPerson()
  await loseResponse(ada.id, () => ada.inject('POST', '/me/email/verification'))
  const token = await tokenTo(t, ada.email, 'verify-email')
  const email = newEmail()
  await sql`UPDATE users SET email = ${email} WHERE id = ${ada.id}`
  await retry(ada.id)
  const other = await tokenTo(t, email, 'verify-email')
  assertMessage(t, await verify(token), 400, INVALID)
  t.equal((await verify(other)).statusCode, 200)
})

t.test('A link expires, and later emails remove it', async t => {
  const [{ id, email }, other] = [await newPerson(), await newPerson()]
  await forget(email)
  const token = await tokenTo(t, email, 'reset-password')
  const [{ seconds }] = await sql<[{ seconds: number }]>`
    SELECT extract(epoch FROM expires_at - now())::float AS seconds FROM account_tokens WHERE user_id = ${id}
  `
  t.ok(seconds > 3000 && seconds <= 3600, String(seconds))
  await sql`UPDATE account_tokens SET expires_at = now() - interval '1 s' WHERE user_id = ${id}`
  assertMessage(t, await reset(token), 400, INVALID)
  await forget(other.email)
  await mailTo(other.email)
  t.equal(await count(sql`SELECT FROM account_tokens WHERE user_id = ${id}`), 0)
})

t.test('A new password, a new email and the wrong purpose invalidate a link', async t => {
  const [changed, moved, proving] = [await newPerson(), await newPerson(), await newPerson()]
  for (const { email } of [changed, moved]) await forget(email)
  t.equal((await proving.inject('POST', '/me/email/verification')).statusCode, 202)
  const tokens = [
    await tokenTo(t, changed.email, 'reset-password'), await tokenTo(t, moved.email, 'reset-password'),
    await tokenTo(t, proving.email, 'verify-email'),
  ]
  t.equal((await change(changed, PASSWORD)).statusCode, 200)
  await sql`UPDATE users SET email = ${newEmail()} WHERE id = ${moved.id}`
  for (const token of tokens) assertMessage(t, await reset(token), 400, INVALID)
  t.equal((await verify(tokens[2]!)).statusCode, 200, 'a refused reset does not use it up')
})

t.test('Of concurrent requests with one token, one sets the password', async t => {
  const { email } = await newPerson()
  await forget(email)
  const token = await tokenTo(t, email, 'reset-password')
  const responses = await Promise.all(['one', 'two', 'three'].map(n => reset(token, `${NEW} ${n}`)))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 400, 400])
  const winner = ['one', 'two', 'three'][responses.findIndex(({ statusCode }) => statusCode === 200)]
  t.equal(await signIn(email, `${NEW} ${winner}`), 200)
})

t.test('An email that no longer applies is not sent', async t => {
  const { id, email } = await newPerson({ email_verified_at: new Date() })
  for (const template of ['email-verification', 'account-linked']) {
    await sql`INSERT INTO emails (template, bulk, user_id, data) VALUES (${template}, false, ${id}, '{}')`
  }
  while (await count(sql`SELECT FROM emails WHERE user_id = ${id}`) > 0) await sleep(20)
  t.equal(emailsTo(email).length, 0, 'the email is verified, and there is another password')

  const claimed = {
    id: randomUUID(), template: 'password-reset', userId: id, data: {}, key: null, attempts: 0, createdAt: new Date(),
  }
  const recipient = { email: newEmail(), isVerified: false, ...NAMES }
  t.equal(await templates['password-reset'](claimed, { sql, config: app.config, recipient }), undefined,
    'the account has another email')
})

t.test('Common passwords and passwords with the email are refused, and the link still works', async t => {
  const ada = await newPerson({ email: `ada.${randomUUID()}@example.org` })
  await forget(ada.email)
  const token = await tokenTo(t, ada.email, 'reset-password')
  const easy = { common: 'Password1', email: `x ${ada.email.toUpperCase()}`, short: 'q7+Lm' }
  for (const [name, password] of Object.entries(easy)) {
    assertInvalid(t, await reset(token, password), ['password'], name)
    assertInvalid(t, await change(ada, PASSWORD, password), ['newPassword'], name)
  }
  t.strictSame((await reset(token, easy.common)).json().errors,
    [{ path: 'password', message: 'must not be a common password' }])
  t.strictSame((await reset(token, easy.email)).json().errors,
    [{ path: 'password', message: 'must not contain your email address' }])
  t.equal((await reset(token)).statusCode, 200)

  const { statusCode } = await post('/auth/register', { email: newEmail(), password: 'password', ...NAMES })
  t.equal(statusCode, 201, 'a registration takes them')
})

t.test('PUT /me/password of any role revokes all tokens and returns a new one', async t => {
  for (const role of ROLES) {
    const ada = await person(app, role, { password: HASH, email_verified_at: new Date() })
    const response = await change(ada, PASSWORD)
    const { token, ...body } = response.json()
    t.strictSame([response.statusCode, body], [200, { message: 'Password changed successfully' }])
    t.strictSame([await isSignedIn(ada.token), await isSignedIn(token)], [401, 200])
    t.strictSame([await signIn(ada.email, PASSWORD), await signIn(ada.email, NEW)], [401, 200])
    t.match(await mailTo(ada.email), { subject: 'Your password for Community was changed' })
  }
  const bob = await person(app, 'STUDENT', { password: HASH })
  t.equal((await change(bob, PASSWORD)).statusCode, 200)
  const emails = await app.sql`SELECT FROM emails WHERE user_id = ${bob.id}`
  t.equal(emails.length, 0, 'an email that is not verified gets none')
})

t.test('Of concurrent changes of a password, one succeeds', async t => {
  const ada = await newPerson()
  const responses = await Promise.all(['one', 'two'].map(n => change(ada, PASSWORD, `${NEW} ${n}`)))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 401])
})

t.test('Wrong passwords are limited together with wrong sign-ins', async t => {
  const ada = await newPerson()
  const signedIn = await post('/auth/login', { email: ada.email, password: 'x' }, { remoteAddress: '127.0.0.1' })
  t.equal(signedIn.statusCode, 401)
  for (let n = 0; n < 2; n++) assertMessage(t, await change(ada, 'wrong'), 401, 'Current password is wrong')
  const response = await change(ada, PASSWORD)
  assertMessage(t, response, 429, 'Too many failed sign-ins, please try again later')
  t.ok(Number(response.headers['retry-after']) > 0)
  t.equal(await signIn(ada.email, PASSWORD), 200, 'elsewhere the account works')

  const bob = await newPerson()
  const responses = await Promise.all(Array.from({ length: 8 }, () => change(bob, 'wrong')))
  t.equal(responses.filter(({ statusCode }) => statusCode === 401).length, 3, 'however many come at once')
})

t.test('A password that was set by an email signs in where its owner had failed too often', async t => {
  const { email } = await newPerson()
  const remoteAddress = '192.0.2.77'
  const attempt = async (password: string) =>
    (await post('/auth/login', { email, password }, { remoteAddress })).statusCode
  for (let n = 0; n < 3; n++) await attempt('wrong')
  t.equal(await attempt(PASSWORD), 429)
  await forget(email)
  await reset(await tokenTo(t, email, 'reset-password'), NEW, { remoteAddress })
  t.equal(await attempt(NEW), 200)
})

t.test('A registration asks to verify the email, once', async t => {
  const email = newEmail()
  const { statusCode } = await post('/auth/register', { email, password: PASSWORD, ...NAMES })
  t.equal(statusCode, 201)
  const token = await tokenTo(t, email, 'verify-email')
  t.equal(await provenAt(email), null)
  assertMessage(t, await verify(token), 200, 'Email verified successfully')
  const at = await provenAt(email)
  t.ok(at)
  assertMessage(t, await verify(token), 400, INVALID)

  t.equal((await post('/auth/register', { email, password: PASSWORD, ...NAMES })).statusCode, 409)
  await untilQuiet(email)
  t.equal(emailsTo(email).length, 1)
  await sql`UPDATE users SET email = ${`x${email}`} WHERE email = ${email}`
  t.equal(await provenAt(`x${email}`), null, 'another email is not verified')
})

t.test('Who verifies the address after registering for events gets the confirmations, once', async t => {
  const club = await insert(app, 'clubs')
  const event = (date: string) => insert(app, 'events', { title: `In ${date}`, date: new Date(date), club_id: club })
  const [coming, declined, past] = await Promise.all([event('2998'), event('2999'), event('2020')])
  const subjectsTo = async (email: string) =>
    Promise.all(emailsTo(email).map(async ({ raw }) => (await PostalMime.parse(raw)).subject))
  const ways: Record<string, (person: Person) => Promise<unknown>> = {
    async 'the link of the sign-up' (ada) {
      await ada.inject('POST', '/me/email/verification')
      return verify(await tokenTo(t, ada.email, 'verify-email'))
    },
    async 'a new password' (ada) {
      await forget(ada.email)
      return reset(await tokenTo(t, ada.email, 'reset-password'))
    },
    async 'the identity provider' ({ email }) {
      return post('/auth/google', { idToken: await provider.idToken({ sub: randomUUID(), email }) })
    },
  }
  for (const [way, verifyBy] of Object.entries(ways)) {
    const ada = await newPerson()
    for (const id of [coming, declined, past]) await ada.inject('POST', `/events/${id}/register`)
    await ada.inject('PUT', `/me/seats/${declined}`, { coming: false })
    await verifyBy(ada)
    await untilQuiet(ada.email)
    const subjects = await subjectsTo(ada.email)
    t.strictSame(subjects.filter(subject => subject!.startsWith('You are')), ['You are registered: In 2998'], way)
  }
})

t.test('POST /me/email/verification sends an email to any role, until the email is verified', async t => {
  for (const role of ROLES) {
    const ada = await person(app, role)
    assertMessage(t, await ada.inject('POST', '/me/email/verification'), 202, 'An email is on its way')
    t.equal((await verify(await tokenTo(t, ada.email, 'verify-email'))).statusCode, 200)
    assertMessage(t, await ada.inject('POST', '/me/email/verification'), 409, 'Email is already verified')
    t.match((await ada.inject('GET', '/me/export')).json().account.emailVerifiedAt, /^\d{4}-.*Z$/)
  }
})

t.test('Emails to an address and by a network are limited, whether there is an account or not', async t => {
  const ada = await newPerson()
  for (const email of [ada.email, newEmail()]) {
    const responses = await Promise.all(Array.from({ length: 6 }, () => forget(email)))
    t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [202, 202, 202, 202, 202, 429])
    const response = await forget(email)
    assertMessage(t, response, 429, 'Too many emails, please try again later')
    t.ok(Number(response.headers['retry-after']) > 0)
  }
  assertMessage(t, await ada.inject('POST', '/me/email/verification'), 429, 'Too many emails, please try again later')

  const from = { remoteAddress: '203.0.113.1' }
  for (let n = 0; n < 40; n++) t.equal((await verify('x', from)).statusCode, 400, 'unknown links are not counted')
})

t.test('Twelve spellings of an address share one limit, and their emails have no names', async t => {
  const email = `a${newEmail()}`
  const spelled = (n: number) => `${n.toString(2).padStart(4, '0')}${email}`.replace(/^([01]+)a/, (_, bits: string) =>
    [...'abcd'].map((letter, i) => bits[i] === '1' ? letter.toUpperCase() : letter).join('') + 'a')
  const ids: string[] = []
  for (let n = 0; n < 12; n++) {
    const account = { email: spelled(n), password: PASSWORD, firstName: 'Win', lastName: 'a prize' }
    ids.push((await post('/auth/register', account)).json().user.id)
  }
  t.equal(await count(sql`SELECT FROM emails WHERE user_id IN ${sql(ids)}`), 5)
  while (server.emails.filter(({ to }) => to[0]!.toLowerCase() === spelled(0)).length < 5) await sleep(20)
  const { raw } = server.emails.find(({ to }) => to[0]!.toLowerCase() === spelled(0))!
  t.notMatch(raw, 'a prize')
  t.equal((await forget(spelled(13))).statusCode, 429)
})

t.test('If an admin changes an email, the new address is verified and the former one informed', async t => {
  const admin = await person(app, 'ADMIN')
  const to = async (id: string, email: string) => {
    await admin.inject('PUT', `/users/${id}`, { email })
    return sql`SELECT template FROM emails WHERE user_id = ${id} ORDER BY template`
  }
  const ada = await person(app, 'STUDENT', { email_verified_at: new Date() })
  const email = newEmail()
  t.strictSame([...await to(ada.id, email)], [{ template: 'email-changed' }, { template: 'email-verification' }])
  t.equal((await verify(await tokenTo(t, email, 'verify-email'))).statusCode, 200)
  while (emailsTo(ada.email).length === 0) await sleep(20)
  t.match(emailsTo(ada.email)[0]!.raw, /^Subject: Your email address at Community was changed\r$/m)
  t.equal((await to(ada.id, email)).length, 2, 'the same email is no change')

  const bob = await person(app)
  t.strictSame([...await to(bob.id, newEmail())], [{ template: 'email-verification' }], 'nobody else is told')
})

const changeEmail = (of: Person, email: string, currentPassword = PASSWORD) =>
  of.inject('POST', '/me/email', { email, currentPassword })
const TAKEN = 'This email address already has an account'

t.test('POST /me/email changes the email by a link to the new address, and tells the verified old one', async t => {
  for (const role of ROLES) {
    const ada = await person(app, role, { password: HASH, email_verified_at: new Date() })
    const email = newEmail()
    assertMessage(t, await changeEmail(ada, email), 202, 'An email is on its way')
    const token = await tokenTo(t, email, 'verify-email')
    const { text, subject } = await mailTo(ada.email)
    t.strictSame((await mailTo(email)).to, [{ name: '', address: email }], 'a stranger gets no name of our choice')
    t.equal(subject, 'Your email address at Community is about to change')
    t.match(text, email)
    t.equal((await ada.inject('GET', '/auth/me')).json().user.email, ada.email, 'not before the link is opened')
    assertMessage(t, await verify(token), 200, 'Email verified successfully')
    const { account } = (await ada.inject('GET', '/me/export')).json()
    t.match(account, { email, emailVerifiedAt: /^\d{4}-/ })
    assertMessage(t, await verify(token), 400, INVALID)
    const [former, present] = await Promise.all([ada.email, email].map(async email =>
      (await post('/auth/login', { email, password: PASSWORD })).statusCode))
    t.strictSame([former, present], [401, 200])
    t.equal((await post('/auth/register', { email: ada.email, password: PASSWORD, ...NAMES })).statusCode, 201)
  }
})

t.test('POST /me/email does not disclose accounts, and does not reserve the address', async t => {
  const [ada, bob] = [await newPerson(), await newPerson()]
  assertMessage(t, await changeEmail(ada, bob.email), 202, 'An email is on its way')
  assertMessage(t, await verify(await tokenTo(t, bob.email, 'verify-email')), 409, TAKEN)
  await changeEmail(ada, inCapitals(bob.email))
  assertMessage(t, await verify(await tokenTo(t, inCapitals(bob.email), 'verify-email')), 409, TAKEN)

  const email = newEmail()
  assertMessage(t, await changeEmail(ada, email), 202, 'An email is on its way')
  const token = await tokenTo(t, email, 'verify-email')
  const signUp = await post('/auth/register', { email, password: PASSWORD, ...NAMES })
  t.equal(signUp.statusCode, 201, 'its owner may sign up in between')
  assertMessage(t, await verify(token), 409, TAKEN)
  t.equal((await ada.inject('GET', '/auth/me')).json().user.email, ada.email)
  t.equal(emailsTo(ada.email).length, 0, 'an address that is not verified is not told')
})

t.test('POST /me/email refuses the own address without an email, and takes it in other letters', async t => {
  const ada = await newPerson()
  const message = 'This is your email address already'
  assertMessage(t, await changeEmail(ada, ada.email), 409, message)
  t.equal(await count(sql`SELECT FROM emails WHERE user_id = ${ada.id}`), 0)
  const email = inCapitals(ada.email)
  t.equal((await changeEmail(ada, email)).statusCode, 202)
  t.equal((await verify(await tokenTo(t, email, 'verify-email'))).statusCode, 200)
  assertMessage(t, await changeEmail(ada, email), 409, message)
})

t.test('Of two accounts that change to one mailbox at once, one gets it', async t => {
  const people = [await newPerson(), await newPerson()]
  const emails = [newEmail()]
  emails.push(inCapitals(emails[0]!))
  for (const [n, each] of people.entries()) await changeEmail(each, emails[n]!)
  const tokens = await Promise.all(emails.map(email => tokenTo(t, email, 'verify-email')))
  const responses = await Promise.all(tokens.map(token => verify(token)))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 409])
})

t.test('A registration that takes the new address during a confirmation wins', async t => {
  const ada = await newPerson()
  const email = newEmail()
  await changeEmail(ada, email)
  const token = await tokenTo(t, email, 'verify-email')
  let confirmed: ReturnType<typeof verify>
  await sql.begin(async transaction => {
    await transaction`
      INSERT INTO users (email, password, first_name, last_name) VALUES (${email}, '!', 'Grace', 'Hopper')
    `
    confirmed = verify(token)
    await untilBlocked(sql)
  })
  assertMessage(t, await confirmed!, 409, 'This email address already has an account')
  t.equal((await ada.inject('GET', '/auth/me')).json().user.email, ada.email)
})

t.test('Of two changes of one account, the later one counts, even if the email of the earlier one is late', async t => {
  const ada = await newPerson()
  const [one, two] = [newEmail(), newEmail()]
  await changeEmail(ada, one)
  const older = await tokenTo(t, one, 'verify-email')
  await changeEmail(ada, two)
  const newer = await tokenTo(t, two, 'verify-email')
  assertMessage(t, await verify(older), 400, INVALID)

  const pending = () => sql`SELECT FROM emails WHERE user_id = ${ada.id} AND status = 'pending'`
  await sql`
    UPDATE emails SET status = 'pending', settled_at = NULL, due_at = now()
    WHERE user_id = ${ada.id} AND data->>'to' = ${one}
  `
  while (await count(pending()) > 0) await sleep(20)
  t.equal(emailsTo(one).length, 1, 'as if a server had refused it for a while')
  assertMessage(t, await verify(newer), 200, 'Email verified successfully')
  t.equal((await ada.inject('GET', '/auth/me')).json().user.email, two)
})

t.test('One link of a change that is used twice at once changes the email once', async t => {
  const ada = await newPerson()
  const email = newEmail()
  await changeEmail(ada, email)
  const token = await tokenTo(t, email, 'verify-email')
  const responses = await Promise.all([verify(token), verify(token)])
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [200, 400])
  t.equal((await ada.inject('GET', '/auth/me')).json().user.email, email)
})

t.test('A new password and a sign-out cancel a change of the email', async t => {
  const ways: ((ada: Person) => unknown)[] = [
    ada => change(ada, PASSWORD), ada => ada.inject('DELETE', '/me/tokens'), ({ email }) => signOut(sql, email),
  ]
  for (const cancel of ways) {
    const ada = await newPerson()
    const email = newEmail()
    await changeEmail(ada, email)
    const token = await tokenTo(t, email, 'verify-email')
    await cancel(ada)
    assertMessage(t, await verify(token), 400, INVALID)

    const claimed = {
      id: randomUUID(),
      template: 'email-change',
      userId: ada.id,
      data: { to: email },
      key: null,
      attempts: 0,
      createdAt: new Date(0),
    }
    const context = { sql, config: app.config, recipient: { email: ada.email, isVerified: false, ...NAMES } }
    t.equal(await templates['email-change'](claimed, context), undefined, 'also one that is still to be sent')
  }
})

t.test('A link that is created during a sign-out does not work', async t => {
  const ada = await newPerson()
  const claimed = {
    id: randomUUID(),
    template: 'email-change',
    userId: ada.id,
    data: { to: newEmail() },
    key: null,
    attempts: 0,
    createdAt: new Date(),
  }
  const recipient = { email: ada.email, isVerified: false, ...NAMES }
  const { composed } = await sql.begin(async tx => {
    await revokeTokens(tx, tx`SELECT id FROM users WHERE id = ${ada.id} FOR NO KEY UPDATE`)
    const composed = templates['email-change'](claimed, { sql, config: app.config, recipient })
    await untilBlocked(sql)
    return { composed }
  })
  t.equal(await composed, undefined)
})

t.test('A mailbox gets five emails with a link, with any tag and case, and if accounts are erased', async t => {
  const name = randomUUID()
  const addresses = ['+a', '+b', '', '+B', '+a+b', '+c'].map(tag => `${name}${tag}@example.org`)
  for (const [n, email] of addresses.entries()) {
    const { statusCode } = await post('/auth/register', { email, password: PASSWORD, ...NAMES })
    t.equal(statusCode, 201)
    if (n < 5) await mailTo(email)
    else t.equal(await count(sql`SELECT FROM emails JOIN users ON users.id = user_id WHERE email = ${email}`), 0)
    await eraseUser(sql, email, {})
  }
  t.equal((await forget(`${name.toUpperCase()}+z@Example.org`)).statusCode, 429)
  t.equal((await forget(`+${name}@example.org`)).statusCode, 202, 'a tag alone is a mailbox')
})

t.test('POST /me/email needs the password, and is limited', async t => {
  const ada = await newPerson()
  for (let n = 0; n < 5; n++) t.equal((await changeEmail(ada, 'one@example.org')).statusCode, 202)
  assertMessage(t, await changeEmail(ada, 'one@example.org'), 429, 'Too many emails, please try again later')
  for (let n = 0; n < 3; n++) {
    assertMessage(t, await changeEmail(ada, newEmail(), 'wrong'), 401, 'Current password is wrong')
  }
  t.equal((await changeEmail(ada, newEmail())).statusCode, 429)
  const unset = await newPerson({ password: PLACEHOLDER })
  assertMessage(t, await changeEmail(unset, newEmail()), 401, 'Current password is wrong')
  const linked = await newPerson({ idp_id: randomUUID() })
  assertMessage(t, await changeEmail(linked, newEmail()), 409, 'Your email address comes from your identity provider')
})

t.test('A network at its limit of emails registers accounts without an email', async t => {
  const from = (subnet: string) => ({ remoteAddress: `2001:db8:3:${subnet}::1` })
  await sql`INSERT INTO rate_limits VALUES ('account-emails', '2001:db8:3::/48', 298, now() + interval '1 minute')`
  const ids: string[] = []
  for (const subnet of ['1', '2', '3', '4']) {
    const response = await post('/auth/register', { email: newEmail(), password: PASSWORD, ...NAMES }, from(subnet))
    t.equal(response.statusCode, 201)
    ids.push(response.json().user.id)
  }
  const emailed = await sql`SELECT user_id AS id FROM emails WHERE user_id IN ${sql(ids)} ORDER BY id`
  t.strictSame(emailed.map(({ id }) => id), ids.slice(0, 2).sort())
  assertMessage(t, await forget(newEmail(), from('5')), 429, 'Too many emails, please try again later')
  t.equal((await forget(newEmail(), { remoteAddress: '2001:db8:4::1' })).statusCode, 202, 'others are not held up')
})

t.test('New passwords of an account are limited before they are looked at', async t => {
  const { email, inject } = await newPerson()
  await forget(email)
  const token = await tokenTo(t, email, 'reset-password')
  const ways = [
    () => inject('PUT', '/me/password', { currentPassword: PASSWORD, newPassword: 'password' }),
    () => reset(token, 'password', { remoteAddress: '127.0.0.1' }),
  ]
  const seen = await Promise.all(Array.from({ length: 30 }, (_, n) => ways[n % 2]!()))
  t.equal(seen.filter(({ statusCode }) => statusCode === 400).length, 20)
  for (const attempt of ways) {
    const response = await attempt()
    assertMessage(t, response, 429, 'Too many new passwords, please try again later')
    t.ok(Number(response.headers['retry-after']) > 0)
  }
  t.equal((await reset(token, NEW, { remoteAddress: '192.0.2.99' })).statusCode, 200, 'elsewhere the link works')
})

t.test('New passwords of a /48 share a turn in the queue', async t => {
  let release!: (hash: string) => void
  const released = new Promise<string>(resolve => { release = resolve })
  t.intercept(argon2, 'hash', { value: () => released })
  const client = { network: '2001:db8:0::/48', isWanted: () => true }
  const flood = Array.from({ length: 310 }, () =>
    app.queues.passwords.run(client, () => hashPassword(PASSWORD)).catch(() => {}))
  const ada = await newPerson()
  await forget(ada.email)
  const token = await tokenTo(t, ada.email, 'reset-password')
  const change = (remoteAddress: string) => app.inject({
    method: 'PUT',
    url: '/me/password',
    payload: { currentPassword: PASSWORD, newPassword: NEW },
    headers: bearer(ada.token),
    remoteAddress,
  })
  t.equal((await change('2001:db8:0:1::1')).statusCode, 503)
  t.equal((await reset(token, NEW, { via: app, remoteAddress: '2001:db8:0:1::1' })).statusCode, 503)
  const other = change('2001:db8:1::1')
  release(HASH)
  await Promise.all(flood)
  t.equal((await other).statusCode, 200)
})

const signInByToken = async (claims: Record<string, unknown>, via = app) =>
  (await post('/auth/google', { idToken: await provider.idToken(claims) }, { via })).json()

t.test('The provider verifies the email address of an account that it creates or links', async t => {
  const [created, { email: linked }] = [newEmail(), await person(app)]
  for (const email of [created, linked]) {
    await signInByToken({ sub: randomUUID(), email })
    t.ok(await provenAt(email))
  }
  await untilQuiet(created, linked)
  t.equal(emailsTo(created).length + emailsTo(linked).length, 0, 'where no password was set, no email')
})

t.test('An account of the provider keeps its own profile at later sign-ins, and a fresh one deletes it', async t => {
  const claims = {
    sub: randomUUID(),
    email: newEmail(),
    given_name: 'Grace',
    family_name: 'Hopper',
    picture: 'https://example.org/a.png',
  }
  const enter = async () => {
    const { token } = await signInByToken(claims)
    const { user } = (await inject(app, 'GET', '/auth/me', undefined, bearer(token))).json()
    return { token, user }
  }
  const { token, user } = await enter()
  t.match(user, { firstName: 'Grace', lastName: 'Hopper', avatar: claims.picture })
  const changes = { firstName: 'Bea', lastName: 'Bell', avatar: null }
  const expected = { ...user, ...changes }
  assertResponse(t, await inject(app, 'PUT', '/me/profile', changes, bearer(token)), 200, { user: expected })
  const later = await enter()
  t.strictSame(later.user, expected)

  const change = { email: newEmail(), currentPassword: PASSWORD }
  assertMessage(t, await inject(app, 'POST', '/me/email', change, bearer(token)), 409,
    'Your email address comes from your identity provider')
  const remove = await inject(app, 'DELETE', '/me', { currentPassword: null }, bearer(later.token))
  assertResponse(t, remove, 200, DELETED)
  const next = await enter()
  t.match(next.user, { firstName: 'Grace', avatar: claims.picture }, 'a new account')
  t.not(next.user.id, user.id)
})

t.test('A password that an account of the provider has also confirms its deletion', async t => {
  const { token } = await newPerson({ idp_id: randomUUID() })
  const remove = (currentPassword: string | null) => inject(app, 'DELETE', '/me', { currentPassword }, bearer(token))
  assertMessage(t, await remove(null), 401, 'Current password is wrong')
  assertResponse(t, await remove(PASSWORD), 200, DELETED)
})

t.test('An account with a foreign email goes to the owner of the email', async t => {
  const email = newEmail()
  const { user: { id }, token } = (await post('/auth/register', { email, password: PASSWORD, ...NAMES })).json()
  await mailTo(email)
  const { calendar } = (await inject(app, 'POST', '/me/calendar', undefined, bearer(token))).json()
  const { token: own } = await signInByToken({ sub: randomUUID(), email })
  t.strictSame([await isSignedIn(token), await isSignedIn(own)], [401, 200])
  t.equal(await signIn(email, PASSWORD), 401)
  t.equal((await inject(app, 'GET', calendar.path)).statusCode, 404)
  t.ok(lines.some(line => line.includes(id) && line.includes('"account":"reclaimed"')))

  t.match(await mailTo(email, 2), { subject: 'Your account at Community' })
  t.equal((await reset(await tokenTo(t, email, 'reset-password', 2))).statusCode, 200)
  t.equal(await signIn(email, NEW), 200)
})

t.test('Without SMTP_URL a password stays when the provider links the account, also in development', async t => {
  const development = await build(t, {
    ...CLIENT,
    IDP_ISSUER: provider.issuer,
    NODE_ENV: 'development',
    FRONTEND_URL: 'https://app.example.org',
    DATA_DIR: t.testdir(),
  })
  for (const via of [development, withoutEmail]) {
    const account = { email: newEmail(), password: PASSWORD }
    const { token } = (await post('/auth/register', { ...account, ...NAMES }, { via })).json()
    t.ok((await signInByToken({ sub: randomUUID(), email: account.email }, via)).token)
    t.equal((await post('/auth/login', account, { via })).statusCode, 200)
    t.equal((await inject(via, 'GET', '/auth/me', undefined, bearer(token))).statusCode, 200)
  }
})

t.test('A password set by email deletes the calendar of an unverified account', async t => {
  for (const [verified, status] of [[null, 404], [new Date(), 200]] as const) {
    const { email, token } = await newPerson({ email_verified_at: verified })
    const { calendar } = (await inject(app, 'POST', '/me/calendar', undefined, bearer(token))).json()
    await forget(email)
    t.equal((await reset(await tokenTo(t, email, 'reset-password'))).statusCode, 200)
    t.equal((await inject(app, 'GET', calendar.path)).statusCode, status)
  }
})

/** Two ways in which the owner of an address takes over an account, each with the status of the request. */
const takeovers: [name: string, prepare: (t: Test, email: string) => Promise<() => Promise<number>>][] = [
  ['a password by an email', async (t, email) => {
    await forget(email)
    const token = await tokenTo(t, email, 'reset-password')
    return async () => (await reset(token)).statusCode
  }],
  ['the provider', async (_t, email) => {
    const idToken = await provider.idToken({ sub: randomUUID(), email })
    return async () => (await post('/auth/google', { idToken })).statusCode
  }],
]

const makeCalendar = (token: string) => inject(app, 'POST', '/me/calendar', undefined, bearer(token))

for (const [name, prepare] of takeovers) {
  const calendarsOf = (id: string) => count(sql`SELECT FROM calendar_tokens WHERE user_id = ${id}`)

  t.test(`A calendar that is being made when ${name} takes over the account ends`, async t => {
    const { id, email, token } = await newPerson()
    const takeOver = await prepare(t, email)
    const responses = await sql.begin(async sql => {
      await sql`SELECT FROM users WHERE id = ${id} FOR UPDATE`
      const calendar = makeCalendar(token)
      await untilBlocked(app.sql)
      const takenOver = takeOver()
      await untilBlocked(app.sql, 2)
      return { calendar, takenOver }
    })
    t.equal(await responses.takenOver, 200)
    await responses.calendar
    t.equal(await calendarsOf(id), 0)
  })

  t.test(`No calendar is made once ${name} takes over the account`, async t => {
    const { id, email, token } = await newPerson()
    t.equal((await makeCalendar(token)).statusCode, 201)
    const takeOver = await prepare(t, email)
    const responses = await sql.begin(async sql => {
      await sql`SELECT FROM calendar_tokens WHERE user_id = ${id} FOR UPDATE`
      const takenOver = takeOver()
      await untilBlocked(app.sql)
      const calendar = makeCalendar(token)
      await untilBlocked(app.sql, 2)
      return { calendar, takenOver }
    })
    t.equal(await responses.takenOver, 200)
    assertMessage(t, await responses.calendar, 401, 'Invalid or expired token')
    t.equal(await calendarsOf(id), 0)
  })
}

t.test('No calendar is made once all tokens are revoked', async t => {
  const { id, token } = await newPerson()
  const responses = await sql.begin(async sql => {
    await sql`SELECT FROM users WHERE id = ${id} FOR UPDATE`
    const ended = inject(app, 'DELETE', '/me/tokens', undefined, bearer(token))
    await untilBlocked(app.sql)
    const calendar = makeCalendar(token)
    await untilBlocked(app.sql, 2)
    return { ended, calendar }
  })
  t.equal((await responses.ended).statusCode, 200)
  assertMessage(t, await responses.calendar, 401, 'Invalid or expired token')
})

t.test('A password of a verified email stays when the account is linked', async t => {
  const { email, token } = await newPerson({ email_verified_at: new Date() })
  await signInByToken({ sub: randomUUID(), email })
  t.strictSame([await signIn(email, PASSWORD), await isSignedIn(token)], [200, 200])
})

t.test('Concurrent sign-ins with the provider link an account once', async t => {
  const { email } = await newPerson()
  const sub = randomUUID()
  const responses = await Promise.all(Array.from({ length: 4 }, () => signInByToken({ sub, email })))
  for (const { token } of responses) t.equal(await isSignedIn(token), 200)
  await untilQuiet(email)
  t.equal(emailsTo(email).length, 1)
})

t.test('Without email or FRONTEND_URL, operations with a link respond with 501, and others work', async t => {
  for (const [via, message] of [
    [withoutEmail, 'Email is not configured'], [withoutFrontend, 'Frontend URL not configured'],
  ] as const) {
    const ada = await newPerson({}, via)
    const [isSignedIn, signIn] = [
      async () => (await inject(via, 'GET', '/auth/me', undefined, bearer(ada.token))).statusCode,
      async () => (await post('/auth/login', { email: ada.email, password: PASSWORD }, { via })).statusCode,
    ]
    assertMessage(t, await forget(ada.email, { via }), 501, message)
    assertMessage(t, await inject(via, 'POST', '/me/email/verification', undefined, bearer(ada.token)), 501, message)
    const another = { email: newEmail(), currentPassword: PASSWORD }
    assertMessage(t, await inject(via, 'POST', '/me/email', another, bearer(ada.token)), 501, message)
    for (const path of ['/account/password/forgot', '/me/email/verification', '/me/email']) {
      assertMessage(t, await inject(via, 'POST', path, {}), 501, message)
    }

    await signInByToken({ sub: randomUUID(), email: ada.email }, via)
    t.strictSame([await signIn(), await isSignedIn()], [200, 200], 'the password stays')
    const email = newEmail()
    const { user } = (await post('/auth/register', { email, password: PASSWORD, ...NAMES }, { via })).json()
    t.equal(await count(via.sql`SELECT FROM emails WHERE user_id IN (${ada.id}, ${user.id})`), 0)
    const response = await inject(via, 'PUT', '/me/password', {
      currentPassword: PASSWORD, newPassword: NEW,
    }, bearer(ada.token))
    t.equal(response.statusCode, 200)
  }
})

t.test('A link is not written where FRONTEND_URL is not set', async t => {
  const { id, email } = await newPerson({}, withoutFrontend)
  const recipient = { email, isVerified: false, ...NAMES }
  const claimed = {
    id: randomUUID(), template: 'password-reset', userId: id, data: {}, key: null, attempts: 0, createdAt: new Date(),
  }
  const { config, sql } = withoutFrontend
  await t.rejects(templates['password-reset'](claimed, { sql, config, recipient }),
    { message: 'FRONTEND_URL is not set' })
})

t.test('A deleted user gets no link', async t => {
  const ada = await newPerson()
  await sql`DELETE FROM users WHERE id = ${ada.id}`
  assertMessage(t, await ada.inject('POST', '/me/email/verification'), 401, 'Unauthorized')
  assertMessage(t, await changeEmail(ada, newEmail()), 401, 'Unauthorized')
})

t.test('An erasure deletes tokens and limits of the email', async t => {
  const ada: Person = await newPerson()
  await forget(ada.email)
  await mailTo(ada.email)
  await eraseUser(sql, ada.email, {})
  t.equal(await count(sql`SELECT FROM account_tokens WHERE user_id = ${ada.id}`), 0)
  t.equal(await count(sql`SELECT FROM rate_limits WHERE key LIKE ${`${ada.email}%`}`), 0)
})

t.test('An erasure keeps the failed sign-ins of an address that differs in case', async t => {
  const ada: Person = await newPerson()
  const email = ada.email.toUpperCase()
  await inject(app, 'POST', '/auth/login', { email: ada.email, password: 'wrong' })
  await inject(app, 'POST', '/auth/register', { email, password: 'battery staple', firstName: 'A', lastName: 'L' })
  await eraseUser(sql, email, {})
  t.equal(await count(sql`SELECT FROM rate_limits WHERE key LIKE ${`${ada.email} %`}`), 1)
})

t.test('Changes are logged, without email and token', async t => {
  const events = lines.map(line => JSON.parse(line)).filter(({ event }) => event)
  const of = (name: string) => events.find(({ event }) => event === name)
  t.match(of('password-forgotten'), { user: String, network: String })
  t.match(of('password-changed'), { user: String, by: 'email' })
  t.match(of('email-verified'), { user: String })
  t.match(of('password-refused'), { actor: String })
  t.notMatch(JSON.stringify(events), /@example\.org|#token/)
  assertResponse(t, await verify(''), 400, { message: INVALID })
})

t.test('DELETE /account/:id erases an account with posts and registrations, except the last admin', async t => {
  const [admin, author] = [await person(app, 'ADMIN'), await person(app)]
  const [draft, post] = [
    await insert(app, 'blogs', { author_id: author.id }),
    await insert(app, 'blogs', { author_id: author.id, status: 'PUBLISHED' }),
  ]
  const event = await insert(app, 'events', { club_id: await insert(app, 'clubs') })
  await author.inject('POST', `/events/${event}/register`)
  assertMessage(t, await admin.inject('DELETE', `/users/${author.id}`), 500, 'Error deleting user')
  const response = await admin.inject('DELETE', `/account/${author.id}`)
  assertResponse(t, response, 200, {
    message: 'Account erased successfully', kept: { publishedBlogs: 1, pictures: 0 },
  })
  assertMessage(t, await author.inject('GET', '/auth/me'), 401, 'Invalid or expired token')
  t.equal((await admin.inject('GET', `/blogs/${draft}`)).statusCode, 404)
  t.match((await inject(app, 'GET', `/blogs/${post}`)).json(), { blog: { author: { firstName: 'Former' } } })
  await app.sql`UPDATE users SET role = 'STUDENT' WHERE role = 'ADMIN' AND id <> ${admin.id}`
  const last = await admin.inject('DELETE', `/account/${admin.id}`)
  assertMessage(t, last, 409, 'You are the last admin. Please make another user an admin first')
})

t.test('An erased admin can do nothing any more, and two admins cannot erase each other', async t => {
  const [admin, other] = [await person(app, 'ADMIN'), await person(app, 'ADMIN')]
  await app.sql`UPDATE users SET role = 'STUDENT' WHERE role = 'ADMIN' AND id NOT IN ${app.sql([admin.id, other.id])}`
  const responses = await Promise.all([
    admin.inject('DELETE', `/account/${other.id}`), other.inject('DELETE', `/account/${admin.id}`),
  ])
  t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 1)
  const [{ count }] = await app.sql<[{ count: number }]>`SELECT count(*)::int FROM users WHERE role = 'ADMIN'`
  t.equal(count, 1)
  const erased = responses[0]!.statusCode === 200 ? other : admin
  assertMessage(t, await erased.inject('GET', '/users'), 401, 'Invalid or expired token')
})

t.test('GET /me/account tells the state of the account', async t => {
  const { token, id } = await newPerson()
  const state = async () => (await inject(app, 'GET', '/me/account', undefined, bearer(token))).json().account
  const expected = { isEmailVerified: false, hasPassword: true, isLinked: false, calendar: null }
  t.strictSame(await state(), expected)
  const { calendar: { createdAt } } = (await inject(app, 'POST', '/me/calendar', undefined, bearer(token))).json()
  await app.sql`UPDATE users SET email_verified_at = now(), idp_id = ${randomUUID()} WHERE id = ${id}`
  t.strictSame(await state(), { ...expected, isEmailVerified: true, isLinked: true, calendar: { createdAt } })
})
