import type { FastifyContextConfig } from 'fastify'

import { type Role, ROLES } from '#lib/auth/accounts.js'
import { buildApp } from '#lib/app.js'
import { createLogger } from '#lib/http/logger.js'
import { recordResponses } from '../responses.ts'
import { bearer, build, createDatabase, inject, MAIL, person, testConfig, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const BLOG = { title: 'A title', content: 'twenty characters or more' }
const MENTOR = { name: 'Grace', expertise: 'COBOL', clubId: 'x', imageUrl: 'https://example.org/grace.png' }
const TESTIMONIAL = { name: 'Grace', content: 'I learned a lot', batchYear: 2026 }
const CLUB = { name: 'Chess', description: 'Openings and endings', clubHeadEmail: 'ada@example.org' }
const EVENT = {
  title: 'Chess', description: 'Ten games at once', data: '2026-01-31T09:30:00.000Z', imageUrl: 'https://example.org/e.png'
}
const UNKNOWN = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const ACCOUNT = { email: 'ada@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }
const MESSAGE = { subject: 'Boards', text: 'Bring a board, please.' }
const PASSWORDS = { currentPassword: 'correct horse', newPassword: 'battery staple' }

type Failure = NonNullable<FastifyContextConfig['failure']>

/** Every operation that declares a failure, with that failure, a user who may use it, and a valid body. */
const FAILURES: [operation: string, failure: Failure, role?: Role, payload?: object][] = [
  ['POST /auth/register', 'Registration failed', undefined, ACCOUNT],
  ['POST /auth/login', 'Login failed', undefined, { email: ACCOUNT.email, password: ACCOUNT.password }],
  ['GET /auth/me', 'Internal server error', 'STUDENT'],

  ['GET /blogs', 'Failed to fetch blogs'],
  ['GET /blogs/:id', 'Failed to fetch blog'],
  ['POST /blogs/submit', 'Failed to submit blog', 'STUDENT', BLOG],
  ['GET /blogs/me', 'Failed to fetch your blogs', 'STUDENT'],
  ['GET /blogs/admin', 'Failed to fetch blogs', 'ADMIN'],
  ['POST /blogs', 'Failed to create blog', 'ADMIN', BLOG],
  ['PUT /blogs/:id', 'Failed to update blog', 'ADMIN', BLOG],
  ['POST /blogs/:id/approve', 'Failed to approve blog', 'ADMIN'],
  ['POST /blogs/:id/archive', 'Failed to archive blog', 'ADMIN'],
  ['DELETE /blogs/:id', 'Failed to delete blog', 'ADMIN'],

  ['GET /users', 'Error fetching users', 'ADMIN'],
  ['GET /users/analytics', 'Error fetching platform analytics', 'ADMIN'],
  ['PUT /users/:id', 'Error updating user', 'ADMIN', { firstName: 'Ada' }],
  ['PUT /users/:userId/role', 'Error changing role', 'ADMIN', { newRole: 'STUDENT' }],
  ['PUT /users/:userId/club', 'Error assigning user to club', 'ADMIN', { clubId: 'x' }],
  ['DELETE /users/:id', 'Error deleting user', 'ADMIN'],

  ['GET /mentors', { status: 200, body: { mentors: [] } }],
  ['POST /mentors/:mentorId/like', 'Error toggling mentor like', 'STUDENT'],
  ['GET /mentors/liked', 'Error fetching liked mentors', 'STUDENT'],
  ['POST /mentors', 'Error creating mentor', 'ADMIN', MENTOR],
  ['PUT /mentors/:id', 'Error updating mentor', 'ADMIN', MENTOR],
  ['DELETE /mentors/:id', 'Error deleting mentor', 'ADMIN'],

  ['GET /testimonials', 'Failed to fetch testimonials'],
  ['POST /testimonials', 'Failed to create testimonial', 'ADMIN', TESTIMONIAL],
  ['PUT /testimonials/:id', 'Failed to update testimonial', 'ADMIN', TESTIMONIAL],
  ['DELETE /testimonials/:id', 'Failed to delete testimonial', 'ADMIN'],

  ['GET /clubs', 'Error fetching clubs'],
  ['POST /clubs', 'Error creating club', 'ADMIN', CLUB],

  ['GET /events', 'Error fetching events'],
  ['GET /events/mine', 'Error fetching club events', 'CLUB_HEAD'],
  ['POST /events', 'Error creating event', 'CLUB_HEAD', EVENT],
  ['PUT /events/:id', 'Error updating event', 'CLUB_HEAD', EVENT],
  ['DELETE /events/:id', 'Error deleting event', 'CLUB_HEAD'],
  ['POST /events/:eventId/register', 'Error registering for event', 'STUDENT'],
  ['GET /events/registered', 'Error fetching registered events', 'STUDENT'],
  ['GET /events/:id/registrations', 'Error fetching event registrations', 'CLUB_HEAD'],

  ['GET /feeds/events.ics', 'Error fetching calendar'],
  ['GET /feeds/clubs/:id.ics', 'Error fetching calendar'],
  ['GET /feeds/me/:token.ics', 'Error fetching calendar'],
  ['GET /feeds/blogs.atom', 'Error fetching feed'],

  ['GET /exports/events/:id/registrations.csv', 'Error fetching event registrations', 'CLUB_HEAD'],
  ['GET /exports/users.csv', 'Error fetching users', 'ADMIN'],

  ['POST /account/password/forgot', 'Error sending the mail', undefined, { email: ACCOUNT.email }],
  ['POST /account/password/reset', 'Error setting the password', undefined, { token: 'x', password: ACCOUNT.password }],
  ['POST /account/email/verify', 'Error verifying the email', undefined, { token: 'x' }],
  ['POST /account/unsubscribe/:token', 'Error turning off mails'],

  ['PUT /me/password', 'Error changing password', 'STUDENT', PASSWORDS],
  ['POST /me/email/verification', 'Error sending the mail', 'STUDENT'],
  ['POST /me/calendar', 'Error creating calendar', 'STUDENT'],
  ['DELETE /me/calendar', 'Error deleting calendar', 'STUDENT'],
  ['DELETE /me/tokens', 'Error signing out', 'STUDENT'],
  ['GET /me/notifications', 'Error fetching notifications', 'STUDENT'],
  ['PUT /me/notifications', 'Error changing notifications', 'STUDENT', { notifications: { registration: false } }],
  ['POST /me/events/:id/message', 'Error sending the message', 'CLUB_HEAD', MESSAGE],
  ['GET /me/export', 'Error exporting data', 'STUDENT'],
]

const lines: object[] = []
const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
const app = buildApp(testConfig({ ...MAIL, DATABASE_URL: await createDatabase(t) }), createLogger('error', stream))
recordResponses(app)
t.teardown(() => app.close())

const declared: Record<string, Failure> = {}
app.addHook('onRoute', ({ method, url, config }) => {
  // Some responses of the OAuth operations do not depend on the database.
  if (config?.failure && method !== 'HEAD' && !url.startsWith('/auth/google')) {
    declared[`${String(method)} ${url}`] = config.failure
  }
})
const requests: string[] = []
app.addHook('onRequest', async ({ id }) => { requests.push(id) })
await app.ready()

/** A user of each role. */
const addPeople = async (to = app) =>
  Object.fromEntries(await Promise.all(ROLES.map(async role => [role, await person(to, role)] as const)))

const people = await addPeople()
await app.sql.end({ timeout: 0 })

t.test('All declared failures are tested here', async t => {
  const tested = Object.fromEntries(FAILURES)
  t.equal(Object.keys(tested).length, FAILURES.length, 'once')
  t.strictSame(declared, tested, 'add what is missing to FAILURES in test/routes/failures.test.ts')
})

for (const [operation, failure, role, payload] of FAILURES) {
  const [status, body] = typeof failure === 'string'
    ? [500, { message: failure }]
    : [failure.status, failure.body]
  t.test(`${operation} returns ${status} ${JSON.stringify(body)} without a database, and logs the cause`, async t => {
    const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
    lines.length = requests.length = 0
    const response = await inject(app, method, pattern.replace(/:\w+/, UNKNOWN), payload, {
      'accept-encoding': 'br', ...role && { authorization: `Bearer ${people[role]!.token}` },
    })
    t.equal(response.statusCode, status)
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    t.strictSame(response.json(), body)
    const { 'cache-control': cacheControl, etag, 'content-encoding': encoding } = response.headers
    t.strictSame([cacheControl, etag, encoding], ['no-store', undefined, undefined], 'a failure is not cacheable')

    t.match(lines, [{ level: 50, reqId: requests[0], err: { message: /CONNECTION_ENDED/, stack: /\n +at / } }])
    t.equal(lines.length, 1, 'one line')
    for (const secret of [ACCOUNT.password, '$argon2id$', ...role ? [people[role]!.token] : []]) {
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

t.test('Past MAX_REQUESTS every operation returns 503', async t => {
  const app = await build(t, { ...MAIL, MAX_REQUESTS: '1' })
  const people = await addPeople(app)
  const operations: [operation: string, role?: Role, payload?: object][] = [
    ...FAILURES.map(([operation, _failure, role, payload]): [string, Role?, object?] => [operation, role, payload]),
    ['POST /auth/google'], ['GET /auth/google/start'], ['GET /auth/google/callback'],
  ]
  const { pending } = await app.sql.begin(async sql => {
    await sql`LOCK TABLE mentor_likes`
    const pending = people.STUDENT!.inject('POST', `/mentors/${UNKNOWN}/like`)
    await untilBlocked(app.sql)
    for (const [operation, role, payload] of operations) {
      const [method, pattern] = operation.split(' ') as ['GET' | 'POST' | 'PUT' | 'DELETE', string]
      const response = await inject(app, method, pattern.replace(/:\w+/, UNKNOWN), payload,
        role && bearer(people[role]!.token))
      if (operation === 'GET /mentors') t.strictSame([response.statusCode, response.json()], [200, { mentors: [] }])
      else t.strictSame([response.statusCode, response.headers['retry-after']], [503, '2'], operation)
    }
    return { pending }
  })
  t.equal((await pending).statusCode, 404)
})
