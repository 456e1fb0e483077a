import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { FastifyInstance } from 'fastify'

import { ROLES } from '#lib/roles.js'
import { buildApp } from '#lib/app.js'
import { build, createDatabase, inject, testConfig } from '../helper.ts'
import t from '../suite.ts'

const USER = { id: '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b', role: 'STUDENT' } as const

/** Shared, since no test writes. */
const DATABASE_URL = await createDatabase(t)
const app = await build(t, { DATABASE_URL })

/** Decodes the header and the claims of a token. */
const read = (token: string) =>
  token.split('.').slice(0, 2).map(part => JSON.parse(Buffer.from(part, 'base64url').toString()))

const signature = (token: string, secret: string) =>
  createHmac('sha256', secret).update(token.slice(0, token.lastIndexOf('.'))).digest('base64url')

const me = async (app: FastifyInstance, token: string) => {
  const response = await inject(app, 'GET', '/auth/me', undefined, { authorization: `Bearer ${token}` })
  return response.json().message
}

t.test('issueToken signs sub, role, iat and exp as HS256 with JWT_SECRET', async t => {
  const token = app.issueToken(USER)
  const [header, claims] = read(token)
  t.strictSame(header, { alg: 'HS256', typ: 'JWT' })
  const { iat } = claims
  t.strictSame(claims, { sub: USER.id, userId: USER.id, role: 'STUDENT', iat, exp: iat + 7 * 24 * 3600 })
  t.equal(token.split('.')[2], signature(token, app.config.JWT_SECRET!))
})

t.test('issueToken puts nothing else of a user into the token', async t => {
  const [, claims] = read(app.issueToken({ ...USER, email: 'ada@example.org', password: 'x' } as typeof USER))
  t.strictSame(Object.keys(claims).sort(), ['exp', 'iat', 'role', 'sub', 'userId'])
})

t.test('verifyToken returns the user of a valid token, and undefined for others', async t => {
  t.strictSame(app.verifyToken(app.issueToken(USER)), USER)
  t.strictSame(app.verifyToken(app.jwt.sign({ role: 'ADMIN' } as never)), { id: '', role: 'ADMIN' }, 'no id')
  for (const token of ['', 'x', 'a.b.c', `${app.issueToken(USER)}x`, `Bearer ${app.issueToken(USER)}`]) {
    t.equal(app.verifyToken(token), undefined, token)
  }
})

t.test('verifyToken ignores a sub that is not a string', async t => {
  for (const sub of [[USER.id], { id: USER.id }, { toString: 1 }, 7, true, null]) {
    const user = app.verifyToken(app.jwt.sign({ sub, role: 'ADMIN' } as never))
    t.strictSame(user, { id: '', role: 'ADMIN' }, JSON.stringify(sub))
  }
})

t.test('JWT_EXPIRES_IN sets the lifetime of a token', async t => {
  const lifetimes: [string, number][] = [['1s', 1], ['15m', 900], ['12h', 43_200], ['1d', 86_400], ['2w', 1_209_600]]
  for (const [JWT_EXPIRES_IN, seconds] of lifetimes) {
    const app = await build(t, { DATABASE_URL, JWT_EXPIRES_IN })
    const [, { iat, exp }] = read(app.issueToken(USER))
    t.equal(exp - iat, seconds, JWT_EXPIRES_IN)
  }
})

t.test('Without JWT_SECRET the secret is stored in DATA_DIR, so that tokens survive a restart', async t => {
  const DATA_DIR = t.testdir()
  const app = await build(t, { DATABASE_URL, JWT_SECRET: '', DATA_DIR })
  const token = app.issueToken(USER)
  const file = join(DATA_DIR, 'jwt-secret')
  const secret = readFileSync(file, 'utf8')
  t.ok(secret.length >= 32)
  t.equal(token.split('.')[2], signature(token, secret))
  await app.close()

  const restarted = await build(t, { DATABASE_URL, JWT_SECRET: '', DATA_DIR })
  t.equal(await me(restarted, token), 'Unauthorized', 'valid, for an unknown user')
})

t.test('Guards set request.user from the claims', async t => {
  const app = buildApp(testConfig({ DATABASE_URL }))
  t.teardown(() => app.close())
  app.register(async app => {
    app.get('/any', { onRequest: app.authenticate }, async ({ user }) => user)
    app.get('/some', { onRequest: app.requireRole('CLUB_HEAD', 'ADMIN') }, async ({ user }) => user)
    app.get('/none', async ({ user }) => ({ user }))
  })
  await app.ready()

  t.strictSame(app.authenticate.roles, [], 'any role')
  t.strictSame(app.requireRole('CLUB_HEAD', 'ADMIN').roles, ['CLUB_HEAD', 'ADMIN'])

  const send = async (url: string, token = '') => {
    const response = await inject(app, 'GET', url, undefined, { authorization: `Bearer ${token}` })
    return [response.statusCode, response.json()]
  }
  for (const role of ROLES) {
    const user = { id: USER.id, role }
    const token = app.issueToken(user)
    t.strictSame(await send('/any', token), [200, user])
    t.strictSame(await send('/some', token), role === 'STUDENT' ? [403, { message: 'Forbidden' }] : [200, user])
    t.strictSame((await send('/none', token))[0], 200)
  }
  t.strictSame(await send('/none'), [200, { user: null }], 'no guard, no user')
})
