import { randomUUID } from 'node:crypto'

import t from 'tap'

import { bearer, build, inject, person } from '../../helper.ts'
import {
  admin, app, type Fields, PAST, register, store, storeBlog, storeClub, storeEvent, storeMentor,
} from './fixtures.ts'

t.test('GET /users lists every user, with club and counts', async t => {
  const clubId = await storeClub({ name: 'Chess' })
  const ada = await person(app, 'CLUB_HEAD', {
    club_id: clubId, created_at: PAST, idp_id: 'idp-1', avatar: 'https://x.org/ada', password: 'secret hash',
  })
  const bob = await person(app, 'STUDENT', { first_name: 'Bob', last_name: 'Ross', created_at: '2020-01-01T00:00:00Z' })
  for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED']) await storeBlog(ada, { status })
  for (const user of [ada, ada, bob]) await register(user, await storeEvent(clubId))

  const response = await admin.inject('GET', '/users')
  t.equal(response.statusCode, 200)
  t.match(response.headers['content-type'], /^application\/json/)
  const { users, ...rest } = response.json()
  t.strictSame(rest, {})
  t.strictSame(users.filter(({ id }: Fields) => id === ada.id || id === bob.id), [
    {
      id: ada.id,
      email: ada.email,
      firstName: 'Ada',
      lastName: 'Lovelace',
      role: 'CLUB_HEAD',
      clubId,
      createdAt: '2020-02-03T04:05:06.780Z',
      club: { name: 'Chess' },
      _count: { eventRegistrations: 2, blogs: 3 },
    },
    {
      id: bob.id,
      email: bob.email,
      firstName: 'Bob',
      lastName: 'Ross',
      role: 'STUDENT',
      clubId: null,
      createdAt: '2020-01-01T00:00:00.000Z',
      club: null,
      _count: { eventRegistrations: 1, blogs: 0 },
    },
  ])
  const stored = await app.sql`SELECT id FROM users`
  t.equal(users.length, stored.length)
  t.notMatch(response.body, 'secret hash')
})

t.test('GET /users is sorted by newest, then by id, and has no pages', async t => {
  const app = await build(t)
  const [oldest, first, second, third, newest] = Array.from({ length: 5 }, () => randomUUID()).sort()
  const at = '2036-01-31T09:30:00.000Z'
  const [before, after] = ['2036-01-31T09:29:59.999Z', '2036-01-31T09:30:00.001Z']
  for (const [id, time] of [[second, at], [oldest, before], [third, at], [newest, after], [first, at]]) {
    await person(app, 'STUDENT', { id, created_at: time })
  }
  await app.sql`
    INSERT INTO users (email, password, first_name, last_name, created_at)
    SELECT n || '@example.org', '!', 'One', 'Of many', '2019-01-01' FROM generate_series(1, 150) AS n
  `
  const headers = bearer(app.issueToken({ id: randomUUID(), role: 'ADMIN' }))
  for (const url of ['/users', '/users/', '/users?page=2&limit=1']) {
    const response = await inject(app, 'GET', url, undefined, headers)
    t.equal(response.statusCode, 200)
    const ids = response.json().users.map(({ id }: Fields) => id)
    t.equal(ids.length, 155)
    t.strictSame(ids.slice(0, 5), [newest, first, second, third, oldest])
    t.strictSame(ids.slice(5), ids.slice(5).sort())
  }
})

t.test('GET /users/analytics is empty on an empty database', async t => {
  const app = await build(t)
  const headers = bearer(app.issueToken({ id: randomUUID(), role: 'ADMIN' }))
  const response = await inject(app, 'GET', '/users/analytics', undefined, headers)
  t.equal(response.statusCode, 200)
  t.strictSame(response.json(), {
    analytics: {
      totalUsers: 0,
      totalClubs: 0,
      totalEvents: 0,
      totalBlogs: 0,
      totalMentors: 0,
      roleCounts: [],
      recentRegistrations: [],
    },
  })
})

t.test('GET /users/analytics counts rows, and omits roles without users', async t => {
  const app = await build(t)
  const ada = await person(app, 'ADMIN')
  const bob = await person(app, 'STUDENT', { first_name: 'Bob', last_name: 'Ross' })
  const eve = await person(app, 'STUDENT')
  const [clubId] = await Promise.all(Array.from({ length: 4 }, () => storeClub({}, app)))
  const events = []
  for (let i = 0; i < 5; i++) events.push(await storeEvent(clubId!, { title: `Event ${i}` }, app))
  for (const status of ['DRAFT', 'PUBLISHED', 'ARCHIVED', 'DRAFT', 'PUBLISHED', 'ARCHIVED']) {
    await storeBlog(bob, { status }, app)
  }
  for (let i = 0; i < 2; i++) await storeMentor(clubId!, app)
  const fields = { name: 'Tim', batch_year: 2020, content: 'Good' }
  await store('testimonials', fields, app)
  const older = await register(bob, events[0]!, { registered_at: PAST }, app)
  const newer = await register(eve, events[1]!, { registered_at: '2021-01-31T09:30:00Z' }, app)

  const { analytics, ...rest } = (await ada.inject('GET', '/users/analytics')).json()
  t.strictSame(rest, {})
  const { roleCounts, ...others } = analytics
  t.strictSame(others, {
    totalUsers: 3,
    totalClubs: 4,
    totalEvents: 5,
    totalBlogs: 6,
    totalMentors: 2,
    recentRegistrations: [
      {
        id: newer,
        userId: eve.id,
        eventId: events[1],
        registeredAt: '2021-01-31T09:30:00.000Z',
        event: { title: 'Event 1' },
        user: { firstName: 'Ada', lastName: 'Lovelace' },
      },
      {
        id: older,
        userId: bob.id,
        eventId: events[0],
        registeredAt: '2020-02-03T04:05:06.780Z',
        event: { title: 'Event 0' },
        user: { firstName: 'Bob', lastName: 'Ross' },
      },
    ],
  })
  const byRole = (counts: Fields[]) => counts.sort((a, b) => String(a.role) < String(b.role) ? -1 : 1)
  t.strictSame(byRole(roleCounts), [{ role: 'ADMIN', _count: { role: 1 } }, { role: 'STUDENT', _count: { role: 2 } }])
  await person(app, 'CLUB_HEAD')
  const { analytics: after } = (await ada.inject('GET', '/users/analytics')).json()
  t.equal(after.totalUsers, 4)
  t.strictSame(byRole(after.roleCounts), [
    { role: 'ADMIN', _count: { role: 1 } }, { role: 'CLUB_HEAD', _count: { role: 1 } },
    { role: 'STUDENT', _count: { role: 2 } },
  ])
})

t.test('GET /users/analytics has the ten latest registrations, sorted by time, then by id', async t => {
  const app = await build(t)
  // An index scan would hide a missing ORDER BY.
  await app.sql`DROP INDEX event_registrations_newest`
  const clubId = await storeClub({}, app)
  const eventId = await storeEvent(clubId, {}, app)
  const ada = await person(app, 'ADMIN')
  const registered = async (id: string, time: string) =>
    register(await person(app), eventId, { id, registered_at: time }, app)
  const recent = async () => {
    const { recentRegistrations } = (await ada.inject('GET', '/users/analytics')).json().analytics
    return recentRegistrations.map(({ id }: Fields) => id)
  }

  // Sorted by id alone, the oldest would come first. More rows tie than the list shows.
  const ids = Array.from({ length: 14 }, () => randomUUID()).sort()
  const [oldest, ...tied] = ids.slice(0, 12)
  const [late, latest] = ids.slice(12)
  await registered(oldest!, '2026-01-31T09:29:59.999Z')
  t.strictSame(await recent(), [oldest])
  for (const id of tied.toReversed()) await registered(id, '2026-01-31T09:30:00.000Z')
  t.strictSame(await recent(), tied.slice(0, 10))
  await registered(late!, '2026-01-31T09:30:00.001Z')
  await registered(latest!, '2026-01-31T09:30:00.002Z')
  t.strictSame(await recent(), [latest, late, ...tied.slice(0, 8)])
})
