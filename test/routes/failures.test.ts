import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { ROLES } from '#lib/roles.js'
import { buildApp } from '#lib/app.js'
import { createLogger } from '#lib/http/logger.js'
import { recordResponses } from '../responses.ts'
import { bearer, build, createDatabase, inject, MAIL, person, testConfig, untilBlocked } from '../helper.ts'
import { ACCOUNT } from '../fixtures.ts'
import { type Operation, OPERATIONS, roleFor } from '../operations.ts'
import t from '../suite.ts'

/** Replaces an id in a path. */
const UNKNOWN = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'

/** Operations with a failure. Some responses of identity-provider operations do not depend on the database. */
const FAILING = Object.entries(OPERATIONS).filter(([, { failure }]) => failure)
const ON_THE_DATABASE = FAILING.filter(([operation]) => !operation.includes(' /auth/google'))

const lines: object[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
const app = buildApp(testConfig({ ...MAIL, DATABASE_URL: await createDatabase(t) }), createLogger('error', stream))
recordResponses(app)
t.teardown(() => app.close())

const declared: Record<string, unknown> = {}
app.addHook('onRoute', ({ method, url, config }) => {
  if (config?.failure && method !== 'HEAD') declared[`${String(method)} ${url}`] = config.failure
})
const requests: string[] = []
app.addHook('onRequest', async ({ id }) => { requests.push(id) })
await app.ready()

const ofType = ({ type }: Operation): Record<string, string> => type === undefined ? {} : { 'content-type': type }

/** A user of each role. */
const addPeople = async (to = app) =>
  Object.fromEntries(await Promise.all(ROLES.map(async role => [role, await person(to, role)] as const)))

const people = await addPeople()
await app.sql.end({ timeout: 0 })

t.test('Each operation declares its failure', async t => {
  const listed = Object.fromEntries(FAILING.map(([operation, { failure }]) => [operation, failure]))
  t.strictSame(declared, listed, 'add what is missing to OPERATIONS in test/operations.ts')
})

for (const [operation, entry] of ON_THE_DATABASE) {
  const { failure, body: payload } = entry
  const role = roleFor(entry)
  const [status, body] = typeof failure === 'string'
    ? [500, { message: failure }]
    : [failure!.status, failure!.body]
  t.test(`${operation} returns ${status} ${JSON.stringify(body)} without a database, and logs the cause`, async t => {
    const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
    lines.length = requests.length = 0
    const response = await inject(app, method, pattern.replace(/:\w+/, UNKNOWN), payload, {
      'accept-encoding': 'br', ...ofType(entry), ...role && { authorization: `Bearer ${people[role]!.token}` },
    })
    t.equal(response.statusCode, status)
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    t.strictSame(response.json(), body)
    const { 'cache-control': cacheControl, etag, 'content-encoding': encoding } = response.headers
    t.strictSame([cacheControl, etag, encoding], ['no-store', undefined, undefined], 'a failure is not cacheable')

    t.match(lines, [{ level: 50, reqId: requests[0], err: { message: /CONNECTION_ENDED/, stack: /\n +at / } }])
    t.equal(lines.length, 1, 'one line')
    for (const secret of ['correct horse', 'battery staple', '$argon2id$', ...role ? [people[role]!.token] : []]) {
      t.notOk(JSON.stringify(lines).includes(secret), 'no secret is logged')
    }
  })
}

t.test('POST /auth/register and /auth/login return their 500 when a token cannot be signed', async t => {
  const app = await build(t)
  await inject(app, 'POST', '/auth/register', ACCOUNT)
  Object.assign(app, { issueToken () { throw new Error('no key') } })
  const register = await inject(app, 'POST', '/auth/register', { ...ACCOUNT, email: 'grace@example.org' })
  t.strictSame([register.statusCode, register.json()], [500, { message: 'Registration failed' }])
  const login = await inject(app, 'POST', '/auth/login', { email: ACCOUNT.email, password: ACCOUNT.password })
  t.strictSame([login.statusCode, login.json()], [500, { message: 'Login failed' }])
})

t.test('When MAX_REQUESTS wait, every operation returns 503', async t => {
  const DATABASE_URL = await createDatabase(t)
  const app = await build(t, {
    ...MAIL, DATABASE_URL, DATABASE_POOL_SIZE: '1', DATABASE_TIMEOUT: '60', MAX_REQUESTS: '1',
  })
  const people = await addPeople(app)
  const sql = postgres(DATABASE_URL, { max: 2 })
  t.teardown(() => sql.end())
  const { waiting } = await sql.begin(async tx => {
    await tx`LOCK TABLE mentor_likes`
    // One more than run at once, of each kind: eight operations, one that hashes, one list.
    const waiting = Array.from({ length: 9 }, () => people.STUDENT!.inject('POST', `/mentors/${UNKNOWN}/like`))
    await untilBlocked(sql)
    for (const n of ['1', '2']) {
      waiting.push(inject(app, 'POST', '/auth/register', { ...ACCOUNT, email: `waits-${n}@example.org` }))
      waiting.push(inject(app, 'GET', `/testimonials?limit=${n}`))
    }
    await sleep(1000)
    await Promise.all(FAILING.map(async ([operation, entry]) => {
      const role = roleFor(entry)
      const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
      const response = await inject(app, method, pattern.replace(/:\w+/, UNKNOWN), entry.body,
        { ...ofType(entry), ...role && bearer(people[role]!.token) })
      if (operation === 'GET /mentors') t.strictSame([response.statusCode, response.json()], [200, { mentors: [] }])
      else t.strictSame([response.statusCode, response.headers['retry-after']], [503, '2'], operation)
    }))
    return { waiting }
  })
  for (const { statusCode } of await Promise.all(waiting)) t.ok([200, 201, 404].includes(statusCode), `${statusCode}`)
})
