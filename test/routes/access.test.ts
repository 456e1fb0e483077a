import { createHmac, generateKeyPairSync, sign as signWithKey } from 'node:crypto'

import { type Role, ROLES } from '#lib/values/roles.js'
import { assertComplete, assertInvalid, assertMessage } from '../assertions.ts'
import { bearer, bearerOfJson, buildWithRoutes, inject, MAIL, nameOf, type Person, person } from '../helper.ts'
import { ANY_USER, OPERATIONS, roleFor } from '../operations.ts'
import t from '../suite.ts'

/** Probes, the API description with its page, and the link of emails to the browser app. */
const OTHERS = [
  'GET /livez', 'GET /readyz', 'GET /openapi.json',
  'GET /docs', 'GET /docs/guides/:name', 'GET /docs/json', 'GET /docs/yaml',
  'HEAD,GET /docs/static/*', 'GET /docs/static/index.html',
  'GET /docs/static/swagger-initializer.js', 'GET /docs/static/theme/page.css', 'GET /docs/static/theme/page.js',
  'GET /account/unsubscribe/:token',
]

const { app, routes } = await buildWithRoutes(t, MAIL)

const [student, head, admin] = await Promise.all(ROLES.map(role => person(app, role))) as [Person, Person, Person]
const people = { STUDENT: student, CLUB_HEAD: head, ADMIN: admin }

for (const route of routes.filter(({ schema }) => schema?.body)) {
  t.test(`${nameOf(route)} requires a body that is an object`, async t => {
    const { token } = people[roleFor(OPERATIONS[nameOf(route)]!) ?? 'STUDENT']
    for (const payload of ['[]', '[{}]', 'null', '"text"', '5', 'true']) {
      const method = route.method as 'POST' | 'PUT' | 'DELETE'
      const url = route.url.replace(/:\w+/, 'unknown')
      assertInvalid(t, await inject(app, method, url, payload, bearerOfJson(token)), [''], payload)
    }
  })
}

t.test('The service has exactly these operations', async t => {
  const entries = [...Object.keys(OPERATIONS), ...OTHERS]
  assertComplete(t, entries, routes.map(nameOf), 'OPERATIONS in test/operations.ts')
  t.equal(new Set(routes.map(nameOf)).size, routes.length, 'each once')
  for (const route of routes) {
    const { fields } = OPERATIONS[nameOf(route)] ?? {}
    const { properties } = (route.schema?.body ?? {}) as { properties?: object }
    if (!fields || !properties) continue
    assertComplete(t, Object.keys(fields), Object.keys(properties), `fields of ${nameOf(route)} in test/operations.ts`)
  }
})

for (const field of ['password', 'idpId']) {
  t.test(`Only two updates of a user return ${field}`, async t => {
    const showing = routes.filter(({ schema }) => JSON.stringify(schema?.response).includes(`"${field}":`))
    t.strictSame(showing.map(nameOf).sort(), ['PUT /users/:id', 'PUT /users/:userId/club'])
  })
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs a token by hand, as HS256 with the secret of the service unless overridden. */
function sign (
  claims: unknown, { alg = 'HS256', hash = 'sha256', secret = app.config.JWT_SECRET!, header = {} } = {}
) {
  const signed = `${encode({ alg, typ: 'JWT', ...header })}.${encode(claims)}`
  return `${signed}.${hash && createHmac(hash, secret).update(signed).digest('base64url')}`
}

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Signs a token with a key that its header contains. */
function signWithOwnKey (claims: object) {
  const signed = `${encode({ alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) })}.${encode(claims)}`
  const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const
  return `${signed}.${signWithKey('sha256', Buffer.from(signed), key).toString('base64url')}`
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** A different spelling of the same signature: two bits of its last character are unused. */
function respell (token: string) {
  return token.slice(0, -1) + BASE64URL[BASE64URL.indexOf(token.at(-1)!) + 1]
}

const now = Math.floor(Date.now() / 1000)
/** Valid claims, with the role that the operation requires. */
const claims = (role: unknown) => ({ sub: student.id, role, iat: now, exp: now + 3600 })

const MISSING = 'Access token required'
const INVALID = 'Invalid or expired token'
const FOREIGN = 'another secret, just as long as ours'

/** Headers without a valid token for a role that would be allowed, and the message of the 401. */
const refused = (role: Role): [string, string | undefined, string][] => {
  const valid = sign(claims(role))
  return [
    ['no header', undefined, MISSING],
    ['an empty second segment', 'Bearer ', MISSING],
    ['two spaces', `Bearer  ${valid}`, MISSING],
    ['a token without a scheme word', valid, MISSING],
    ['a tab for the space', `Bearer\t${valid}`, MISSING],
    ['garbage', 'Bearer garbage', INVALID],
    ['credentials of a different scheme', 'Basic YWRhOnBhc3N3b3Jk', INVALID],
    ['the token in the third segment', `Bearer x ${valid}`, INVALID],
    ['an expired token', `Bearer ${sign({ ...claims(role), exp: now - 1 })}`, INVALID],
    ['a different secret', `Bearer ${sign(claims(role), { secret: FOREIGN })}`, INVALID],
  ]
}

t.test('A token that was not signed by the service is refused', async t => {
  const role = 'ADMIN'
  const valid = sign(claims(role))
  const [header, payload, signature] = valid.split('.') as [string, string, string]
  const tokens: Record<string, string> = {
    'not valid yet': sign({ ...claims(role), nbf: now + 3600 }),
    'an empty secret': sign(claims(role), { secret: '' }),
    'alg none': sign(claims(role), { alg: 'none', hash: '' }),
    'alg None': sign(claims(role), { alg: 'None', hash: '' }),
    'alg none with a signature': sign(claims(role), { alg: 'none' }),
    'no alg': sign(claims(role), { header: { alg: undefined } }),
    'alg as a list': sign(claims(role), { header: { alg: ['HS256'] } }),
    HS512: sign(claims(role), { alg: 'HS512', hash: 'sha512' }),
    'the secret as the key of RS256': sign(claims(role), { alg: 'RS256' }),
    'a key in the header': signWithOwnKey(claims(role)),
    'a kid that is an empty file': sign(claims(role), { secret: '', header: { kid: '/dev/null' } }),
    'a jku elsewhere': sign(claims(role), { secret: FOREIGN, header: { jku: 'https://evil.example/keys' } }),
    'a critical extension': sign(claims(role), { header: { crit: ['x'], x: 1 } }),
    'a changed header': `${encode({ alg: 'HS256' })}.${payload}.${signature}`,
    'changed claims': `${header}.${encode({ ...claims(role), sub: 'x' })}.${signature}`,
    'a later expiry': `${header}.${encode({ ...claims(role), exp: now + 36_000 })}.${signature}`,
    'exp as text': sign({ ...claims(role), exp: String(now + 3600) }),
    'claims in a list': sign([claims(role)]),
    'no signature': `${header}.${payload}.`,
    'two parts': `${header}.${payload}`,
    'four parts': `${valid}.`,
    'no claims': `${header}..${signature}`,
    'a shorter signature': valid.slice(0, -1),
    'a different spelling of the signature': respell(valid),
    'a token in a token': sign(valid),
    'a huge token': `${header}.${'x'.repeat(15_000)}.${signature}`,
  }
  for (const [what, token] of Object.entries(tokens)) {
    const response = await inject(app, 'GET', '/users', undefined, bearer(token))
    assertMessage(t, response, 401, INVALID, what)
  }
})

t.test('The scheme of a token is any word, and a third segment is ignored', async t => {
  for (const format of ['bearer ?', 'Token ?', 'x ?', 'Bearer ? x']) {
    const authorization = format.replace('?', admin.token)
    t.equal((await inject(app, 'GET', '/users', undefined, { authorization })).statusCode, 200, authorization)
  }
})

for (const [operation, { access }] of Object.entries(OPERATIONS)) {
  const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
  const url = pattern.replace(/:\w+/, 'unknown')
  const send = async (authorization: string | undefined, payload?: unknown, path = url) => {
    const response = await inject(app, method, path, payload, {
      ...authorization === undefined ? {} : { authorization },
      ...payload === undefined ? {} : { 'content-type': 'application/json' },
    })
    if (operation === 'DELETE /me/tokens') await app.sql`DELETE FROM revoked_tokens`
    return response
  }

  if (access === 'anyone') {
    t.test(`${operation} is open to anyone`, async t => {
      for (const authorization of [undefined, 'Bearer', 'Bearer garbage', `Bearer ${student.token}`]) {
        const { statusCode } = await send(authorization)
        t.notOk([401, 403].includes(statusCode), `${authorization ?? 'no header'}: ${statusCode}`)
      }
    })
    continue
  }

  const allowed = access === ANY_USER ? ROLES : access
  const others = ROLES.filter(role => !allowed.includes(role))

  t.test(`${operation} returns 401 without a valid token`, async t => {
    const headers = refused(allowed[0]!)
    const responses = await Promise.all(headers.map(async ([what, authorization]) => {
      const response = await send(authorization)
      return [what, response.statusCode, response.json()]
    }))
    t.strictSame(responses, headers.map(([what, , message]) => [what, 401, { message }]))
  })

  t.test(`${operation} is open to ${access === ANY_USER ? 'every role' : allowed.join(', ')}`, async t => {
    for (const role of allowed) {
      const { statusCode } = await send(`Bearer ${people[role].token}`)
      t.notOk([401, 403].includes(statusCode), `${role}: ${statusCode}`)
    }
  })

  if (access !== ANY_USER) {
    t.test(`${operation} returns 403 to other roles: ${others.join(', ') || 'unknown ones'}`, async t => {
      const tokens = [
        ...others.map(role => people[role].token),
        ...['', 'admin', 'ROOT', ' ADMIN', 'ADMIN\0', 7, true, null, undefined, {}, ROLES, ['ADMIN']]
          .map(role => sign(claims(role)))
      ]
      for (const token of tokens) {
        const response = await send(`Bearer ${token}`)
        t.strictSame([response.statusCode, response.json()], [403, { message: 'Forbidden' }])
      }
    })

    t.test(`${operation} checks the role of the token, not of the database`, async t => {
      const [role, other] = [allowed.at(-1)!, others[0]]
      if (other) {
        const promoted = await person(app, role)
        const response = await send(`Bearer ${app.issueToken({ id: promoted.id, role: other })}`)
        t.strictSame([response.statusCode, response.json()], [403, { message: 'Forbidden' }])
      }
      const demoted = await person(app, other ?? 'STUDENT')
      const { statusCode } = await send(`Bearer ${app.issueToken({ id: demoted.id, role })}`)
      t.notOk([401, 403].includes(statusCode), `the claim ${role}: ${statusCode}`)
    })
  }

  if (method !== 'GET') {
    t.test(`${operation} validates the body after token and role`, async t => {
      for (const payload of ['{', '[]', '{"title": 7, "name": 7, "newRole": 7}']) {
        const anonymous = await send(undefined, payload)
        t.strictSame([anonymous.statusCode, anonymous.json()], [401, { message: MISSING }], payload)
        const stranger = await send('Bearer garbage', payload)
        t.strictSame([stranger.statusCode, stranger.json()], [401, { message: INVALID }], payload)
        for (const role of others) {
          const response = await send(`Bearer ${people[role].token}`, payload)
          t.strictSame([response.statusCode, response.json()], [403, { message: 'Forbidden' }], payload)
        }
      }
    })
  }

  if (pattern.includes(':')) {
    t.test(`${operation} checks an empty id after token and role`, async t => {
      const path = pattern.replace(/:\w+\/?/, '/')
      const anonymous = await send(undefined, undefined, path)
      t.strictSame([anonymous.statusCode, anonymous.json()], [401, { message: MISSING }])
      for (const role of others) {
        const response = await send(`Bearer ${people[role].token}`, undefined, path)
        t.strictSame([response.statusCode, response.json()], [403, { message: 'Forbidden' }])
      }
    })
  }
}
