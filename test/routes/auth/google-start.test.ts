import diagnostics from 'node:diagnostics_channel'

import { decodeState, encodeState } from '#lib/auth/oauth-state.js'
import { stopClock } from '../../clock.ts'
import { inject } from '../../helper.ts'
import { CLIENT, fails, html } from '../../provider.ts'
import t from '../../suite.ts'
import { FIRST, FRONTEND_URL, plain, SECOND, setUp } from './google-fixtures.ts'

const { callback, fake, fakeApp, provider, service, start, testLog } = await setUp(t)

t.test('GET /auth/google/start redirects to the provider with the parameters of the authorization request', async t => {
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
    nonce: JSON.parse(Buffer.from(state, 'base64url').toString()).n,
    code_challenge: location.searchParams.get('code_challenge'),
    code_challenge_method: 'S256',
    access_type: 'offline',
    prompt: 'consent',
    include_granted_scopes: 'true',
  })
  t.match(location.searchParams.get('code_challenge'), /^[\w-]{43}$/)
  t.equal([...location.searchParams].length, 11, 'each once')
})

t.test('GET /auth/google/start builds the state from nonce, destination and frontend', async t => {
  const { state } = await start('?redirect=/events')
  t.match(state, /^[\w-]+$/, 'base64url')
  const { n, ...others } = JSON.parse(Buffer.from(state, 'base64url').toString())
  t.match(n, /^[\w-]{22}$/)
  t.strictSame(others, { r: '/events', o: FIRST })
  t.not(decodeState((await start('?redirect=/events')).state).n, n, 'a nonce is never used twice')
})

t.test('GET /auth/google/start ignores a redirect that is not a string', async t => {
  const table: [query: string, destination: string][] = [
    ['', '/'],
    ['?redirect=', ''],
    ['?redirect=/a&redirect=/b', '/'],
    ['?redirect[]=/a', '/'],
    ['?redirect=/%C3%A9%20%26%3F%23+x', '/é &?# x'],
    ['?redirect=https://evil.example/', 'https://evil.example/'],
  ]
  for (const [query, destination] of table) t.equal(decodeState((await start(query)).state).r, destination, query)
})

t.test('GET /auth/google/start chooses the frontend by the host name of Origin, then of Referer', async t => {
  const table: [headers: Record<string, string>, frontend: string][] = [
    [{}, FIRST],
    [{ origin: SECOND }, SECOND],
    [{ referer: `${SECOND}/login?x=1` }, SECOND],
    [{ origin: FIRST, referer: `${SECOND}/` }, FIRST],
    [{ host: 'second.example.org' }, FIRST],
  ]
  for (const [headers, frontend] of table) {
    t.equal(decodeState((await start('', headers)).state).o, frontend, JSON.stringify(headers))
  }
})

t.test('GET /auth/google/start fails without FRONTEND_URL', async t => {
  const app = await service(t, { IDP_ISSUER: provider.issuer, FRONTEND_URL: '' })
  const response = await inject(app, 'GET', '/auth/google/start')
  t.strictSame([response.statusCode, response.json()], [500, { message: 'Failed to start IdP OAuth' }])
  t.equal(response.headers['set-cookie'], undefined)
})

t.test('GET /auth/google/start sets the nonce cookie, which is Secure in production only', async t => {
  const { state, cookie } = await start()
  t.equal(cookie, `oauth_state_nonce=${decodeState(state).n}; Max-Age=600; Path=/; SameSite=Lax`)

  const production = await service(t, { IDP_ISSUER: provider.issuer, NODE_ENV: 'production' })
  const other = await start('', {}, production)
  t.equal(other.cookie, `oauth_state_nonce=${decodeState(other.state).n}; Max-Age=600; Path=/; Secure; SameSite=Lax`)
})

t.test('GET /auth/google/start returns 500 and names the missing variables, before FRONTEND_URL', async t => {
  for (const [missingVariables, frontends] of [
    [['IDP_CLIENT_SECRET'], FRONTEND_URL], [['IDP_CLIENT_ID', 'IDP_REDIRECT_URI'], ''],
  ] as const) {
    const missing = Object.fromEntries(missingVariables.map(name => [name, '']))
    const app = await service(t, { FRONTEND_URL: frontends, ...missing })
    const { response } = await start('', {}, app)
    const { details, ...body } = response.json()
    t.strictSame([response.statusCode, body], [500, { message: 'IdP OAuth not configured', missingVariables }])
    t.match(details, `Set ${missingVariables.join(', ')} `)
    t.equal(response.headers['set-cookie'], undefined)
  }
})

t.test('GET /auth/google/start and …/callback return 500 when discovery fails or times out, and recover', async t => {
  t.strictSame(fake.requests, [], 'no request at startup')
  const path = '/.well-known/openid-configuration'
  const state = encodeState({ n: 'nonce', r: '/' })
  const pass = stopClock(t)
  const late = () => pass(5000)
  for (const document of [html, fails, late, { ...fake.metadata, issuer: 'https://evil.example' }]) {
    fake.responses[path] = document
    const [{ response }, back] = await Promise.all([
      start('', {}, fakeApp), callback({ code: 'a code of the tests', state }, 'nonce', fakeApp),
    ])
    t.strictSame([response.statusCode, response.json()], [500, { message: 'Failed to start IdP OAuth' }])
    t.equal(response.headers['set-cookie'], undefined)
    plain(t, back, 500, 'OAuth callback failed')
  }
  fake.responses[path] = fake.metadata
  t.equal((await start('', {}, fakeApp)).response.statusCode, 302)
  t.equal((await callback({ code: 'a code of the tests', state }, 'nonce', fakeApp)).response.statusCode, 302)
})

t.test('GET /auth/google/start redirects to Google by default, without discovery', async t => {
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
  await fetch(`${provider.issuer}/keys`)
  t.equal(requests.length, 1, 'the check can fail')
})

testLog()
