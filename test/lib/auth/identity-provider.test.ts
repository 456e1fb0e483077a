import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { exportSPKI, UnsecuredJWT } from 'jose'

import { IdentityProvider } from '#lib/auth/identity-provider.js'
import { testConfig } from '../../helper.ts'
import { CLIENT, fails, closesConnection, html, never, newKey, startFakeProvider } from '../../provider.ts'
import t, { type Test } from '../../suite.ts'

const DISCOVERY = '/.well-known/openid-configuration'
const DAY = 24 * 60 * 60 * 1000

const log = { warn () {} }
const KEY = Buffer.from('a key of the tests')
/** The provider with this issuer, as the service uses it. */
const at = (issuer: string, variables: NodeJS.Dict<string> = {}) =>
  new IdentityProvider(testConfig({ IDP_ISSUER: issuer, ...CLIENT, ...variables }), log, KEY)

/** A fake provider, and the client for it. */
async function start (t: Test) {
  const fake = await startFakeProvider(t)
  return { fake, idp: at(fake.issuer) }
}

/** Advances Date.now(). */
function later (t: Test, milliseconds: number) {
  const now = Date.now.bind(Date)
  t.intercept(Date, 'now', { value: () => now() + milliseconds })
}

t.test('Discovery', async t => {
  t.test('is fetched on first use, and only once', async t => {
    const { fake, idp } = await start(t)
    t.strictSame(fake.requests, [])
    const urls = await Promise.all([idp.authorizationUrl('one', 'nonce'), idp.authorizationUrl('two', 'nonce')])
    t.strictSame(fake.requests, [DISCOVERY])
    for (const url of urls) {
      t.ok(url.startsWith(`${fake.issuer}/authorize?`))
      t.notMatch(url, 'code_challenge', 'a provider without PKCE')
    }
    await idp.verifyIdToken(await fake.idToken())
    await idp.fetchIdentity((await idp.exchangeCode('code', 'nonce')).accessToken!)
    t.strictSame(fake.requests, [DISCOVERY, '/keys', '/token', '/userinfo'])
  })

  t.test('is fetched again after a day', async t => {
    const { fake, idp } = await start(t)
    await idp.authorizationUrl('state', 'nonce')
    later(t, DAY - 60_000)
    await idp.authorizationUrl('state', 'nonce')
    t.equal(fake.requests.length, 1)
    later(t, DAY + 60_000)
    fake.metadata.authorization_endpoint = `${fake.issuer}/moved`
    t.match(await idp.authorizationUrl('state', 'nonce'), `${fake.issuer}/moved?`)
    t.strictSame(fake.requests, [DISCOVERY, DISCOVERY, '/keys'])
  })

  t.test('and the keys are used further while they cannot be fetched after a day, and are asked for once a minute',
    async t => {
      const { fake, idp } = await start(t)
      const { [DISCOVERY]: metadata, '/keys': keys } = fake.responses
      const verify = async () => t.match(await idp.verifyIdToken(await fake.idToken()), { id: fake.claims.sub })
      await verify()
      for (const [day, path] of [DISCOVERY, '/keys'].entries()) {
        later(t, DAY + 60_000)
        fake.requests.length = 0
        fake.responses[path] = fails
        await Promise.all([verify(), verify(), idp.authorizationUrl('state', 'nonce')])
        await verify()
        t.strictSame(fake.requests, [DISCOVERY, '/keys'].slice(0, day + 1), path)
        later(t, 70_000)
        Object.assign(fake.responses, { [DISCOVERY]: metadata, '/keys': keys })
        fake.requests.length = 0
        await Promise.all([verify(), verify()])
        t.strictSame(fake.requests, [DISCOVERY, '/keys'])
        fake.requests.length = 0
        await verify()
        t.strictSame(fake.requests, [])
      }
      later(t, DAY + 60_000)
      fake.metadata.jwks_uri = `${fake.issuer}/moved`
      fake.responses['/moved'] = keys!
      fake.responses['/keys'] = fails
      await verify()
    })

  t.test('may have endpoints with a query', async t => {
    const { fake, idp } = await start(t)
    fake.metadata.authorization_endpoint += '?p=policy'
    fake.metadata.token_endpoint += '?p=policy'
    fake.responses['/token?p=policy'] = fake.responses['/token']!
    const query = new URL(await idp.authorizationUrl('state', 'nonce')).searchParams
    t.strictSame([query.get('p'), query.get('state')], ['policy', 'state'])
    t.ok(await idp.exchangeCode('code', 'nonce'))
    t.equal(fake.requests.at(-1), '/token?p=policy')
  })

  t.test('is fetched again after a failure', async t => {
    const { fake, idp } = await start(t)
    const { [DISCOVERY]: metadata } = fake.responses
    fake.responses[DISCOVERY] = fails
    const idToken = await fake.idToken()
    for (const attempt of [1, 2]) {
      await t.rejects(Promise.all([idp.authorizationUrl('state', 'nonce'), idp.verifyIdToken(idToken)]))
      t.equal(fake.requests.length, attempt)
    }
    fake.responses[DISCOVERY] = metadata!
    t.match(await idp.authorizationUrl('state', 'nonce'), `${fake.issuer}/authorize?`)
  })

  t.test('keeps the path of the issuer, with or without a trailing slash', async t => {
    for (const path of ['/realms/community', '/realms/community/']) {
      const fake = await startFakeProvider(t)
      const issuer = `${fake.issuer}${path}`
      fake.responses[`/realms/community${DISCOVERY}`] = { ...fake.metadata, issuer }
      const idp = at(issuer)
      t.match(await idp.authorizationUrl('state', 'nonce'), `${fake.issuer}/authorize?`)
      t.match(await idp.verifyIdToken(await fake.idToken({ iss: issuer })), { id: fake.claims.sub })
    }
  })

  t.test('rejects an invalid document, and does not request its URLs', async t => {
    const { fake, idp } = await start(t)
    const table: [what: string, response: typeof fake.responses[string]][] = [
      ['HTML', html],
      ['null', null],
      ['an array', []],
      ['a redirect', response => { response.writeHead(302, { location: `${fake.issuer}/elsewhere` }).end() }],
      ['another issuer', { ...fake.metadata, issuer: 'https://evil.example' }],
      ['no issuer', { ...fake.metadata, issuer: undefined }],
      ...Object.keys(fake.metadata).filter(name => name !== 'issuer').flatMap(name => [
        `http://example.org/${name}`, '/relative', 7, undefined,
      ].map(value => [`${name}: ${value}`, { ...fake.metadata, [name]: value }] as [string, object])),
    ]
    fake.responses['/elsewhere'] = fake.metadata
    for (const [what, response] of table) {
      fake.responses[DISCOVERY] = response
      await t.rejects(idp.authorizationUrl('state', 'nonce'), what)
    }
    t.strictSame(new Set(fake.requests), new Set([DISCOVERY]))
    fake.responses[DISCOVERY] = fake.metadata
    t.ok(await idp.authorizationUrl('state', 'nonce'))
  })
})

// Takes five seconds, because each library has a clock of its own.
t.test('A provider that stalls is a timeout', async t => {
  const stalls: typeof never = (response?: { write (text: string): void }) => { response!.write('{"a":') }
  // Collect garbage during the request: in some versions of Node.js, fetch() then loses its signal and the timeout.
  setFlagsFromString('--expose-gc')
  const collecting = setInterval(runInNewContext('gc') as () => void, 1000)
  t.teardown(() => clearInterval(collecting))
  await Promise.all([never, stalls].map(async slow => {
    const responses = await Promise.all([DISCOVERY, '/keys', '/token', '/userinfo'].map(async path => {
      const { fake, idp } = await start(t)
      fake.responses[path] = slow
      return { fake, idp }
    }))
    const [discovery, keys, token, userinfo] = responses as [typeof responses[0], ...typeof responses]
    await Promise.all([
      // A TimeoutError would mean that the database does not answer.
      t.rejects(discovery.idp.authorizationUrl('state', 'nonce'),
        { name: 'Error', message: `Cannot read ${discovery.fake.issuer}${DISCOVERY}: no response within 5 s` }),
      t.rejects(keys!.idp.verifyIdToken(await keys!.fake.idToken())),
      t.rejects(token!.idp.exchangeCode('code', 'nonce')),
      t.resolveMatch(userinfo!.idp.fetchIdentity('token'), undefined),
    ])
  }))
})

t.test('A client that cannot be made is made again', async t => {
  const fake = await startFakeProvider(t)
  const config = testConfig({ IDP_ISSUER: fake.issuer, ...CLIENT })
  const { IDP_REDIRECT_URI } = config
  const idp = new IdentityProvider(config, log, KEY)
  config.IDP_REDIRECT_URI = undefined
  await t.rejects(idp.authorizationUrl('state', 'nonce'))
  config.IDP_REDIRECT_URI = IDP_REDIRECT_URI
  t.ok((await idp.authorizationUrl('state', 'nonce')).startsWith(`${fake.issuer}/authorize?`))
  t.strictSame(fake.requests, [DISCOVERY])
})

t.test('The code is exchanged with the client credentials', async t => {
  const { fake, idp } = await start(t)
  fake.responses['/token'] = { access_token: 'the token', token_type: 'Bearer' }
  t.strictSame(await idp.exchangeCode('the code', 'nonce'), { accessToken: 'the token' })
  const { authorization, body } = fake.received.at(-1)!
  const [id, secret] = atob(authorization!.replace(/^Basic /, '')).split(':')
    .map(text => new URLSearchParams(`x=${text}`).get('x'))
  t.strictSame([id, secret], [CLIENT.IDP_CLIENT_ID, CLIENT.IDP_CLIENT_SECRET], 'form-encoded: RFC 6749, § 2.3.1')
  t.strictSame(Object.fromEntries(new URLSearchParams(body)), {
    grant_type: 'authorization_code', code: 'the code', redirect_uri: CLIENT.IDP_REDIRECT_URI,
  })
})

t.test('A failed exchange is an error without the code, the secret and the response', async t => {
  const { fake, idp } = await start(t)
  const [code, quoted] = [randomUUID(), randomUUID()]
  const table: [what: string, response: typeof fake.responses[string]][] = [
    ['HTML', html],
    ['no response', closesConnection],
    ['null', null],
    ['a wrong code', response => {
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: quoted }))
    }],
    ['no JSON', response => {
      response.setHeader('content-type', 'application/json').end(`{"access_token": ${quoted}`)
    }],
    ['a redirect', response => { response.writeHead(307, { location: `${fake.issuer}/elsewhere` }).end() }],
  ]
  for (const [what, response] of table) {
    fake.responses['/token'] = response
    const error = await idp.exchangeCode(code, 'nonce').then(() => undefined, error => error)
    t.match(error, { message: /^The identity provider did not exchange the code: / }, what)
    const shown = inspect(error, { depth: Infinity, showHidden: true })
    for (const secret of [code, CLIENT.IDP_CLIENT_SECRET, fake.received.at(-1)!.authorization!, quoted.slice(0, 8)]) {
      t.notOk(shown.includes(secret), `${what} does not disclose ${secret}`)
    }
  }
  t.notOk(fake.requests.includes('/elsewhere'))
})

t.test('A failed profile request yields no identity', async t => {
  const { fake, idp } = await start(t)
  const table: [what: string, response: typeof fake.responses[string]][] = [
    ['no subject', { ...fake.claims, sub: undefined }],
    ['an empty subject', { ...fake.claims, sub: '' }],
    ['a subject that is no text', { ...fake.claims, sub: { a: 1 } }],
    ['a redirect', response => { response.writeHead(302, { location: `${fake.issuer}/elsewhere` }).end() }],
  ]
  fake.responses['/elsewhere'] = fake.claims
  for (const [what, response] of table) {
    fake.responses['/userinfo'] = response
    t.equal(await idp.fetchIdentity('token'), undefined, what)
  }
  t.match(fake.received.at(-1), { path: '/userinfo', authorization: 'Bearer token' })
})

/** `undefined` for each of these claims, which removes the defaults of the fake provider. */
const without = (claims: object) => Object.fromEntries(Object.keys(claims).map(name => [name, undefined]))

t.test('Claims', async t => {
  const { fake, idp } = await start(t)
  const email = 'ada@example.org'
  const verified = { email, email_verified: true }
  const table: [claims: Record<string, unknown>, identity: object][] = [
    [
      { ...verified, given_name: 'Ada', family_name: 'Lovelace', picture: 'https://example.org/a' },
      { email, firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/a' },
    ],
    [verified, { email, firstName: 'ada', lastName: '', avatar: null }],
    [{ ...verified, name: 'Ada L.' }, { email, firstName: 'Ada L.', lastName: '', avatar: null }],
    [{ ...verified, name: 'Ada L.', given_name: 'Ada' }, { email, firstName: 'Ada', lastName: '', avatar: null }],
    [
      { ...verified, given_name: '', family_name: 7, picture: {}, name: null },
      { email, firstName: 'ada', lastName: '', avatar: null },
    ],
    [
      { ...verified, email: 'ADA@Example.org ' },
      { email: 'ADA@Example.org ', firstName: 'ADA', lastName: '', avatar: null },
    ],
    ...[{}, { email: '' }, { email: null }, { email: 7 }, { email: [email] }].map(claims => [
      { email_verified: true, ...claims }, { email: undefined, firstName: '', lastName: '', avatar: null },
    ] as [Record<string, unknown>, object]),
  ]
  for (const [claims, identity] of table) {
    const expected = { id: 'subject', ...identity }
    const idToken = await fake.idToken({ ...without(fake.claims), sub: 'subject', ...claims })
    t.strictSame(await idp.verifyIdToken(idToken), expected, `an ID token with ${JSON.stringify(claims)}`)
    fake.responses['/userinfo'] = { sub: 'subject', ...claims }
    t.strictSame(await idp.fetchIdentity('token'), expected, `a profile with ${JSON.stringify(claims)}`)
  }
})

t.test('email_verified', async t => {
  const fake = await startFakeProvider(t)
  const byClaim = at(fake.issuer)
  const assuming = at(fake.issuer, { IDP_EMAIL_VERIFIED: 'assume' })
  const email = 'ada@example.org'
  const emails = async (idp: IdentityProvider, claims: object) => {
    const idToken = await fake.idToken({ ...without(fake.claims), sub: 'subject', email, ...claims })
    fake.responses['/userinfo'] = { sub: 'subject', email, ...claims }
    return [(await idp.verifyIdToken(idToken)).email, (await idp.fetchIdentity('token'))!.email]
  }

  for (const claim of [true, 'true']) {
    const what = JSON.stringify(claim)
    t.strictSame(await emails(byClaim, { email_verified: claim }), [email, email], `${what} verifies`)
    t.strictSame(await emails(assuming, { email_verified: claim }), [email, email], `${what} verifies, even if assumed`)
  }
  for (const claim of [false, 'false', null, 0, 1, '', '1', 'yes', 'True', ' true', [true], ['true'], {}]) {
    const [what, none] = [JSON.stringify(claim), [undefined, undefined]]
    t.strictSame(await emails(byClaim, { email_verified: claim }), none, `${what} does not verify`)
    t.strictSame(await emails(assuming, { email_verified: claim }), none, `${what} does not verify, even if assumed`)
  }
  t.strictSame(await emails(byClaim, {}), [undefined, undefined], 'a missing claim does not verify')
  t.strictSame(await emails(assuming, {}), [email, email], 'a missing claim verifies if assumed')
})

t.test('An ID token', async t => {
  const { fake, idp } = await start(t)
  const ecdsa = await newKey('ES256', 'two')
  const edwards = await newKey('Ed25519', 'four')
  fake.responses['/keys'] = { keys: [fake.rsa, ecdsa, edwards].map(({ jwk }) => jwk) }
  const now = Math.floor(Date.now() / 1000)
  const other = await newKey('RS256', 'one')
  const publicKey = new TextEncoder().encode(await exportSPKI(fake.rsa.publicKey))

  t.test('verifies with RS256 and ES256, for one of several audiences, and within a minute of clock skew', async t => {
    const tokens: Record<string, Promise<string>> = {
      RS256: fake.idToken(),
      ES256: fake.idToken({}, { alg: 'ES256', kid: 'two' }, ecdsa.key),
      'an audience of several': fake.idToken({ aud: ['another', CLIENT.IDP_CLIENT_ID] }),
      'expired just now': fake.idToken({ exp: now - 30 }),
      'valid in a moment': fake.idToken({ nbf: now + 30 }),
    }
    for (const [what, token] of Object.entries(tokens)) {
      t.strictSame(await idp.verifyIdToken(await token), {
        id: fake.claims.sub,
        email: fake.claims.email,
        firstName: 'Ada',
        lastName: 'Lovelace',
        avatar: 'https://example.org/ada.png',
      }, what)
    }
  })

  t.test('does not verify otherwise, with an error that discloses no claim', async t => {
    const good = await fake.idToken()
    const [header, payload, signature] = good.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const tokens: Record<string, string> = {
      'no token': 'text',
      'no audience': await fake.idToken({ aud: undefined }),
      'no issuer': await fake.idToken({ iss: undefined }),
      'another audience': await fake.idToken({ aud: 'another' }),
      'other audiences': await fake.idToken({ aud: ['another', CLIENT.IDP_CLIENT_ID.toUpperCase()] }),
      'another issuer': await fake.idToken({ iss: 'https://accounts.google.com' }),
      'an issuer with a slash': await fake.idToken({ iss: `${fake.issuer}/` }),
      'no subject': await fake.idToken({ sub: undefined }),
      'an empty subject': await fake.idToken({ sub: '' }),
      expired: await fake.idToken({ exp: now - 90 }),
      'no expiry': await fake.idToken({ exp: undefined }),
      'not valid yet': await fake.idToken({ nbf: now + 90 }),
      'another key of the same name': await fake.idToken({}, {}, other.key),
      'a key that is not published': await fake.idToken({}, { kid: 'five' }, other.key),
      'the key of another algorithm': await fake.idToken({}, { kid: 'two' }),
      Ed25519: await fake.idToken({}, { alg: 'Ed25519', kid: 'four' }, edwards.key),
      none: new UnsecuredJWT(claims).encode(),
      'HS256 by the client secret':
        await fake.idToken({}, { alg: 'HS256' }, new TextEncoder().encode(CLIENT.IDP_CLIENT_SECRET)),
      'HS256 by the public key': await fake.idToken({}, { alg: 'HS256' }, publicKey),
      'other claims under the signature': `${header}.${base64({ ...claims, email: 'eve@example.org' })}.${signature}`,
      'a key in its own header':
        await fake.idToken({}, { jwk: other.jwk, jku: `${fake.issuer}/other` }, other.key),
    }
    for (const [what, token] of Object.entries(tokens)) {
      const error = await idp.verifyIdToken(token).then(() => undefined, error => error)
      t.match(error, { message: /^(The ID token is invalid: |The subject is missing$)/ }, what)
      const shown = inspect(error, { depth: Infinity, showHidden: true })
      for (const secret of [String(fake.claims.email), ...token.split('.').slice(1)].filter(Boolean)) {
        t.notOk(shown.includes(secret), `${what} does not disclose ${secret}`)
      }
    }
    t.notOk(fake.requests.includes('/other'))
  })
})

t.test('No token verifies while the keys cannot be fetched', async t => {
  const { fake, idp } = await start(t)
  const { '/keys': keys } = fake.responses
  for (const response of [fails, null, { keys: 7 }, { keys: [] }]) {
    fake.responses['/keys'] = response
    await t.rejects(at(fake.issuer).verifyIdToken(await fake.idToken()))
  }
  fake.responses['/keys'] = fails
  await t.rejects(idp.verifyIdToken(await fake.idToken()))
  fake.responses['/keys'] = keys!
  t.match(await idp.verifyIdToken(await fake.idToken()), { id: fake.claims.sub }, 'they are fetched again')
})

t.test('An unknown key id fetches the keys again, at most once in half a minute', async t => {
  const { fake, idp } = await start(t)
  const fetched = () => fake.requests.filter(path => path === '/keys').length
  await idp.verifyIdToken(await fake.idToken())
  t.equal(fetched(), 1)

  const rotated = await newKey('RS256', 'two')
  fake.responses['/keys'] = { keys: [rotated.jwk] }
  const token = await fake.idToken({}, { kid: 'two' }, rotated.key)
  for (let times = 0; times < 5; times++) await t.rejects(idp.verifyIdToken(token))
  t.equal(fetched(), 1, 'not within half a minute')

  later(t, 31_000)
  t.match(await idp.verifyIdToken(token), { id: fake.claims.sub })
  t.equal(fetched(), 2, 'after half a minute')
  await t.rejects(idp.verifyIdToken(await fake.idToken()), 'the old key is gone')
  for (let times = 0; times < 5; times++) {
    await t.rejects(idp.verifyIdToken(await fake.idToken({}, { kid: randomUUID() }, rotated.key)))
  }
  t.equal(fetched(), 2, 'unknown key ids fetch nothing more')
})

t.test('Google needs no discovery', async t => {
  const google = new IdentityProvider(testConfig(CLIENT), log, KEY)
  t.match(await google.authorizationUrl('state', 'nonce'), 'https://accounts.google.com/o/oauth2/v2/auth?')
  await t.rejects(google.verifyIdToken('text'), { message: 'The ID token is invalid: Invalid Compact JWS' })
})
