import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import type { FastifyInstance } from 'fastify'

import { build, createDatabase, inject } from '../helper.ts'
import t from '../suite.ts'

const USER = { id: '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b', role: 'STUDENT' } as const

/** Shared, since no test writes. */
const DATABASE_URL = await createDatabase()
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

t.test('issueToken signs sub, role, iat and exp as HS256 with JWT_SECRET, and nothing else', async t => {
  const token = app.issueToken({ ...USER, email: 'ada@example.org', password: 'x' } as typeof USER)
  const [header, claims] = read(token)
  t.strictSame(header, { alg: 'HS256', typ: 'JWT' })
  const { iat } = claims
  t.strictSame(claims, { sub: USER.id, userId: USER.id, role: 'STUDENT', iat, exp: iat + 7 * 24 * 3600 })
  t.equal(token.split('.')[2], signature(token, app.config.JWT_SECRET!))
})

t.test('verifyToken returns the user of a valid token, and undefined for others', async t => {
  const token = app.issueToken(USER)
  t.strictSame(app.verifyToken(token), {
    ...USER, issuedAt: read(token)[1].iat, expiresAt: read(token)[1].exp,
  })
  const plain = app.jwt.sign({ role: 'ADMIN' } as never, { noTimestamp: true })
  const { exp: expiresAt } = read(plain)[1]
  t.strictSame(app.verifyToken(plain), { id: '', role: 'ADMIN', issuedAt: 0, expiresAt }, 'no id and no time')
  for (const token of ['', 'x', 'a.b.c', `${app.issueToken(USER)}x`, `Bearer ${app.issueToken(USER)}`]) {
    t.equal(app.verifyToken(token), undefined, token)
  }
})

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc')

function heap () {
  collect()
  return process.memoryUsage().heapUsed
}

t.test('Only verified tokens are kept', async t => {
  const before = heap()
  // Each is a token in its form, but not one of the service, and longer or shorter than the service verifies.
  for (let n = 0; n < 10_000; n++) {
    const payload = Buffer.from(JSON.stringify({ n, rest: 'x'.repeat(n % 2 ? 600 : 11_000) })).toString('base64url')
    if (app.verifyToken(`eyJhbGciOiJIUzI1NiJ9.${payload}.${'A'.repeat(43)}`)) t.fail('it was verified')
  }
  const grown = (heap() - before) / 1e6
  t.ok(grown < 20, `the heap grew by ${grown.toFixed(0)} MB`)
})

t.test('A token with more than 1,024 characters is invalid', async t => {
  const sign = (length: number) => app.jwt.sign({ ...USER, rest: 'x'.repeat(length) } as never, { noTimestamp: true })
  t.ok(app.verifyToken(sign(400)))
  t.equal(app.verifyToken(sign(1000)), undefined)
})

t.test('A verified token ends when it expires', async t => {
  const token = app.jwt.sign({ sub: USER.id, role: USER.role } as never, { expiresIn: '1h' })
  t.ok(app.verifyToken(token))
  const { now } = Date
  t.intercept(Date, 'now', { value: () => now() + 3_599_000 })
  t.ok(app.verifyToken(token))
  t.intercept(Date, 'now', { value: () => now() + 3_601_000 })
  t.equal(app.verifyToken(token), undefined)
})

t.test('verifyToken ignores a sub that is not a string', async t => {
  for (const sub of [[USER.id], { id: USER.id }, { toString: 1 }, 7, true, null]) {
    const user = app.verifyToken(app.jwt.sign({ sub, role: 'ADMIN' } as never))
    t.strictSame([user?.id, user?.role], ['', 'ADMIN'], JSON.stringify(sub))
  }
})

t.test('JWT_EXPIRES_IN sets the lifetime of a token', async t => {
  for (const [JWT_EXPIRES_IN, seconds] of [['15m', 900], ['2w', 1_209_600]] as const) {
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
