import { randomUUID } from 'node:crypto'

import { encodeState } from '#lib/auth/oauth-state.js'
import { bearer, build, insert, person } from '../helper.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import t from '../suite.ts'

/** How often each operation is used one after the other, and then ten at a time. */
const [ALONE, TOGETHER] = [100, 200]
const TIMES = ALONE + TOGETHER

const provider = await startFakeProvider(t)
const app = await build(t, {
  NODE_ENV: 'development',
  DATA_DIR: t.testdir(),
  FRONTEND_URL: 'https://app.example.org',
  IDP_ISSUER: provider.issuer,
  ...CLIENT,
})
const base = await app.listen({ port: 0, host: '127.0.0.1' })

const club = await insert(app, 'clubs')
const [student, head, admin] = await Promise.all([
  person(app), person(app, 'CLUB_HEAD', { club_id: club }), person(app, 'ADMIN'),
])
const PEOPLE = { student, head, admin }
const IMAGE = 'https://example.org/image.png'

/** Inserts so many rows. Returns their ids. */
const rows = (table: string, fields: (n: number) => Record<string, unknown> = () => ({})) =>
  Promise.all(Array.from({ length: TIMES }, (_, n) => insert(app, table, fields(n))))

const user = () => ({ email: `${randomUUID()}@example.org`, password: '!', first_name: 'Ada', last_name: 'Lovelace' })
const [blogs, otherBlogs, users, mentors, otherMentors, testimonials, events, otherEvents] = await Promise.all([
  rows('blogs', () => ({ author_id: student.id })), rows('blogs', () => ({ author_id: student.id })),
  rows('users', user), rows('mentors', () => ({ club_id: club })), rows('mentors', () => ({ club_id: club })),
  rows('testimonials'), rows('events', () => ({ club_id: club })), rows('events', () => ({ club_id: club })),
])
const registered = Array.from({ length: TIMES }, () => `${randomUUID()}@example.org`)
const event = { title: 'Open day', description: 'Come and see', data: '2030-01-31T09:30:00Z', imageUrl: IMAGE }
const blog = { title: 'A title', content: 'As long as a blog must be' }
const mentor = { name: 'Ada', expertise: 'Mathematics', clubId: club, imageUrl: IMAGE }
const testimonial = { name: 'Ada', content: 'It was fun.', batchYear: 2020 }
const state = encodeState({ n: 'nonce', r: '/' })
const idToken = (n: number) => provider.idToken({ sub: randomUUID(), email: `provider${n}@example.org` })

type Body = object | ((n: number) => object | Promise<object>)

/** All operations of the contract, with status, user and body. `*` is the nth of these ids. */
const OPERATIONS: [operation: string, status: number, by?: keyof typeof PEOPLE, body?: Body, ids?: string[]][] = [
  ['POST /auth/register', 201, undefined, n => (
    { email: registered[n], password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }
  )],
  ['POST /auth/login', 200, undefined, n => ({ email: registered[n], password: 'correct horse' })],
  ['GET /auth/me', 200, 'student'],
  ['POST /auth/google', 200, undefined, async n => ({ idToken: await idToken(n) })],
  ['GET /auth/google/start', 302],
  [`GET /auth/google/callback?code=x&state=${state}`, 302],
  ['GET /blogs', 200],
  ['GET /blogs/*', 200, 'student', undefined, blogs],
  ['POST /blogs/submit', 201, 'student', blog],
  ['GET /blogs/me', 200, 'student'],
  ['GET /blogs/admin', 200, 'admin'],
  ['POST /blogs', 201, 'admin', blog],
  ['PUT /blogs/*', 200, 'admin', blog, blogs],
  ['POST /blogs/*/approve', 200, 'admin', undefined, blogs],
  ['POST /blogs/*/archive', 200, 'admin', undefined, blogs],
  ['DELETE /blogs/*', 200, 'admin', undefined, otherBlogs],
  ['GET /users', 200, 'admin'],
  ['GET /users/analytics', 200, 'admin'],
  ['PUT /users/*', 200, 'admin', { firstName: 'Grace' }, users],
  ['PUT /users/*/role', 200, 'admin', { newRole: 'CLUB_HEAD' }, users],
  ['PUT /users/*/club', 200, 'admin', { clubId: club }, users],
  ['DELETE /users/*/club', 400, 'admin', undefined, users],
  ['DELETE /users/*', 200, 'admin', undefined, users],
  ['GET /mentors', 200],
  ['POST /mentors/*/like', 200, 'student', undefined, mentors],
  ['GET /mentors/liked', 200, 'student'],
  ['POST /mentors', 201, 'admin', mentor],
  ['PUT /mentors/*', 200, 'admin', mentor, mentors],
  ['DELETE /mentors/*', 200, 'admin', undefined, otherMentors],
  ['GET /testimonials', 200],
  ['POST /testimonials', 201, 'admin', testimonial],
  ['PUT /testimonials/*', 200, 'admin', testimonial, testimonials],
  ['DELETE /testimonials/*', 204, 'admin', undefined, testimonials],
  ['GET /clubs', 200],
  ['POST /clubs', 201, 'admin', n => ({ name: `Club ${n}`, description: 'A club', clubHeadEmail: registered[n] })],
  ['GET /events', 200],
  ['GET /events/mine', 200, 'head'],
  ['POST /events', 201, 'head', event],
  ['PUT /events/*', 200, 'head', event, events],
  ['POST /events/*/register', 201, 'student', undefined, events],
  ['GET /events/registered', 200, 'student'],
  ['GET /events/*/registrations', 200, 'head', undefined, events],
  ['DELETE /events/*', 200, 'head', undefined, otherEvents],
]

t.equal(OPERATIONS.length, 43)
for (const [operation, status, by, body, ids] of OPERATIONS) {
  t.test(`${operation.split('?')[0]} succeeds ${TIMES} times from one address`, async t => {
    const [method, path] = operation.split(' ') as [string, string]
    const seen: Record<number, number> = {}
    async function send (n: number) {
      const payload = typeof body === 'function' ? await body(n) : body
      const response = await fetch(base + path.replace('*', ids?.[n] ?? ''), {
        method,
        redirect: 'manual',
        headers: {
          cookie: 'oauth_state_nonce=nonce',
          ...by && bearer(PEOPLE[by].token),
          ...payload && { 'content-type': 'application/json' },
        },
        ...payload && { body: JSON.stringify(payload) },
      })
      await response.arrayBuffer()
      seen[response.status] = (seen[response.status] ?? 0) + 1
    }
    for (let n = 0; n < ALONE; n++) await send(n)
    for (let n = ALONE; n < TIMES; n += 10) await Promise.all(Array.from({ length: 10 }, (_, i) => send(n + i)))
    t.strictSame(seen, { [status]: TIMES })
  })
}
