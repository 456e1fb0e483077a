import { randomUUID } from 'node:crypto'

import { inject, person, untilBlocked } from '../../helper.ts'
import { type Account, html, startFakeProvider } from '../../provider.ts'
import t from '../../suite.ts'
import { setUp } from './google-fixtures.ts'

const {
  add, app, count, fake, fakeApp, me, postToken, provider, service, signIn, stored, testLog,
} = await setUp(t)

/** Both ways to sign in with the provider. They resolve to an application token. */
const WAYS: Record<string, (account: Account) => Promise<string>> = {
  'POST /auth/google': async account => (await postToken(await provider.idToken(account))).json().token,
  'GET /auth/google/callback': async account => (await signIn(account)).token!,
}

for (const [way, signIn] of Object.entries(WAYS)) {
  t.test(`${way} creates an account: STUDENT, with names and picture, without a password`, async t => {
    const account = add()
    const token = await signIn(account)
    const { id, created_at: created, updated_at: updated, email_verified_at: verified, ...row } =
      await stored(account.email)
    t.ok(verified instanceof Date)
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

  t.test(`${way} creates an account from minimal claims`, async t => {
    const account = add({ given_name: undefined!, family_name: undefined!, picture: undefined! })
    await signIn(account)
    t.match(await stored(account.email),
      { first_name: account.email!.split('@')[0], last_name: '', avatar: null, idp_id: account.sub })
  })

  t.test(`${way} links an account without idpId, and sets its picture if it has none`, async t => {
    for (const avatar of [null, 'https://example.org/own.png']) {
      const account = add()
      const { id } = await person(app, 'CLUB_HEAD', { email: account.email, avatar, first_name: 'Grace' })
      const before = await stored(account.email)
      t.match(app.jwt.verify(await signIn(account)), { sub: id, role: 'CLUB_HEAD' })
      const { updated_at: updated, email_verified_at: verified, ...row } = await stored(account.email)
      t.strictSame({ ...row, updated_at: before.updated_at, email_verified_at: null },
        { ...before, idp_id: account.sub, avatar: avatar ?? account.picture })
      t.ok(updated > before.updated_at && verified instanceof Date)
    }
  })

  t.test(`${way} leaves a linked account unchanged`, async t => {
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

  t.test(`${way} signs in to the account that it created`, async t => {
    const account = add()
    const first = await signIn(account)
    const before = await stored(account.email)
    Object.assign(account, { given_name: 'Grace', picture: 'https://example.org/new.png', sub: randomUUID() })
    t.equal((await me(await signIn(account))).id, (await me(first)).id)
    t.strictSame(await stored(account.email), before)
  })

  t.test(`${way}: concurrent first sign-ins of a person create one account`, async t => {
    const account = add()
    const tokens = await Promise.all(Array.from({ length: 6 }, () => signIn(account)))
    const { id } = await stored(account.email)
    for (const token of tokens) t.match(app.jwt.verify(token), { sub: id, role: 'STUDENT' })
    t.equal(await count(account.email), 1)
  })

  t.test(`${way} finds the account that a concurrent sign-in creates`, async t => {
    const account = add()
    const { token, id } = await app.sql.begin(async sql => {
      const [row] = await sql`
        INSERT INTO users (email, password, first_name, last_name, idp_id, role)
        VALUES (${account.email!}, '!', 'Ada', 'Lovelace', 'another', 'ADMIN') RETURNING id
      `
      const token = signIn(account)
      await untilBlocked(app.sql)
      return { token: [token], id: row!.id }
    })
    t.match(app.jwt.verify(await token[0]!), { sub: id, role: 'ADMIN' })
    t.match(await stored(account.email), { idp_id: 'another' })
  })
}

t.test('POST /auth/google returns 200 with the account and a token, as POST /auth/login does', async t => {
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

t.test('POST /auth/google stores the email as the provider sends it', async t => {
  const account = add({ email: `Ada.${randomUUID()}@Example.ORG` })
  await person(app, 'ADMIN', { email: account.email!.toLowerCase() })
  t.strictSame((await postToken(await provider.idToken(account))).json().user.role, 'STUDENT')
})

t.test('POST /auth/google returns 400 without an idToken; a body that is not an object counts as {}', async t => {
  for (const body of ['{}', '[]', 'null', '"text"', '7', '[{"idToken":"x"}]', '', '{"idToken":""}', '{"idToken":0}']) {
    const response = await inject(app, 'POST', '/auth/google', body, { 'content-type': 'application/json' })
    t.strictSame([response.statusCode, response.json()], [400, { message: 'idToken is required' }], body)
  }
  const response = await inject(app, 'POST', '/auth/google')
  t.strictSame([response.statusCode, response.json()], [400, { message: 'idToken is required' }], 'no body')
})

t.test('POST /auth/google returns 401 for an idToken that is not a string', async t => {
  for (const idToken of [1, true, {}, [], ['x'], { toString: 1 }]) {
    const response = await postToken(idToken)
    t.strictSame([response.statusCode, response.json()], [401, { message: 'IdP login failed' }])
  }
})

t.test('POST /auth/google returns 401 for a token without a verified email', async t => {
  for (const claims of [{ email: undefined! }, { email: '' }, { email: 'former-member' }, { email_verified: false }]) {
    const account = add(claims)
    const response = await postToken(await provider.idToken(account))
    t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid IdP token' }])
    t.equal(await count(account.email), 0)
  }
  const account = add({ email_verified: false })
  await person(app, 'ADMIN', { email: account.email })
  const response = await postToken(await provider.idToken(account))
  t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid IdP token' }])
  t.match(await stored(account.email), { idp_id: null }, 'an unverified email takes over no account')
})

t.test('POST /auth/google returns 401 for a token that does not verify', async t => {
  const tokens: Record<string, string> = {
    'no token': 'text',
    'another audience': await fake.idToken({ aud: 'another' }),
    'an application token': (await person(fakeApp, 'ADMIN')).token,
    'a token of another provider': await provider.idToken(add()),
  }
  for (const [what, token] of Object.entries(tokens)) {
    const response = await postToken(token, fakeApp)
    t.strictSame([response.statusCode, response.json()], [401, { message: 'IdP login failed' }], what)
  }
  t.equal(await count(fake.claims.email, fakeApp), 0)
  t.equal((await postToken(await fake.idToken(), fakeApp)).statusCode, 200, 'a valid token passes')
})

t.test('POST /auth/google returns 401 when the provider, the database or signing fails', async t => {
  const failed = [401, { message: 'IdP login failed' }]
  const down = await startFakeProvider(t)
  const app = await service(t, { IDP_ISSUER: down.issuer })
  const idToken = await down.idToken({ sub: 'subject' })

  down.responses['/keys'] = html
  const response = await postToken(idToken, app)
  t.strictSame([response.statusCode, response.json()], failed, 'keys')

  Object.assign(down.responses, { '/keys': { keys: [down.rsa.jwk] } })
  const nul = await postToken(await down.idToken({ email: 'nul\u0000@example.org' }), app)
  t.strictSame([nul.statusCode, nul.json()], failed, 'text that PostgreSQL cannot store')

  const { issueToken } = app
  Object.assign(app, { issueToken () { throw new Error('no key') } })
  const unsigned = await postToken(idToken, app)
  t.strictSame([unsigned.statusCode, unsigned.json()], failed, 'signing')
  Object.assign(app, { issueToken })

  await app.sql.end({ timeout: 0 })
  const stored = await postToken(idToken, app)
  t.strictSame([stored.statusCode, stored.json()], failed, 'database')
})

t.test('POST /auth/google returns 500 without a client id, and needs no other variable', async t => {
  const bare = await service(t, { IDP_ISSUER: provider.issuer, IDP_CLIENT_ID: '' })
  t.equal((await inject(bare, 'POST', '/auth/google', {})).statusCode, 400, 'after validation of the body')
  const response = await postToken('text', bare)
  const { details, ...body } = response.json()
  t.equal(response.statusCode, 500)
  t.strictSame(body, { message: 'IdP client not configured', missingVariable: 'IDP_CLIENT_ID' })
  t.match(details, /^Set IDP_CLIENT_ID\b/)

  const small = await service(t, { IDP_ISSUER: provider.issuer, IDP_CLIENT_SECRET: '', IDP_REDIRECT_URI: '' })
  t.equal((await postToken(await provider.idToken(add()), small)).statusCode, 200)
})

testLog()
