import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { type Role, ROLES } from '#lib/values/roles.js'
import { Sender } from '#lib/email/sender.js'
import { createLogger } from '#lib/http/logger.js'
import { recordResponses } from '../responses.ts'
import {
  bearer, build, createDatabase, inject, insert, MAIL, make, type Person, person, untilBlocked,
} from '../helper.ts'
import { ACCOUNT, BLOG, MENTOR } from '../fixtures.ts'
import { EXPECTED_500S } from '../fuzz/failures.ts'
import { EVENT, type Operation, OPERATIONS, roleFor } from '../operations.ts'
import t from '../suite.ts'

/** Replaces an id in a path. */
const UNKNOWN = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'

/** Operations with a failure. Some responses of identity-provider operations do not depend on the database. */
const FAILING = Object.entries(OPERATIONS).filter(([, { failure }]) => failure)
const ON_THE_DATABASE = FAILING.filter(([operation]) => !operation.includes(' /auth/google'))

const lines: object[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
const DATABASE_URL = await createDatabase()
// No sender runs in this file: it would log that it has no database in the middle of a test.
t.intercept(Sender.prototype, 'start', { value () {} })
const { app } = await make(t, { ...MAIL, DATABASE_URL }, createLogger('error', stream))
recordResponses(app)

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

t.test('A mistake of a person that gets a 500 by the contract is one line at warn, with its cause', async t => {
  const lines: object[] = []
  const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
  const app = await build(t, { DATABASE_URL, FRONTEND_URL: MAIL.FRONTEND_URL }, createLogger('warn', stream))
  const club = await insert(app, 'clubs', { name: 'Taken' })
  const { ADMIN, CLUB_HEAD, STUDENT } = await addPeople(app) as Record<Role, Person>
  await app.sql`UPDATE users SET club_id = ${club} WHERE id = ${CLUB_HEAD.id}`
  await app.sql`UPDATE clubs SET club_head_id = ${CLUB_HEAD.id}`
  await insert(app, 'blogs', { author_id: STUDENT.id })
  const event = await insert(app, 'events', { club_id: club })
  const mentor = await insert(app, 'mentors', { club_id: club })
  const gone = await person(app, 'ADMIN')
  await app.sql`DELETE FROM users WHERE id = ${gone.id}`
  const newClub = { name: 'New', description: 'About it', clubHeadEmail: STUDENT.email }
  /** For each operation: who makes the mistake, in the body or the path. */
  const MISTAKES: Record<string, [who: Person, path: string, body?: object][]> = {
    'POST /blogs/submit': [[gone, '', BLOG]],
    'POST /blogs': [[gone, '', BLOG]],
    'PUT /blogs/:id': [[ADMIN, UNKNOWN, {}], [ADMIN, 'no-id', {}]],
    'POST /blogs/:id/approve': [[ADMIN, UNKNOWN]],
    'POST /blogs/:id/archive': [[ADMIN, UNKNOWN]],
    'DELETE /blogs/:id': [[ADMIN, UNKNOWN]],
    'GET /auth/google/callback': [[STUDENT, '?code=x&state=wrong']],
    'PUT /users/:id': [
      { email: ADMIN.email }, { clubId: '' }, { clubId: UNKNOWN },
    ].map(body => [ADMIN, STUDENT.id, body]),
    'PUT /users/:userId/role': [[ADMIN, UNKNOWN, { newRole: 'ADMIN' }]],
    'PUT /users/:userId/club': [[ADMIN, UNKNOWN, { clubId: club }], [ADMIN, STUDENT.id, { clubId: UNKNOWN }]],
    'DELETE /users/:id': [[ADMIN, STUDENT.id]],
    'POST /mentors/:mentorId/like': [[gone, mentor]],
    'POST /mentors': [[ADMIN, '', { ...MENTOR, clubId: UNKNOWN }]],
    'PUT /mentors/:id': [
      [ADMIN, UNKNOWN, {}], [ADMIN, mentor, { clubId: UNKNOWN }], [ADMIN, mentor, { networkUrl: null }],
    ],
    'DELETE /mentors/:id': [[ADMIN, UNKNOWN]],
    'GET /testimonials': ['page=x', 'limit=x', 'page=9223372036854775807'].map(query => [STUDENT, `?${query}`]),
    'PUT /testimonials/:id': [[ADMIN, UNKNOWN, {}]],
    'DELETE /testimonials/:id': [[ADMIN, UNKNOWN]],
    'POST /clubs': [
      { name: 'Taken' }, { clubHeadEmail: CLUB_HEAD.email }, { name: 7 }, { imageUrl: 7 }, { description: '\0' },
    ].map(fields => [ADMIN, '', { ...newClub, ...fields }]),
    'GET /events': [
      'limit=-1', 'page=-1', 'limit=99999999999999999999', 'page=9223372036854775807',
    ].map(query => [STUDENT, `?${query}`]),
    'POST /events': ['never', '-000001-01-01', '+275760-09-13'].map(data => [CLUB_HEAD, '', { ...EVENT, data }]),
    'PUT /events/:id': [[ADMIN, event, { data: 'never' }], [ADMIN, event, { clubId: UNKNOWN }]],
    'POST /events/:eventId/register': [[STUDENT, UNKNOWN], [gone, event]],
  }
  t.strictSame(Object.keys(MISTAKES).sort(), Object.keys(EXPECTED_500S).sort(), 'as in test/fuzz/failures.ts')
  for (const [operation, mistakes] of Object.entries(MISTAKES)) {
    const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
    for (const [{ token, id }, path, body] of mistakes) {
      lines.length = 0
      const url = /:\w+/.test(pattern) ? pattern.replace(/:\w+/, path) : pattern + path
      const response = await inject(app, method, url, body, bearer(token))
      t.equal(response.statusCode, 500, url)
      t.match(response.body, String(OPERATIONS[operation]!.failure), url)
      const who = method === 'GET' ? {} : { actor: id }
      t.match(lines, [{ level: 40, msg: 'Request refused', cause: /^\w[^\n]+$/, ...who }], url)
      t.equal(lines.length, 1)
    }
  }
})

t.test('When MAX_REQUESTS wait, every operation returns 503', async t => {
  const app = await build(t, {
    ...MAIL, DATABASE_URL, DATABASE_POOL_SIZE: '1', DATABASE_TIMEOUT: '60', MAX_REQUESTS: '1',
  })
  const { operations, outside, lists } = app.queues
  const people = await addPeople(app)
  const sql = postgres(DATABASE_URL, { max: 2 })
  await sql`TRUNCATE mentors CASCADE`
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
    while ([operations, outside, lists].some(({ waiting }) => waiting === 0)) await sleep(5)
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
