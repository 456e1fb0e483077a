import t from 'tap'

import { encodeState } from '#lib/auth/oauth-state.js'
import { person } from '../../helper.ts'
import { fails, closesConnection, html } from '../../provider.ts'
import {
  add, respondWith, app, callback, count, fake, fakeApp, FIRST, forged, FRONTEND_URL, me, plain, provider, SECOND,
  service, signIn, start, stored, testLog,
} from './google-fixtures.ts'

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
