import type { ServerResponse } from 'node:http'
import { setImmediate } from 'node:timers/promises'

import { encodeState } from '#lib/auth/oauth-state.js'
import { person } from '../../helper.ts'
import { CLIENT, fails, closesConnection, html, newAccount, newKey, startProvider } from '../../provider.ts'
import t from '../../suite.ts'
import { FIRST, FRONTEND_URL, plain, SECOND, setUp } from './google-fixtures.ts'

const {
  add, respondWith, app, callback, count, fake, fakeApp, forged, me, provider, service, signIn, start, stored,
  testLog,
} = await setUp(t)

const nonceOf = (cookie: string) => cookie.split(/[=;]/)[1]!

t.test('GET /auth/google/callback redirects to the frontend with a token and the destination', async t => {
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

t.test('GET /auth/google/callback sends tokens to configured origins only', async t => {
  const tricks = [
    undefined, null, 7, '', [SECOND], { toString: 'x' }, 'https://evil.example', 'https://app.example.org.evil.example',
    'https://evil-app.example.org', 'https://app.example.org@evil.example', 'https://app.example.org:8443',
    'http://app.example.org', 'https://app.example.org/', 'https://APP.example.org', ' https://app.example.org',
    'http://second.example.org', FRONTEND_URL, '//app.example.org', 'javascript:alert(1)//',
  ]
  for (const o of tricks) {
    const { location, token } = await forged({ r: '/a', o })
    t.equal(location!.href, `${FIRST}/auth/callback?token=${token}&to=%2Fa`, JSON.stringify(o))
  }
  const { location } = await forged({ r: '/a', o: SECOND })
  t.equal(location!.origin, SECOND, 'a configured one')
})

t.test('GET /auth/google/callback passes the destination on unchanged, which cannot change the origin', async t => {
  for (const r of ['', '/', '//evil.example', 'https://evil.example/', '/a&token=x#y', '\r\nset-cookie: x=y', '😀']) {
    const { response, location } = await forged({ r, o: FIRST })
    t.equal(location!.origin + location!.pathname, `${FIRST}/auth/callback`)
    t.strictSame([...location!.searchParams.keys()], ['token', 'to'])
    t.equal(location!.searchParams.get('to'), r)
    t.equal(response.headers['set-cookie'], undefined)
  }
  for (const r of [undefined, null, 7, false, ['/a'], { toString: 'x' }]) {
    const { location } = await forged({ r })
    t.equal(location!.searchParams.get('to'), '/', `${JSON.stringify(r)} is not a destination`)
  }
})

t.test('GET /auth/google/callback returns 400 without code or state', async t => {
  const state = encodeState({ n: 'nonce', r: '/' })
  for (const query of ['', 'code=x', `state=${state}`, `code=&state=${state}`, 'code=x&state=',
    `code=x&code=y&state=${state}`, `code=x&state=${state}&state=${state}`, `error=access_denied&state=${state}`]) {
    plain(t, await callback(query, 'nonce', fakeApp), 400, 'Missing code/state', query)
  }
})

t.test('GET /auth/google/callback returns 400 for a state whose nonce is not in the cookie', async t => {
  const table: [what: string, state: unknown, cookie?: string][] = [
    ['no cookie', { n: 'nonce', r: '/' }],
    ['another cookie', { n: 'nonce', r: '/' }, 'another'],
    ['an empty cookie', { n: '', r: '/' }, ''],
    ['no nonce', { r: '/' }, 'undefined'],
    ['a nonce that is null', { n: null, r: '/' }, 'null'],
    ['a nonce that is a list', { n: ['nonce'], r: '/' }, 'nonce'],
    ['a number', 5, 'nonce'],
    ['a list', [], 'nonce'],
  ]
  const before = fake.requests.length
  for (const [what, state, cookie] of table) {
    plain(t, await callback({ code: 'code', state: encodeState(state as { n: string, r: string }) }, cookie, fakeApp),
      400, 'Invalid state', what)
  }
  t.equal(fake.requests.length, before, 'no code is exchanged')
})

t.test('GET /auth/google/callback returns 500 for a state that is not a JSON value, or null', async t => {
  for (const state of ['text', '%00', '{}', 'eyJuIjoi', '....', 'bnVsbA']) {
    plain(t, await callback({ code: 'code', state }, 'nonce', fakeApp), 500, 'OAuth callback failed', state)
  }
})

t.test('GET /auth/google/callback returns 500 without a frontend, before exchanging the code', async t => {
  const app = await service(t, { IDP_ISSUER: fake.issuer, FRONTEND_URL: '' })
  const before = fake.requests.length
  const state = encodeState({ n: 'nonce', r: '/', o: 'https://app.example.org' })
  plain(t, await callback({ code: 'code', state }, 'nonce', app), 500, 'Frontend URL not configured')
  t.equal(fake.requests.length, before)
})

t.test('GET /auth/google/callback returns 500 when the provider rejects the code', async t => {
  const nonce = 'nonce'
  const state = encodeState({ n: nonce, r: '/', o: FIRST })
  plain(t, await callback({ code: 'unknown', state }, nonce), 500, 'OAuth callback failed', 'an unknown code')

  const { location, cookie } = await start()
  const back = await provider.signIn(location, add())
  const once = () => callback(back.search.slice(1), nonceOf(cookie))
  t.equal((await once()).response.statusCode, 302)
  plain(t, await once(), 500, 'OAuth callback failed', 'a code for the second time')

  for (const response of [html, fails, closesConnection, null]) {
    respondWith(t, { '/token': response })
    plain(t, await forged(), 500, 'OAuth callback failed')
  }
})

t.test('GET /auth/google/callback exchanges 32 codes at once', async t => {
  const exchanges: ServerResponse[] = []
  respondWith(t, { '/token': response => { exchanges.push(response) } })
  const requests = Array.from({ length: 33 }, () => forged())
  const { provider } = fakeApp.queues
  while (exchanges.length < 32) await setImmediate()
  t.strictSame([provider.running, provider.waiting], [32, 1])
  fails(exchanges[0]!)
  while (exchanges.length < 33) await setImmediate()
  exchanges.slice(1).forEach(fails)
  for (const request of requests) plain(t, await request, 500, 'OAuth callback failed')
})

t.test('GET /auth/google/callback exchanges a code with the verifier of its own sign-in only', async t => {
  const code = async () => {
    const { location, cookie } = await start()
    const back = await provider.signIn(location, add())
    return { code: back.searchParams.get('code')!, nonce: nonceOf(cookie) }
  }
  const [stolen, own] = [await code(), await code()]
  const state = encodeState({ n: own.nonce, r: '/', o: FIRST })
  plain(t, await callback({ code: stolen.code, state }, own.nonce), 500, 'OAuth callback failed', 'another nonce')

  const { code: bare } = await code()
  const client = [CLIENT.IDP_CLIENT_ID, CLIENT.IDP_CLIENT_SECRET].map(encodeURIComponent).join(':')
  const response = await fetch(`${provider.issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(client)}` },
    body: new URLSearchParams({ grant_type: 'authorization_code', code: bare, redirect_uri: CLIENT.IDP_REDIRECT_URI }),
  })
  t.strictSame([response.status, (await response.json() as { error: string }).error], [400, 'invalid_grant'])

  const other = await service(t, { IDP_ISSUER: provider.issuer })
  const { code: shared, nonce } = await code()
  const elsewhere = await callback({ code: shared, state: encodeState({ n: nonce, r: '/', o: FIRST }) }, nonce, other)
  t.equal(elsewhere.response.statusCode, 302, 'by another instance')
})

t.test('GET /auth/google/callback sends no verifier to a provider that does not support PKCE', async t => {
  await forged()
  t.notMatch(fake.received.findLast(({ path }) => path === '/token')!.body, 'code_verifier')
})

/** A response of the token endpoint with this ID token. */
const withIdToken = (idToken: string) =>
  ({ '/token': { access_token: 'a token', token_type: 'Bearer', id_token: idToken } })

t.test('GET /auth/google/callback verifies an ID token in the response with the access token', async t => {
  const past = Math.floor(Date.now() / 1000) - 3600
  const other = await newKey('RS256', 'one')
  const tokens = {
    'another nonce': await fake.idToken({ nonce: 'another' }),
    'a nonce that is null': await fake.idToken({ nonce: null }),
    'another issuer': await fake.idToken({ iss: 'https://evil.example' }),
    'another audience': await fake.idToken({ aud: 'another client' }),
    'a past expiry': await fake.idToken({ iat: past, exp: past + 60 }),
    'another key': await fake.idToken({}, {}, other.key),
  }
  for (const [what, idToken] of Object.entries(tokens)) {
    respondWith(t, withIdToken(idToken))
    plain(t, await forged(), 500, 'OAuth callback failed', what)
  }
  for (const claims of [{ nonce: 'nonce' }, {}]) {
    respondWith(t, withIdToken(await fake.idToken(claims)))
    t.equal((await forged()).response.statusCode, 302, JSON.stringify(claims))
  }
})

t.test('GET /auth/google/callback returns 401 if profile and ID token have different subjects', async t => {
  const email = String(newAccount().email)
  respondWith(t, { ...withIdToken(await fake.idToken()), '/userinfo': { ...fake.claims, sub: 'another', email } })
  plain(t, await forged(), 401, 'Failed to fetch userinfo')
  t.equal(await count(email), 0)
})

t.test('Two sign-ins in one browser both succeed', async t => {
  const [one, two] = [add(), add()]
  const first = await start('?redirect=/one')
  const nonce = nonceOf(first.cookie)
  const second = await start('?redirect=/two', { cookie: `oauth_state_nonce=${nonce}` })
  t.equal(second.cookie, first.cookie, 'for ten more minutes')
  t.not(second.state, first.state)
  for (const [{ location }, account, to] of [[first, one, '/one'], [second, two, '/two']] as const) {
    const back = await provider.signIn(location, account)
    const { response, token, location: app } = await callback(back.search.slice(1), nonce)
    t.equal(response.statusCode, 302)
    t.equal(app!.searchParams.get('to'), to)
    t.equal((await me(token!)).email, account.email)
  }
  for (const cookie of ['', 'short', `${nonce}x`, `${nonce.slice(1)}%00`]) {
    t.not(nonceOf((await start('', { cookie: `oauth_state_nonce=${cookie}` })).cookie), cookie, 'only one that fits')
  }
})

t.test('A provider that takes the client secret in the body only signs people in', async t => {
  const provider = await startProvider(t, CLIENT.IDP_REDIRECT_URI, 'client_secret_post')
  const account = newAccount()
  provider.accounts.push(account)
  const app = await service(t, { IDP_ISSUER: provider.issuer })
  const { location, cookie } = await start('', {}, app)
  const back = await provider.signIn(location, account)
  t.equal((await callback(back.search.slice(1), nonceOf(cookie), app)).response.statusCode, 302)
})

t.test('Names with NUL are stored without it', async t => {
  const account = add({ given_name: 'A\0da', family_name: '\0', picture: 'https://example.org/\0' })
  t.equal((await signIn(account)).response.statusCode, 302)
  t.match(await stored(account.email), { first_name: 'Ada', last_name: '', avatar: 'https://example.org/' })
  plain(t, await signIn(add({ email: 'nul\0@example.org' })), 500, 'OAuth callback failed')
})

t.test('Hundreds of callbacks that fail from one address get the responses of the contract', async t => {
  respondWith(t, { '/token': fails })
  for (let n = 0; n < 320; n++) plain(t, await forged(), 500, 'OAuth callback failed')
})

t.test('After an admin has changed an email, its owner at the provider signs in', async t => {
  const [ada, eve] = [add(), add()]
  await signIn(ada)
  const { id } = await stored(ada.email)
  const admin = await person(app, 'ADMIN')
  t.equal((await admin.inject('PUT', `/users/${id}`, { email: eve.email })).statusCode, 200)
  await signIn(eve)
  t.match(await stored(eve.email), { id, idp_id: ada.sub }, 'the account is that of the new email')
  await signIn(ada)
  const fresh = await stored(ada.email)
  t.not(fresh.id, id, 'who had it before gets a new account')
  t.match(fresh, { idp_id: ada.sub, role: 'STUDENT' })
})

t.test('GET /auth/google/callback returns 401 without an access token', async t => {
  for (const response of [{}, { access_token: '' }, { access_token: null }, { error: 'server_error' }]) {
    respondWith(t, { '/token': response })
    plain(t, await forged(), 401, 'No access token', JSON.stringify(response))
  }
})

t.test('GET /auth/google/callback returns 401 without a profile', async t => {
  for (const response of [html, fails, closesConnection, null, {}, { email: 'ada@example.org' }]) {
    respondWith(t, { '/userinfo': response })
    plain(t, await forged(), 401, 'Failed to fetch userinfo')
  }
  respondWith(t, { '/token': { access_token: 'a\ntoken' } })
  plain(t, await forged(), 401, 'Failed to fetch userinfo', 'a token that cannot be sent')
})

t.test('GET /auth/google/callback returns 401 without a verified email', async t => {
  for (const claims of [{ email: undefined! }, { email: '' }, { email_verified: false }]) {
    const account = add(claims)
    plain(t, await signIn(account), 401, 'No email in profile', JSON.stringify(claims))
    t.equal(await count(account.email), 0)
  }
  const account = add({ email_verified: false })
  await person(app, 'ADMIN', { email: account.email })
  plain(t, await signIn(account), 401, 'No email in profile')
  t.match(await stored(account.email), { idp_id: null }, 'an unverified email takes over no account')
})

testLog()

t.test('GET /auth/google/callback returns 500 when the database or signing fails', async t => {
  const app = await service(t, { IDP_ISSUER: fake.issuer })
  const back = () => callback({ code: 'code', state: encodeState({ n: 'nonce', r: '/' }) }, 'nonce', app)
  const { issueToken } = app
  Object.assign(app, { issueToken () { throw new Error('no key') } })
  plain(t, await back(), 500, 'OAuth callback failed', 'signing')
  Object.assign(app, { issueToken })
  await app.sql.end({ timeout: 0 })
  plain(t, await back(), 500, 'OAuth callback failed', 'database')
})
