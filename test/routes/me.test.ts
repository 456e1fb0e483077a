import ICAL from 'ical.js'

import { ROLES } from '#lib/values/roles.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { NOT_A_NAME } from '#lib/values/formats.js'
import { createLogger } from '#lib/http/logger.js'
import { assertInvalid, assertResponse, DATE_TIME } from '../assertions.ts'
import { PASSWORD, PNG } from '../fixtures.ts'
import { bearer, build, inject, insert, person, type Person, untilBlocked } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const lines: string[] = []
const app = await build(t, {}, createLogger('trace', { write (line: string) { lines.push(line) } }))

/** All emails, as they are at first. */
const ALL = {
  registration: true,
  eventChanged: true,
  eventCancelled: true,
  eventReminder: true,
  eventMessage: true,
  blogDecision: true,
  club: true,
  clubNews: true,
}

const GONE = { message: 'Calendar not found' }

/** Registers a person for new events. Returns the ids of the events. */
async function addRegistrations ({ id }: Person, titles: string[]) {
  const club = await insert(app, 'clubs')
  for (const title of titles) {
    const event = await insert(app, 'events', { title, date: new Date('2030-01-31T09:30:00Z'), club_id: club })
    await insert(app, 'event_registrations', { user_id: id, event_id: event })
  }
}

/** Creates a calendar. Returns its path. */
async function createCalendar (t: Test, { inject }: Person) {
  const response = await inject('POST', '/me/calendar')
  const { calendar: { path, createdAt, ...others }, ...rest } = response.json()
  t.strictSame([response.statusCode, others, rest], [201, {}, {}])
  t.match(path, /^\/feeds\/me\/[\w-]{43}\.ics$/)
  t.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  return path as string
}

/** The titles of the events in a calendar. */
async function titlesOf (path: string) {
  const { body } = await inject(app, 'GET', path)
  return new ICAL.Component(ICAL.parse(body)).getAllSubcomponents('vevent')
    .map(event => event.getFirstPropertyValue('summary')).sort()
}

t.test('POST /me/calendar creates a calendar of the registrations of the user', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  await addRegistrations(bob, ['Bridge'])
  const path = await createCalendar(t, ada)
  const { statusCode, headers, body } = await inject(app, 'GET', path)
  t.strictSame([statusCode, headers['content-type'], headers['cache-control']],
    [200, 'text/calendar; charset=utf-8', 'private, no-cache'])
  t.equal(new ICAL.Component(ICAL.parse(body)).getFirstPropertyValue('name'), 'My events')
  t.strictSame(await titlesOf(path), [])
  await addRegistrations(ada, ['Chess', 'Go'])
  t.strictSame(await titlesOf(path), ['Chess', 'Go'], 'always current')
  const { statusCode: unchanged } = await inject(app, 'GET', path, undefined, {
    'if-none-match': String((await inject(app, 'GET', path)).headers.etag),
  })
  t.equal(unchanged, 304)
})

t.test('POST /me/calendar replaces the address', async t => {
  const ada = await person(app)
  await addRegistrations(ada, ['Chess'])
  const old = await createCalendar(t, ada)
  const path = await createCalendar(t, ada)
  t.not(path, old)
  assertResponse(t, await inject(app, 'GET', old), 404, GONE)
  t.strictSame(await titlesOf(path), ['Chess'])

  const paths = await Promise.all(Array.from({ length: 5 }, () => createCalendar(t, ada)))
  const found = await Promise.all(paths.map(path => inject(app, 'GET', path)))
  t.equal(found.filter(({ statusCode }) => statusCode === 200).length, 1, 'only one of several concurrent addresses')
})

t.test('DELETE /me/calendar removes the address', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  const [path, other] = [await createCalendar(t, ada), await createCalendar(t, bob)]
  assertResponse(t, await ada.inject('DELETE', '/me/calendar'), 200, { message: 'Calendar deleted successfully' })
  assertResponse(t, await inject(app, 'GET', path), 404, GONE)
  assertResponse(t, await ada.inject('DELETE', '/me/calendar'), 404, GONE)
  t.equal((await inject(app, 'GET', other)).statusCode, 200, 'those of others stay')
})

t.test('Deleting an account removes its calendar', async t => {
  const [ada, admin] = [await person(app), await person(app, 'ADMIN')]
  const path = await createCalendar(t, ada)
  t.equal((await admin.inject('DELETE', `/users/${ada.id}`)).statusCode, 200)
  assertResponse(t, await inject(app, 'GET', path), 404, GONE)
})

t.test('GET /feeds/me/:token.ics returns 404 for anything but a token', async t => {
  await (await person(app)).inject('POST', '/me/calendar')
  const [{ hash }] = await app.sql<[{ hash: string }]>`SELECT token_hash AS hash FROM calendar_tokens LIMIT 1`
  for (const token of [hash, 'unknown', '', '%00', 'x'.repeat(10_000), "'", '..']) {
    assertResponse(t, await inject(app, 'GET', `/feeds/me/${token}.ics`), 404, GONE, token.slice(0, 50))
  }
})

t.test('PUT /me/notifications takes the response of GET, and keeps omitted fields', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  const read = async (user: Person) => (await user.inject('GET', '/me/notifications')).json()
  const put = (body: object) => ada.inject('PUT', '/me/notifications', body)
  t.strictSame(await read(ada), { notifications: ALL, reminderHours: null })
  const off = { eventReminder: false, blogDecision: false }
  assertResponse(t, await put({ notifications: off }), 200, { notifications: { ...ALL, ...off } })
  assertResponse(t, await put(await read(ada)), 200, { notifications: { ...ALL, ...off } })
  assertResponse(t, await put({ notifications: { eventReminder: true } }), 200,
    { notifications: { ...ALL, blogDecision: false } })
  const none = { notifications: Object.fromEntries(Object.keys(ALL).map(name => [name, false])) }
  assertResponse(t, await put(none), 200, none)
  t.strictSame(await read(ada), { ...none, reminderHours: null })
  t.strictSame(await read(bob), { notifications: ALL, reminderHours: null }, 'of others')
  for (const body of [{}, { notifications: 1 }, { notifications: { registration: 'no' } }]) {
    t.equal((await put(body)).statusCode, 400, JSON.stringify(body))
  }
})

t.test('PUT /me/profile changes the given fields, and returns what GET /auth/me does', async t => {
  const club = await insert(app, 'clubs')
  for (const role of ROLES) {
    const [ada, bob] = [await person(app, role, { club_id: club }), await person(app)]
    const [picture, other] = await Promise.all([ada, bob].map(({ id }) => insert(app, 'pictures', {
      user_id: id, large: PNG, small: PNG, width: 1, height: 1,
    })))
    const url = `http://localhost:80/pictures/${picture}`
    let expected = (await ada.inject('GET', '/auth/me')).json().user
    for (const [body, changes] of [
      [{}, {}],
      [{ firstName: 'Bea' }, { firstName: 'Bea' }],
      [{ lastName: 'Bell', avatar: picture }, { lastName: 'Bell', avatar: url }],
      [{ firstName: 'Ada' }, { firstName: 'Ada' }],
      [{ avatar: null }, { avatar: null }],
    ] as const) {
      expected = { ...expected, ...changes }
      assertResponse(t, await ada.inject('PUT', '/me/profile', body), 200, { user: expected })
      assertResponse(t, await ada.inject('GET', '/auth/me'), 200, { user: expected })
    }
    for (const avatar of [other, '', 'unknown', url]) {
      const gone = { message: 'Picture not found' }
      assertResponse(t, await ada.inject('PUT', '/me/profile', { avatar, firstName: 'No' }), 404, gone, avatar)
    }
    for (const body of [{ firstName: '' }, { lastName: 7 }, { avatar: 7 }, { firstName: null }]) {
      t.equal((await ada.inject('PUT', '/me/profile', body)).statusCode, 400, JSON.stringify(body))
    }
    for (const name of ['\u3164', 'Ada\n', 'Ada\u202e', 'x'.repeat(201)]) {
      const response = await ada.inject('PUT', '/me/profile', { firstName: name, lastName: name })
      assertInvalid(t, response, ['firstName', 'lastName'], JSON.stringify(name))
      t.match(response.json().errors, [{ message: NOT_A_NAME }, { message: NOT_A_NAME }])
    }
    assertResponse(t, await ada.inject('GET', '/auth/me'), 200, { user: expected }, 'nothing else has changed')
    await app.sql`DELETE FROM users WHERE id = ${bob.id}`
    assertResponse(t, await bob.inject('PUT', '/me/profile', { firstName: 'Bea' }), 401, { message: 'Unauthorized' })
  }
})

t.test('The URL of an avatar begins with the current PUBLIC_URL, or in development with the host', async t => {
  const ada = await person(app)
  const avatar = await insert(app, 'pictures', { user_id: ada.id, large: PNG, small: PNG, width: 1, height: 1 })
  const blog = await insert(app, 'blogs', { author_id: ada.id, status: 'PUBLISHED' })
  await ada.inject('PUT', '/me/profile', { avatar })
  const { DATABASE_URL } = app.config
  const moved = await build(t, { PUBLIC_URL: 'https://new.example.org', DATABASE_URL })
  const production = await build(t, { NODE_ENV: 'production', DATABASE_URL })
  for (const [service, host, base] of [
    [app, 'a.example', 'http://a.example'], [app, 'b.example', 'http://b.example'],
    [moved, 'a.example', 'https://new.example.org'], [production, 'a.example', null],
  ] as const) {
    const url = base && `${base}/pictures/${avatar}`
    const headers = { ...bearer(ada.token), host }
    const get = async (path: string) => (await inject(service, 'GET', path, undefined, headers)).json()
    t.equal((await get('/auth/me')).user.avatar, url)
    t.equal((await get(`/blogs/${blog}`)).blog.author.avatar, url)
    t.equal((await get('/blogs')).blogs.find(({ id }: { id: string }) => id === blog).author.avatar, url)
    t.equal((await get('/me/export')).account.avatar, url)
  }
  const refusal = { message: 'PUBLIC_URL is not configured' }
  const change = (body: object) => inject(production, 'PUT', '/me/profile', body, bearer(ada.token))
  assertResponse(t, await change({ avatar }), 501, refusal)
  t.equal((await change({ avatar: null, firstName: 'Bea' })).statusCode, 200)
})

/** Bodies of accounts without a password. */
const NONE = { currentPassword: null }
const DELETED = { message: 'Account deleted successfully', kept: { publishedBlogs: 0, pictures: 0 } }
const WRONG = { message: 'Current password is wrong' }
const AGAIN = { message: 'Please sign in with your identity provider again, and retry within five minutes' }
const LAST = { message: 'You are the last admin. Please make another user an admin first' }

t.test('DELETE /me erases the account by its password, and revokes all tokens', async t => {
  const password = await hashPassword(PASSWORD)
  for (const role of ROLES) {
    await person(app, 'ADMIN')
    const ada = await person(app, role, { password })
    for (const body of [NONE, { currentPassword: 'wrong horse' }, { currentPassword: '' }]) {
      assertResponse(t, await ada.inject('DELETE', '/me', body), 401, WRONG, JSON.stringify(body))
    }
    await addRegistrations(ada, ['Chess'])
    const [draft, post] = [
      await insert(app, 'blogs', { author_id: ada.id }),
      await insert(app, 'blogs', { author_id: ada.id, status: 'PUBLISHED' }),
    ]
    const calendar = await createCalendar(t, ada)
    lines.length = 0
    const deleted = { ...DELETED, kept: { publishedBlogs: 1, pictures: 0 } }
    assertResponse(t, await ada.inject('DELETE', '/me', { currentPassword: PASSWORD }), 200, deleted, role)
    t.match(lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'audit'), [
      { event: 'user-deleted', actor: ada.id, user: ada.id },
    ])
    t.equal((await app.sql`SELECT FROM users WHERE id = ${ada.id}`).length, 0)
    t.equal((await inject(app, 'GET', `/blogs/${draft}`)).statusCode, 404)
    t.equal((await inject(app, 'GET', `/blogs/${post}`)).json().blog.author.firstName, 'Former')
    assertResponse(t, await inject(app, 'GET', calendar), 404, GONE)
    for (const [method, url] of [['GET', '/auth/me'], ['POST', '/me/calendar'], ['DELETE', '/me']] as const) {
      assertResponse(t, await ada.inject(method, url, NONE), 401, { message: 'Invalid or expired token' })
    }
  }
})

t.test('DELETE /me without a password needs a fresh sign-in with the provider', async t => {
  const ada = await person(app)
  const now = Math.floor(Date.now() / 1000)
  const issue = (iat?: number) => app.jwt.sign({ sub: ada.id, userId: ada.id, role: 'STUDENT', iat } as never)
  t.equal((await ada.inject('DELETE', '/me')).statusCode, 400, 'a request without a body deletes nothing')
  const remove = (token: string) => inject(app, 'DELETE', '/me', NONE, bearer(token))
  assertResponse(t, await remove(issue(now - 310)), 401, AGAIN)
  const undated = app.jwt.sign({ sub: ada.id, userId: ada.id, role: 'STUDENT' }, { noTimestamp: true })
  assertResponse(t, await remove(undated), 401, AGAIN)
  assertResponse(t, await remove(issue(now - 290)), 200, DELETED)
})

t.test('Of two requests that delete one account at once, one succeeds', async t => {
  const ada = await person(app)
  let responses: ReturnType<typeof ada.inject>[] = []
  await app.sql.begin(async sql => {
    await sql`SELECT FROM users WHERE id = ${ada.id} FOR UPDATE`
    responses = [ada.inject('DELETE', '/me', NONE), ada.inject('DELETE', '/me', NONE)]
    await untilBlocked(app.sql, 2)
  })
  t.strictSame((await Promise.all(responses)).map(({ statusCode }) => statusCode).sort(), [200, 401])
})

t.test('Of two admins who delete their accounts at once, one stays', async t => {
  await app.sql`UPDATE users SET role = 'STUDENT'`
  const [ada, bob] = await Promise.all([person(app, 'ADMIN'), person(app, 'ADMIN')])
  const responses = await Promise.all([ada, bob].map(admin => admin.inject('DELETE', '/me', NONE)))
  t.strictSame(responses.map(response => response.statusCode).sort(), [200, 409])
  t.strictSame(responses.find(({ statusCode }) => statusCode === 409)!.json(), LAST)
})

t.test('The pictures of a deleted account go, unless something public shows them', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  const add = () => insert(app, 'pictures', { user_id: ada.id, large: PNG, small: PNG, width: 1, height: 1 })
  const [unused, ofDraft, ofPost, avatar, ofBob, ofBobsDraft] =
    [await add(), await add(), await add(), await add(), await add(), await add()]
  const url = (id: string) => `https://api.example.org/pictures/${id}`
  await insert(app, 'blogs', { author_id: ada.id, image_url: url(ofDraft) })
  await insert(app, 'blogs', { author_id: ada.id, status: 'PUBLISHED', content: `Look: ${url(ofPost)}` })
  await insert(app, 'blogs', { author_id: bob.id, status: 'PUBLISHED', image_url: url(ofBob) })
  await insert(app, 'blogs', { author_id: bob.id, status: 'ARCHIVED', image_url: url(ofBob) })
  await insert(app, 'blogs', { author_id: bob.id, image_url: url(ofBobsDraft) })
  await ada.inject('PUT', '/me/profile', { avatar })
  const kept = { publishedBlogs: 1, pictures: 2 }
  assertResponse(t, await ada.inject('DELETE', '/me', NONE), 200, { ...DELETED, kept })
  const statuses = await Promise.all([unused, ofDraft, avatar, ofBobsDraft, ofPost, ofBob].map(async id =>
    (await inject(app, 'GET', `/pictures/${id}`)).statusCode))
  t.strictSame(statuses, [404, 404, 404, 404, 200, 200])
})

t.test('GET /me/export has all data of the user, and no data of other users', async t => {
  const club = await insert(app, 'clubs', { name: 'Chess' })
  const mentor = await insert(app, 'mentors', { name: 'Max', club_id: club })
  for (const role of ROLES) {
    const ada = await person(app, role, { club_id: club, idp_id: 'subject', avatar: 'https://example.org/a.png' })
    const bob = await person(app, role, { first_name: 'Bob', password: '$argon2id$secret' })
    for (const { id } of [ada, bob]) {
      for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED']) {
        await insert(app, 'blogs', { title: `By ${id}`, content: 'Content', status, author_id: id })
      }
      await app.sql`INSERT INTO mentor_likes VALUES (${id}, ${mentor})`
    }
    await addRegistrations(ada, ['Chess', 'Go'])
    await createCalendar(t, ada)
    for (const { id } of [ada, bob]) {
      await app.sql`
        INSERT INTO emails (template, bulk, user_id, data, status, settled_at, created_at)
        VALUES
          ('test', false, ${id}, '{"secret": 1}', 'sent', now(), now() - interval '1 minute'),
          ('test', false, ${id}, '{}', 'failed', now(), now())
      `
      await app.sql`
        INSERT INTO event_messages (sender_id, event_id, subject, text)
        SELECT ${id}, events.id, ${`From ${id}`}, 'A text' FROM events WHERE title = 'Chess' LIMIT 1
      `
    }
    const stored = { large: PNG, small: PNG, width: 3, height: 2 }
    const picture = await insert(app, 'pictures', { user_id: ada.id, ...stored })
    await insert(app, 'pictures', { user_id: bob.id, ...stored })
    await app.sql`INSERT INTO notifications (user_id, registration) VALUES (${ada.id}, false), (${bob.id}, true)`

    const response = await ada.inject('GET', '/me/export')
    t.equal(response.statusCode, 200)
    t.equal(response.headers['content-disposition'], 'attachment; filename="personal-data.json"')
    t.strictSame([response.headers['cache-control'], response.headers.etag], ['no-store', undefined])
    const { account, blogs, registrations, likes, calendar, emails, messages, pictures, ...rest } = response.json()
    const { notifications, tokens, clubs, offers, ...others } = rest
    t.strictSame(offers, [])
    const [{ changedAt, ...membership }] = clubs
    t.match(changedAt, DATE_TIME)
    t.strictSame([clubs.length, membership], [1, {
      id: club,
      name: 'Chess',
      state: 'member',
      office: role === 'STUDENT' ? null : 'deputy',
      offered: null,
      offeredAt: null,
      message: null,
      reason: null,
      news: true,
      refusedAt: null,
    }])
    const { createdAt, updatedAt, ...fixed } = account
    t.strictSame(fixed, {
      id: ada.id,
      email: ada.email,
      firstName: 'Ada',
      lastName: 'Lovelace',
      avatar: 'https://example.org/a.png',
      providerId: 'subject',
      role,
      club: { id: club, name: 'Chess' },
      emailVerifiedAt: null,
      newEmail: null,
    })
    for (const blog of blogs) t.equal(blog.publishedAt, blog.status === 'PUBLISHED' ? blog.createdAt : null)
    t.strictSame(blogs.map(({ title, status }: Record<string, string>) => [title, status]).sort(),
      ['ARCHIVED', 'DRAFT', 'PUBLISHED'].map(status => [`By ${ada.id}`, status]))
    t.strictSame(registrations.map(({ event }: { event: { title: string } }) => event.title).sort(), ['Chess', 'Go'])
    t.strictSame(likes.map(({ mentor }: { mentor: object }) => mentor), [{ id: mentor, name: 'Max' }])
    t.match(emails, [{ template: 'test', status: 'failed', sentAt: null }, { status: 'sent', sentAt: String }])
    t.strictSame(emails.map(Object.keys), Array(2).fill(['template', 'createdAt', 'status', 'sentAt']))
    t.match(messages, [{ subject: `From ${ada.id}`, text: 'A text', sentAt: String, event: { title: 'Chess' } }])
    t.equal(messages.length, 1)
    t.strictSame(pictures.map(({ createdAt, ...picture }: { createdAt: string }) => picture),
      [{ id: picture, width: 3, height: 2 }])
    t.strictSame(notifications, { ...ALL, registration: false })
    const times = [
      createdAt, updatedAt, calendar.createdAt, likes[0].likedAt, registrations[0].registeredAt, emails[0].createdAt,
      emails[1].sentAt,
    ]
    for (const time of times) t.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    t.strictSame([tokens, others], [null, {}])
    t.notMatch((await bob.inject('GET', '/me/export')).body, 'argon2id', 'not even the password hash')
  }
})

t.test('GET /me/export of a new user has empty lists', async t => {
  const ada = await person(app)
  const { account, ...others } = (await ada.inject('GET', '/me/export')).json()
  t.match(account, { id: ada.id, avatar: null, providerId: null, club: null })
  t.strictSame(others, {
    blogs: [],
    registrations: [],
    likes: [],
    clubs: [],
    offers: [],
    calendar: null,
    emails: [],
    messages: [],
    pictures: [],
    notifications: null,
    tokens: null,
  })
})

t.test('GET /me/export has all of many long blogs and of many emails, and HEAD reads none', async t => {
  const ada = await person(app)
  await app.sql`
    INSERT INTO blogs (title, content, author_id, created_at)
    SELECT n, repeat('x', 100000), ${ada.id}, timestamptz '2026-01-31' + n / 4 * interval '1 s'
    FROM generate_series(1, 10) AS n
  `
  await app.sql`
    INSERT INTO emails (template, bulk, user_id, data)
    SELECT 'test', false, ${ada.id}, '{}' FROM generate_series(1, 600)
  `
  const { blogs, emails } = (await ada.inject('GET', '/me/export')).json()
  t.equal(emails.length, 600)
  const titles: number[] = blogs.map(({ title }: { title: string }) => Number(title))
  t.strictSame(titles.toSorted((a, b) => a - b), Array.from({ length: 10 }, (_, n) => n + 1))
  const times: string[] = blogs.map(({ createdAt }: { createdAt: string }) => createdAt)
  t.strictSame(times, times.toSorted().reverse(), 'the newest first')
  const { statusCode, body } = await inject(app, 'HEAD', '/me/export', undefined, bearer(ada.token))
  t.strictSame([statusCode, body], [200, ''])
})

t.test('A failed GET /me/export is not saved as a file', async t => {
  const ada = await person(app)
  await app.sql`ALTER TABLE mentor_likes RENAME TO broken`
  const response = await ada.inject('GET', '/me/export')
  await app.sql`ALTER TABLE broken RENAME TO mentor_likes`
  assertResponse(t, response, 500, { message: 'Error exporting data' })
  t.equal(response.headers['content-disposition'], undefined)
})

t.test('A calendar token is not in the tables or in the log', async t => {
  const path = await createCalendar(t, await person(app))
  const token = path.replace(/.*\//, '').replace('.ics', '')
  const encoded = `%${token.charCodeAt(0).toString(16)}${token.slice(1)}`
  lines.length = 0
  const paths = [
    path, `${path}?x=1`, `/feeds/me/${encoded}.ics`, `/feeds/me/${token}`, `${path}/x`, `/x${path}`, `${path}%zz`,
  ]
  for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'] as const) {
    for (const path of paths) await inject(app, method, path)
  }
  await app.sql`ALTER TABLE calendar_tokens RENAME TO broken`
  t.equal((await inject(app, 'GET', path)).statusCode, 500)
  await app.sql`ALTER TABLE broken RENAME TO calendar_tokens`

  t.match(lines.join(''), '"path":"/feeds/me/[redacted].ics"')
  t.match(lines.join(''), '"msg":"Unexpected error"')
  t.notOk(lines.some(line => line.includes(token.slice(1))), 'not in the log')
  const rows = await app.sql`SELECT calendar_tokens::text FROM calendar_tokens`
  t.notOk(rows.some(row => JSON.stringify(row).includes(token)), 'not in the table')
})
