import { randomUUID } from 'node:crypto'
import diagnostics from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'

import { exportSPKI, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'

import { createLogger } from '#lib/logger.js'
import { decodeState, encodeState } from '#lib/oauth-state.js'
import { build, createDatabase, inject, person } from '../helper.ts'
import {
  type Account, CLIENT, fails, hangsUp, html, never, newAccount, newKey, startFakeProvider, startProvider,
} from '../provider.ts'

const [FIRST, SECOND] = ['https://app.example.org', 'http://second.example.org:8080']
const FRONTEND_URL = `${FIRST},${SECOND}`

/** Every line that the services of this file log, and what must be in none of them. */
let log = ''
const secrets = new Set<string>([CLIENT.IDP_CLIENT_SECRET, encodeURIComponent(CLIENT.IDP_CLIENT_SECRET)])

const DATABASE_URL = await createDatabase(t)

/** The service with this provider and two frontends. */
const service = (t: Test, variables: NodeJS.Dict<string> = {}) =>
  build(t, { DATABASE_URL, FRONTEND_URL, ...CLIENT, ...variables },
    createLogger('trace', { write (line) { log += line } }))

type Service = Awaited<ReturnType<typeof build>>

const provider = await startProvider(t)
const app = await service(t, { IDP_ISSUER: provider.issuer })

const fake = await startFakeProvider(t)
const fakeApp = await service(t, { IDP_ISSUER: fake.issuer })

/** A person whom the provider knows. */
function add (claims: Partial<Account> = {}) {
  const account = newAccount(claims)
  provider.accounts.push(account)
  return account
}

/** Answers of the fake provider while a test runs. */
function answering (t: Test, answers: typeof fake.answers) {
  const before = { ...fake.answers }
  Object.assign(fake.answers, answers)
  t.teardown(() => Object.assign(fake.answers, before))
}

/** Notes what must not be in the log; short texts of the tests may well be there by accident. */
function keepSecret (...texts: (string | null | undefined)[]) {
  for (const text of texts) if (text && text.length > 9) secrets.add(text)
}

function postToken (idToken: unknown, to: Service = app) {
  if (typeof idToken === 'string') keepSecret(...idToken.split('.'))
  return inject(to, 'POST', '/auth/google', { idToken })
}

async function start (query = '', headers: Record<string, string> = {}, to: Service = app) {
  const response = await inject(to, 'GET', `/auth/google/start${query}`, undefined, headers)
  const location = new URL(response.headers.location ?? 'none:')
  const state = location.searchParams.get('state') ?? ''
  const cookie = String(response.headers['set-cookie'])
  if (state) keepSecret(state, decodeState(state).n)
  return { response, location, state, cookie }
}

/** Comes back from the provider. */
async function callback (query: Record<string, string> | string, cookie?: string, to: Service = app) {
  const search = new URLSearchParams(query)
  const headers = cookie === undefined ? {} : { cookie: `oauth_state_nonce=${cookie}` }
  keepSecret(search.get('code'), search.get('state'), cookie)
  const response = await inject(to, 'GET', `/auth/google/callback?${search}`, undefined, headers as { cookie: string })
  const location = response.headers.location ? new URL(response.headers.location) : undefined
  const token = location?.searchParams.get('token')
  keepSecret(token)
  return { response, location, token }
}

/** A sign-in through the browser, all the way: what the provider sends it back with, and what it gets for that. */
async function signIn (account: Account, query = '', headers: Record<string, string> = {}) {
  const { location, cookie } = await start(query, headers)
  const back = await provider.signIn(location, account)
  return callback(back.search.slice(1), cookie.split(/[=;]/)[1])
}

/** Comes back to the service of the fake provider, which takes any code, with this state. */
const forged = (state: object, nonce = 'nonce') =>
  callback({ code: 'a code of the tests', state: encodeState(state as { n: string, r: string }) }, nonce, fakeApp)

const stored = async (email: unknown, of: Service = app) =>
  (await of.sql`SELECT * FROM users WHERE email = ${String(email)}`)[0]!

const count = async (email: unknown, of: Service = app) =>
  (await of.sql`SELECT id FROM users WHERE email = ${String(email)}`).length

async function me (token: string, of: Service = app) {
  const response = await inject(of, 'GET', '/auth/me', undefined, { authorization: `Bearer ${token}` })
  return response.json().user
}

/** Both ways to sign in with the provider; they end with an application token. */
const WAYS: Record<string, (account: Account) => Promise<string>> = {
  'POST /auth/google': async account => (await postToken(await provider.idToken(account))).json().token,
  'GET /auth/google/callback': async account => (await signIn(account)).token!,
}

for (const [way, signIn] of Object.entries(WAYS)) {
  t.test(`${way} creates an account: STUDENT, with names and picture, without a password`, async t => {
    const account = add()
    const token = await signIn(account)
    const { id, created_at: created, updated_at: updated, ...row } = await stored(account.email)
    t.strictSame(row, {
      email: account.email,
      password: '!',
      idp_id: account.sub,
      avatar: account.picture,
      first_name: account.given_name,
      last_name: account.family_name,
      role: 'STUDENT',
      club_id: null,
    })
    t.strictSame(created, updated)
    t.strictSame(await me(token), {
      id,
      firstName: account.given_name,
      lastName: account.family_name,
      email: account.email,
      avatar: account.picture,
      role: 'STUDENT',
      club: null,
    })
    t.match(app.jwt.verify(token), { sub: id, role: 'STUDENT' })
    for (const password of ['!', account.password]) {
      const response = await inject(app, 'POST', '/auth/login', { email: account.email, password })
      t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid credentials' }])
    }
  })

  t.test(`${way} creates an account of what the provider tells`, async t => {
    const account = add({ given_name: undefined!, family_name: undefined!, picture: undefined! })
    await signIn(account)
    t.match(await stored(account.email),
      { first_name: account.email!.split('@')[0], last_name: '', avatar: null, idp_id: account.sub })
  })

  t.test(`${way} links an account without idpId, which takes the picture if it has none`, async t => {
    for (const avatar of [null, 'https://example.org/own.png']) {
      const account = add()
      const { id } = await person(app, 'CLUB_HEAD', { email: account.email, avatar, first_name: 'Grace' })
      const before = await stored(account.email)
      t.match(app.jwt.verify(await signIn(account)), { sub: id, role: 'CLUB_HEAD' })
      const { updated_at: updated, ...row } = await stored(account.email)
      t.strictSame({ ...row, updated_at: before.updated_at },
        { ...before, idp_id: account.sub, avatar: avatar ?? account.picture })
      t.ok(updated > before.updated_at)
    }
  })

  t.test(`${way} leaves a linked account as it is`, async t => {
    for (const fields of [{}, { avatar: 'https://example.org/own.png' }]) {
      const account = add()
      const { id, role } = await person(app, 'ADMIN', { email: account.email, idp_id: 'another', ...fields })
      const before = await stored(account.email)
      for (const time of ['first', 'second']) {
        t.match(app.jwt.verify(await signIn(account)), { sub: id, role }, time)
        t.strictSame(await stored(account.email), before, 'updated_at included')
      }
    }
  })

  t.test(`${way} signs in again to the account that it made`, async t => {
    const account = add()
    const first = await signIn(account)
    const before = await stored(account.email)
    Object.assign(account, { given_name: 'Grace', picture: 'https://example.org/new.png', sub: randomUUID() })
    t.equal((await me(await signIn(account))).id, (await me(first)).id)
    t.strictSame(await stored(account.email), before)
  })

  t.test(`${way}: first sign-ins of one person in parallel make one account`, async t => {
    const account = add()
    const tokens = await Promise.all(Array.from({ length: 6 }, () => signIn(account)))
    const { id } = await stored(account.email)
    for (const token of tokens) t.match(app.jwt.verify(token), { sub: id, role: 'STUDENT' })
    t.equal(await count(account.email), 1)
  })

  t.test(`${way} finds the account that another sign-in makes at the same time`, async t => {
    const account = add()
    const waits = async () => (await app.sql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `).length > 0
    const { token, id } = await app.sql.begin(async sql => {
      const [row] = await sql`
        INSERT INTO users (email, password, first_name, last_name, idp_id, role)
        VALUES (${account.email!}, '!', 'Ada', 'Lovelace', 'another', 'ADMIN') RETURNING id
      `
      const token = signIn(account)
      while (!await waits()) await sleep(10)
      return { token: [token], id: row!.id }
    })
    t.match(app.jwt.verify(await token[0]!), { sub: id, role: 'ADMIN' })
    t.match(await stored(account.email), { idp_id: 'another' })
  })
}

t.test('POST /auth/google answers 200 with the account and a token, as POST /auth/login does', async t => {
  const account = add()
  const response = await postToken(await provider.idToken(account))
  const { user, token, ...others } = response.json()
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(others, {})
  t.strictSame(user, { userId: (await stored(account.email)).id, email: account.email, role: 'STUDENT' })
  t.type(token, 'string')
  t.equal(response.headers['set-cookie'], undefined, 'no application cookie')
})

t.test('POST /auth/google uses the email as the provider has it', async t => {
  const account = add({ email: `Ada.${randomUUID()}@Example.ORG` })
  await person(app, 'ADMIN', { email: account.email!.toLowerCase() })
  t.strictSame((await postToken(await provider.idToken(account))).json().user.role, 'STUDENT')
})

t.test('POST /auth/google answers 400 without an idToken; what is no object counts as {}', async t => {
  for (const body of ['{}', '[]', 'null', '"text"', '7', 'true', '[{"idToken":"x"}]', '{"token":"x"}', '',
    ...['""', 'null', '0', 'false'].map(idToken => `{"idToken":${idToken}}`)]) {
    const response = await inject(app, 'POST', '/auth/google', body, { 'content-type': 'application/json' })
    t.strictSame([response.statusCode, response.json()], [400, { message: 'idToken is required' }], body)
  }
  const response = await inject(app, 'POST', '/auth/google')
  t.strictSame([response.statusCode, response.json()], [400, { message: 'idToken is required' }], 'no body')
})

t.test('POST /auth/google answers 401 for an idToken that is no text', async t => {
  for (const idToken of [1, true, {}, [], ['x'], { toString: 1 }]) {
    const response = await postToken(idToken)
    t.strictSame([response.statusCode, response.json()], [401, { message: 'IdP login failed' }])
  }
})

t.test('POST /auth/google answers 401 for a token without a verified email', async t => {
  for (const claims of [{ email: undefined! }, { email: '' }, { email_verified: false }]) {
    const account = add(claims)
    const response = await postToken(await provider.idToken(account))
    t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid IdP token' }])
    t.equal(await count(account.email), 0)
  }
  const account = add({ email_verified: false })
  await person(app, 'ADMIN', { email: account.email })
  const response = await postToken(await provider.idToken(account))
  t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid IdP token' }])
  t.match(await stored(account.email), { idp_id: null }, 'nobody takes over an account by an unverified email')
})

/** All but `true` and `"true"`. */
const UNVERIFIED = [undefined, null, false, 'false', 'False', 0, '0', 'no', '', [], {}]

t.test('An email that the provider does not vouch for takes over no account, whatever the claim is', async t => {
  const { id, email } = await person(fakeApp, 'ADMIN')
  for (const claim of UNVERIFIED) {
    const what = `email_verified: ${JSON.stringify(claim)}`
    const claims = { sub: 'a stranger', email, email_verified: claim }
    const response = await postToken(await fake.idToken(claims), fakeApp)
    t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid IdP token' }], what)
    answering(t, { '/userinfo': claims })
    plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'No email in profile', what)
  }
  t.match(await stored(email, fakeApp), { id, idp_id: null })
})

t.test('IDP_EMAIL_VERIFIED=assume is for a provider that never sends the claim', async t => {
  const assuming = await service(t, { IDP_ISSUER: fake.issuer, IDP_EMAIL_VERIFIED: 'assume' })
  const { id, email } = await person(assuming, 'CLUB_HEAD')
  for (const claim of UNVERIFIED.slice(1)) {
    const response = await postToken(await fake.idToken({ sub: 'a stranger', email, email_verified: claim }), assuming)
    t.equal(response.statusCode, 401, `email_verified: ${JSON.stringify(claim)}`)
  }
  const response = await postToken(await fake.idToken({ sub: 'the owner', email, email_verified: undefined }), assuming)
  t.equal(response.statusCode, 200)
  t.match(response.json(), { user: { userId: id, role: 'CLUB_HEAD' } })
  t.match(await stored(email), { idp_id: 'the owner' })
})

t.test('POST /auth/google answers 401 for a token that does not verify', async t => {
  const now = Math.floor(Date.now() / 1000)
  const other = await newKey('RS256', 'one')
  const publicKey = new TextEncoder().encode(await exportSPKI(fake.rsa.publicKey))
  const good = await fake.idToken()
  const tokens: Record<string, string> = {
    'no token': 'text',
    'another audience': await fake.idToken({ aud: 'another' }),
    'another issuer': await fake.idToken({ iss: 'https://accounts.google.com' }),
    'another key': await fake.idToken({}, {}, other.key),
    'an unknown key': await fake.idToken({}, { kid: 'two' }, other.key),
    expired: await fake.idToken({ exp: now - 90 }),
    'not valid yet': await fake.idToken({ nbf: now + 90 }),
    none: new UnsecuredJWT({ ...fake.claims }).encode(),
    'HS256 by the public key': await fake.idToken({}, { alg: 'HS256' }, publicKey),
    'a changed signature': good.replace(/\.[^.]{8}([^.]*)$/, '.AAAAAAAA$1'),
    'an application token': (await person(fakeApp, 'ADMIN')).token,
    'a token of another provider': await provider.idToken(add()),
  }
  for (const [what, token] of Object.entries(tokens)) {
    const response = await postToken(token, fakeApp)
    t.strictSame([response.statusCode, response.json()], [401, { message: 'IdP login failed' }], what)
  }
  t.equal(await count(fake.claims.email, fakeApp), 0)
  t.equal((await postToken(good, fakeApp)).statusCode, 200, 'the good one is good')
})

t.test('POST /auth/google answers 401 when the provider, the database or the signing fails', async t => {
  const failed = [401, { message: 'IdP login failed' }]
  const down = await startFakeProvider(t)
  const app = await service(t, { IDP_ISSUER: down.issuer })
  const idToken = await down.idToken({ sub: 'subject' })

  down.answers['/keys'] = html
  const response = await postToken(idToken, app)
  t.strictSame([response.statusCode, response.json()], failed, 'keys')

  Object.assign(down.answers, { '/keys': { keys: [down.rsa.jwk] } })
  const nul = await postToken(await down.idToken({ email: 'nul\u0000@example.org' }), app)
  t.strictSame([nul.statusCode, nul.json()], failed, 'what PostgreSQL cannot store')

  const { issueToken } = app
  Object.assign(app, { issueToken () { throw new Error('no key') } })
  const unsigned = await postToken(idToken, app)
  t.strictSame([unsigned.statusCode, unsigned.json()], failed, 'signing')
  Object.assign(app, { issueToken })

  await app.sql.end({ timeout: 0 })
  const stored = await postToken(idToken, app)
  t.strictSame([stored.statusCode, stored.json()], failed, 'database')
})

t.test('POST /auth/google answers 500 without a client id; the other variables are not needed', async t => {
  const bare = await service(t, { IDP_ISSUER: provider.issuer, IDP_CLIENT_ID: '' })
  t.equal((await inject(bare, 'POST', '/auth/google', {})).statusCode, 400, 'after the check of the body')
  const response = await postToken('text', bare)
  const { details, ...body } = response.json()
  t.equal(response.statusCode, 500)
  t.strictSame(body, { message: 'IdP client not configured', missingVariable: 'IDP_CLIENT_ID' })
  t.match(details, /^Set IDP_CLIENT_ID\b/)

  const small = await service(t, { IDP_ISSUER: provider.issuer, IDP_CLIENT_SECRET: '', IDP_REDIRECT_URI: '' })
  t.equal((await postToken(await provider.idToken(add()), small)).statusCode, 200)
})

t.test('GET /auth/google/start sends to the provider, with all that the authorization request carries', async t => {
  const { response, location, state } = await start('?redirect=/events%3Fpage=2')
  t.equal(response.statusCode, 302)
  t.equal(response.body, '')
  t.equal(location.origin + location.pathname, `${provider.issuer}/auth`)
  t.strictSame(Object.fromEntries(location.searchParams), {
    response_type: 'code',
    client_id: CLIENT.IDP_CLIENT_ID,
    redirect_uri: CLIENT.IDP_REDIRECT_URI,
    scope: 'openid email profile',
    state,
    access_type: 'offline',
    prompt: 'consent',
    include_granted_scopes: 'true',
  })
  t.equal([...location.searchParams].length, 8, 'each once')
})

t.test('GET /auth/google/start makes a state of nonce, destination and frontend', async t => {
  const { state } = await start('?redirect=/events')
  t.match(state, /^[\w-]+$/, 'base64url')
  const { n, ...others } = JSON.parse(Buffer.from(state, 'base64url').toString())
  t.match(n, /^[\w-]{22}$/)
  t.strictSame(others, { r: '/events', o: FIRST })
  t.not(decodeState((await start('?redirect=/events')).state).n, n, 'a nonce is never used twice')
})

t.test('GET /auth/google/start uses redirect only if it is a string', async t => {
  const table: [query: string, destination: string][] = [
    ['', '/'],
    ['?redirect=/a', '/a'],
    ['?redirect=', ''],
    ['?redirect=/a&redirect=/b', '/'],
    ['?redirect[]=/a', '/'],
    ['?Redirect=/a', '/'],
    ['?redirect=/%C3%A9%20%26%3F%23+x', '/é &?# x'],
    ['?redirect=https://evil.example/', 'https://evil.example/'],
    ['?redirect=%F0%9F%98%80', '😀'],
  ]
  for (const [query, destination] of table) t.equal(decodeState((await start(query)).state).r, destination, query)
})

t.test('GET /auth/google/start chooses the frontend by the host name of Origin, else of Referer', async t => {
  const table: [headers: Record<string, string>, frontend: string][] = [
    [{}, FIRST],
    [{ origin: SECOND }, SECOND],
    [{ referer: `${SECOND}/login?x=1` }, SECOND],
    [{ referer: 'https://second.example.org/' }, SECOND],
    [{ origin: FIRST, referer: `${SECOND}/` }, FIRST],
    [{ origin: 'null', referer: `${SECOND}/` }, SECOND],
    [{ origin: 'https://evil.example', referer: `${SECOND}/` }, SECOND],
    [{ origin: 'https://evil.example' }, FIRST],
    [{ referer: 'https://second.example.org.evil.example/' }, FIRST],
    [{ referer: 'https://second.example.org@evil.example/' }, FIRST],
    [{ host: 'second.example.org' }, FIRST],
  ]
  for (const [headers, frontend] of table) {
    t.equal(decodeState((await start('', headers)).state).o, frontend, JSON.stringify(headers))
  }
})

t.test('GET /auth/google/start sets the nonce as a cookie, Secure only in production', async t => {
  const { state, cookie } = await start()
  t.equal(cookie, `oauth_state_nonce=${decodeState(state).n}; Max-Age=600; Path=/; SameSite=Lax`)

  const production = await service(t, { IDP_ISSUER: provider.issuer, NODE_ENV: 'production' })
  const other = await start('', {}, production)
  t.equal(other.cookie, `oauth_state_nonce=${decodeState(other.state).n}; Max-Age=600; Path=/; Secure; SameSite=Lax`)
})

t.test('GET /auth/google/start answers 500 with the variables that are missing', async t => {
  const table = [
    ['IDP_CLIENT_ID'],
    ['IDP_CLIENT_SECRET'],
    ['IDP_REDIRECT_URI'],
    ['IDP_CLIENT_ID', 'IDP_REDIRECT_URI'],
    ['IDP_CLIENT_ID', 'IDP_CLIENT_SECRET', 'IDP_REDIRECT_URI'],
  ]
  for (const missingVariables of table) {
    const app = await service(t, Object.fromEntries(missingVariables.map(name => [name, ''])))
    const { response } = await start('', {}, app)
    const { details, ...body } = response.json()
    t.equal(response.statusCode, 500)
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    t.strictSame(body, { message: 'IdP OAuth not configured', missingVariables })
    t.match(details, `Set ${missingVariables.join(', ')} `)
    t.equal(response.headers['set-cookie'], undefined)
  }
})

t.test('GET /auth/google/start and …/callback answer 500 while discovery fails, and only so long', async t => {
  const fake = await startFakeProvider(t)
  const app = await service(t, { IDP_ISSUER: fake.issuer })
  t.strictSame(fake.requests, [], 'nothing is asked at boot')
  const path = '/.well-known/openid-configuration'
  const state = encodeState({ n: 'nonce', r: '/' })
  for (const answer of [html, fails, hangsUp, never, { ...fake.metadata, issuer: 'https://evil.example' }]) {
    fake.answers[path] = answer
    const [{ response }, back] = await Promise.all([
      start('', {}, app), callback({ code: 'a code of the tests', state }, 'nonce', app),
    ])
    t.strictSame([response.statusCode, response.json()], [500, { message: 'Failed to start IdP OAuth' }])
    t.equal(response.headers['set-cookie'], undefined)
    plain(t, back, 500, 'OAuth callback failed')
  }
  fake.answers[path] = fake.metadata
  t.equal((await start('', {}, app)).response.statusCode, 302)
  t.equal((await callback({ code: 'a code of the tests', state }, 'nonce', app)).response.statusCode, 302)
})

t.test('GET /auth/google/start sends to Google by default, which needs no request to it', async t => {
  const requests: unknown[] = []
  for (const channel of ['undici:request:create', 'http.client.request.start']) {
    const note = (message: unknown) => { requests.push(message) }
    diagnostics.subscribe(channel, note)
    t.teardown(() => diagnostics.unsubscribe(channel, note))
  }
  const app = await service(t)
  const { response, location } = await start('', {}, app)
  t.equal(response.statusCode, 302)
  t.equal(location.origin + location.pathname, 'https://accounts.google.com/o/oauth2/v2/auth')
  t.strictSame(requests, [])
  await fetch(`${fake.issuer}/keys`)
  t.equal(requests.length, 1, 'a request would have been noticed')
})

t.test('GET /auth/google/callback sends to the frontend with token and destination', async t => {
  const account = add()
  const { response, token } = await signIn(account, '?redirect=/events%3Fpage=2%26x=%C3%A9%23top')
  t.equal(response.statusCode, 302)
  t.equal(response.headers.location, `${FIRST}/auth/callback?token=${encodeURIComponent(token!)}` +
    '&to=%2Fevents%3Fpage%3D2%26x%3D%C3%A9%23top')
  t.equal(response.body, '')
  t.equal(response.headers['set-cookie'], undefined, 'no application cookie, and the nonce is not cleared')
  t.equal((await me(token!)).email, account.email)
})

t.test('GET /auth/google/callback returns to the frontend that the sign-in began at', async t => {
  const { location, token } = await signIn(add(), '', { referer: `${SECOND}/login` })
  t.equal(location!.href, `${SECOND}/auth/callback?token=${token}&to=%2F`)
})

t.test('GET /auth/google/callback sends a token to no origin but the configured ones', async t => {
  const tricks = [
    undefined, null, 7, '', [], [SECOND], { toString: 'x' },
    'https://evil.example',
    'https://app.example.org.evil.example',
    'https://evil-app.example.org',
    'https://app.example.org@evil.example',
    'https://app.example.org:8443',
    'https://app.example.org:443',
    'http://app.example.org',
    'https://app.example.org/',
    'https://app.example.org/elsewhere',
    'https://app.example.org?x=',
    'https://app.example.org#',
    'https://APP.example.org',
    ' https://app.example.org',
    'https://app.example.or',
    'http://second.example.org',
    'http://second.example.org:80801',
    'http://user@second.example.org:8080',
    FRONTEND_URL,
    '//app.example.org',
    'javascript:alert(1)//',
  ]
  for (const o of tricks) {
    const { location, token } = await forged({ n: 'nonce', r: '/a', o })
    t.equal(location!.href, `${FIRST}/auth/callback?token=${token}&to=%2Fa`, JSON.stringify(o))
  }
  const { location } = await forged({ n: 'nonce', r: '/a', o: SECOND })
  t.equal(location!.origin, SECOND, 'a configured one')
})

t.test('GET /auth/google/callback passes the destination on as it is, and can be led nowhere by it', async t => {
  for (const r of ['', '/', '//evil.example', 'https://evil.example/', '/a&token=x#y', '\r\nset-cookie: x=y', '😀']) {
    const { response, location } = await forged({ n: 'nonce', r, o: FIRST })
    t.equal(location!.origin + location!.pathname, `${FIRST}/auth/callback`)
    t.strictSame([...location!.searchParams.keys()], ['token', 'to'])
    t.equal(location!.searchParams.get('to'), r)
    t.equal(response.headers['set-cookie'], undefined)
  }
  const { location } = await forged({ n: 'nonce' })
  t.equal(location!.searchParams.get('to'), '/', 'the default')
})

/** Checks that this is an error for a person in a browser: plain text. */
function plain (
  t: Test, { response }: Awaited<ReturnType<typeof callback>>, status: number, text: string, what = text
) {
  t.strictSame([response.statusCode, response.headers['content-type'], response.body],
    [status, 'text/plain; charset=utf-8', text], what)
  t.equal(response.headers.location, undefined)
  t.equal(response.headers['set-cookie'], undefined)
}

t.test('GET /auth/google/callback answers 400 without code or state', async t => {
  const state = encodeState({ n: 'nonce', r: '/' })
  for (const query of ['', 'code=x', `state=${state}`, `code=&state=${state}`, 'code=x&state=',
    `code=x&code=y&state=${state}`, `code=x&state=${state}&state=${state}`, `error=access_denied&state=${state}`]) {
    plain(t, await callback(query, 'nonce', fakeApp), 400, 'Missing code/state', query)
  }
})

t.test('GET /auth/google/callback answers 400 for a state that the cookie does not know', async t => {
  const table: [what: string, state: unknown, cookie?: string][] = [
    ['no cookie', { n: 'nonce', r: '/' }],
    ['another cookie', { n: 'nonce', r: '/' }, 'another'],
    ['a longer cookie', { n: 'nonce', r: '/' }, 'nonce2'],
    ['an empty cookie', { n: '', r: '/' }, ''],
    ['no nonce', { r: '/' }, 'undefined'],
    ['no nonce, no cookie', { r: '/' }],
    ['a nonce that is null', { n: null, r: '/' }, 'null'],
    ['a nonce that is a number', { n: 7, r: '/' }, '7'],
    ['a nonce that is a list', { n: ['nonce'], r: '/' }, 'nonce'],
    ['null', null, 'nonce'],
    ['a text', 'nonce', 'nonce'],
    ['a list', ['nonce'], 'nonce'],
  ]
  const before = fake.requests.length
  for (const [what, state, cookie] of table) {
    plain(t, await callback({ code: 'code', state: encodeState(state as { n: string, r: string }) }, cookie, fakeApp),
      400, 'Invalid state', what)
  }
  t.equal(fake.requests.length, before, 'no code is exchanged')
})

t.test('GET /auth/google/callback answers 500 for a state that is no JSON', async t => {
  for (const state of ['text', '%00', '{}', 'eyJuIjoi', '....']) {
    plain(t, await callback({ code: 'code', state }, 'nonce', fakeApp), 500, 'OAuth callback failed', state)
  }
})

t.test('GET /auth/google/callback answers 500 without a frontend, before it exchanges the code', async t => {
  const app = await service(t, { IDP_ISSUER: fake.issuer, FRONTEND_URL: '' })
  const before = fake.requests.length
  const state = encodeState({ n: 'nonce', r: '/', o: 'https://app.example.org' })
  plain(t, await callback({ code: 'code', state }, 'nonce', app), 500, 'Frontend URL not configured')
  t.equal(fake.requests.length, before)
  t.strictSame(Object.keys(decodeState((await start('', { origin: FIRST }, app)).state)), ['n', 'r'])
})

t.test('GET /auth/google/callback answers 500 for a code that the provider does not exchange', async t => {
  const nonce = 'nonce'
  const state = encodeState({ n: nonce, r: '/', o: FIRST })
  plain(t, await callback({ code: 'unknown', state }, nonce), 500, 'OAuth callback failed', 'an unknown code')

  const { location, cookie } = await start()
  const back = await provider.signIn(location, add())
  const once = () => callback(back.search.slice(1), cookie.split(/[=;]/)[1])
  t.equal((await once()).response.statusCode, 302)
  plain(t, await once(), 500, 'OAuth callback failed', 'a code for the second time')

  for (const answer of [html, fails, hangsUp, null]) {
    answering(t, { '/token': answer })
    plain(t, await forged({ n: nonce, r: '/' }), 500, 'OAuth callback failed')
  }
})

t.test('GET /auth/google/callback answers 401 without an access token', async t => {
  for (const answer of [{}, { access_token: '' }, { access_token: null }, { error: 'server_error' }]) {
    answering(t, { '/token': answer })
    plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'No access token', JSON.stringify(answer))
  }
})

t.test('GET /auth/google/callback answers 401 without a profile', async t => {
  for (const answer of [html, fails, hangsUp, null, {}, { email: 'ada@example.org' }]) {
    answering(t, { '/userinfo': answer })
    plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'Failed to fetch userinfo')
  }
  answering(t, { '/token': { access_token: 'a\ntoken' } })
  plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'Failed to fetch userinfo', 'a token that cannot be sent')
})

t.test('GET /auth/google/callback answers 401 without a verified email', async t => {
  for (const claims of [{ email: undefined! }, { email: '' }, { email_verified: false }]) {
    const account = add(claims)
    plain(t, await signIn(account), 401, 'No email in profile', JSON.stringify(claims))
    t.equal(await count(account.email), 0)
  }
  const account = add({ email_verified: false })
  await person(app, 'ADMIN', { email: account.email })
  plain(t, await signIn(account), 401, 'No email in profile')
  t.match(await stored(account.email), { idp_id: null }, 'nobody takes over an account by an unverified email')
})

t.test('GET /auth/google/callback answers 500 when the database or the signing fails', async t => {
  const app = await service(t, { IDP_ISSUER: fake.issuer })
  const back = () => callback({ code: 'code', state: encodeState({ n: 'nonce', r: '/' }) }, 'nonce', app)
  const { issueToken } = app
  Object.assign(app, { issueToken () { throw new Error('no key') } })
  plain(t, await back(), 500, 'OAuth callback failed', 'signing')
  Object.assign(app, { issueToken })
  await app.sql.end({ timeout: 0 })
  plain(t, await back(), 500, 'OAuth callback failed', 'database')
})

t.test('The log of all this has failures in it, and neither codes, tokens, the client secret nor states', async t => {
  t.match(log, '"msg":"Unexpected error"')
  t.match(log, '"path":"/auth/google/callback"')
  keepSecret(...fake.received.map(({ authorization }) => authorization?.replace(/^\w+ /, '')))
  t.ok(secrets.size > 100)
  t.strictSame([...secrets].filter(secret => log.includes(secret)), [])
})
