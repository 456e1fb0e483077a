import { encodeState } from '#lib/auth/oauth-state.js'
import { person } from '../../helper.ts'
import { CLIENT, fails, closesConnection, html } from '../../provider.ts'
import t from '../../suite.ts'
import { FIRST, FRONTEND_URL, plain, SECOND, setUp } from './google-fixtures.ts'

const {
  add, respondWith, app, callback, count, fake, fakeApp, forged, me, provider, service, signIn, start, stored,
  testLog,
} = await setUp(t)

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

t.test('GET /auth/google/callback passes the destination on unchanged, which cannot change the origin', async t => {
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

t.test('GET /auth/google/callback returns 500 for a state that is not JSON', async t => {
  for (const state of ['text', '%00', '{}', 'eyJuIjoi', '....']) {
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
  const once = () => callback(back.search.slice(1), cookie.split(/[=;]/)[1])
  t.equal((await once()).response.statusCode, 302)
  plain(t, await once(), 500, 'OAuth callback failed', 'a code for the second time')

  for (const response of [html, fails, closesConnection, null]) {
    respondWith(t, { '/token': response })
    plain(t, await forged({ n: nonce, r: '/' }), 500, 'OAuth callback failed')
  }
})

t.test('GET /auth/google/callback exchanges a code with the verifier of its own sign-in only', async t => {
  const code = async () => {
    const { location, cookie } = await start()
    const back = await provider.signIn(location, add())
    return { code: back.searchParams.get('code')!, nonce: cookie.split(/[=;]/)[1]! }
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
  await forged({ n: 'nonce', r: '/' })
  t.notMatch(fake.received.findLast(({ path }) => path === '/token')!.body, 'code_verifier')
})

t.test('GET /auth/google/callback returns 500 for an ID token with another nonce', async t => {
  const token = (idToken: string) =>
    ({ '/token': { access_token: 'a token', token_type: 'Bearer', id_token: idToken } })
  for (const idToken of [await fake.idToken({ nonce: 'another' }), await fake.idToken(), 'text']) {
    respondWith(t, token(idToken))
    plain(t, await forged({ n: 'nonce', r: '/' }), 500, 'OAuth callback failed')
  }
  respondWith(t, token(await fake.idToken({ nonce: 'nonce' })))
  t.equal((await forged({ n: 'nonce', r: '/' })).response.statusCode, 302)
})

t.test('GET /auth/google/callback: only so many failures of a network reach the provider', async t => {
  const variables = { IDP_ISSUER: fake.issuer, SIGN_IN_ATTEMPTS_PER_NETWORK: '3', SIGN_IN_WINDOW: '60' }
  const instances = [await service(t, variables), await service(t, variables)]
  await app.sql`DELETE FROM rate_limits WHERE name = 'failed-callbacks'`
  const state = encodeState({ n: 'nonce', r: '/', o: FIRST })
  const back = (n: number) => callback({ code: 'made up', state }, 'nonce', instances[n % 2])
  for (let n = 0; n < 5; n++) t.equal((await back(n)).response.statusCode, 302, 'successes do not count')

  respondWith(t, { '/token': fails })
  for (let n = 0; n < 3; n++) plain(t, await back(n), 500, 'OAuth callback failed')
  const before = fake.requests.length
  const refused = await back(3)
  plain(t, refused, 429, 'Too many failed sign-ins, please try again later')
  t.match(refused.response.headers['retry-after'], /^[1-9]\d?$/)
  t.equal(fake.requests.length, before, 'no request to the provider')
  const { response } = await start('', {}, instances[0])
  t.equal(response.statusCode, 302, 'a sign-in can be started')
  await app.sql`DELETE FROM rate_limits WHERE name = 'failed-callbacks'`
})

t.test('GET /auth/google/callback returns 401 without an access token', async t => {
  for (const response of [{}, { access_token: '' }, { access_token: null }, { error: 'server_error' }]) {
    respondWith(t, { '/token': response })
    plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'No access token', JSON.stringify(response))
  }
})

t.test('GET /auth/google/callback returns 401 without a profile', async t => {
  for (const response of [html, fails, closesConnection, null, {}, { email: 'ada@example.org' }]) {
    respondWith(t, { '/userinfo': response })
    plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'Failed to fetch userinfo')
  }
  respondWith(t, { '/token': { access_token: 'a\ntoken' } })
  plain(t, await forged({ n: 'nonce', r: '/' }), 401, 'Failed to fetch userinfo', 'a token that cannot be sent')
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

testLog()
