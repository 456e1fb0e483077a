import { randomUUID } from 'node:crypto'

import t from 'tap'

import { ROLES } from '#lib/auth/accounts.js'
import { assertMessage, DATE_TIME } from '../../assertions.ts'
import { bearer, inject, person } from '../../helper.ts'
import { admin, app, type Fields, PAST, SCALARS, sign, STATUSES, store } from './fixtures.ts'

t.test('GET /blogs lists the published blogs in full, for anyone', async t => {
  const ada = await person(app, 'STUDENT', { avatar: 'https://example.org/ada.png' })
  const bob = await person(app, 'CLUB_HEAD', { first_name: 'Bob', last_name: 'Ross' })
  const fields = { status: 'PUBLISHED', created_at: PAST, updated_at: '2021-01-31T09:30:00Z' }
  const first = await store(ada, { ...fields, content: 'Full content. '.repeat(5_000), image_url: 'https://x.org/1' })
  const second = await store(bob, { ...fields, created_at: '2020-02-03T04:05:06.779Z' })
  await store(ada)
  await store(ada, { status: 'ARCHIVED' })

  const response = await inject(app, 'GET', '/blogs')
  t.equal(response.statusCode, 200)
  t.match(response.headers['content-type'], /^application\/json/)
  t.equal(response.headers['cache-control'], 'public, s-maxage=120, stale-while-revalidate=300')
  const { blogs, ...rest } = response.json()
  t.strictSame(rest, {})
  t.strictSame(blogs.filter(({ authorId }: Fields) => authorId === ada.id || authorId === bob.id), [
    { ...first, author: { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' } },
    { ...second, author: { firstName: 'Bob', lastName: 'Ross', avatar: null } },
  ])
  t.equal(first.createdAt, '2020-02-03T04:05:06.780Z')
  t.equal(first.updatedAt, '2021-01-31T09:30:00.000Z')
  for (const blog of blogs) {
    t.strictSame(Object.keys(blog).sort(), [...SCALARS, 'author'].sort())
    t.strictSame(Object.keys(blog.author).sort(), ['avatar', 'firstName', 'lastName'])
    t.equal(blog.status, 'PUBLISHED')
    t.match([blog.createdAt, blog.updatedAt], [DATE_TIME, DATE_TIME])
  }
})

t.test('GET /blogs ignores the token', async t => {
  for (const authorization of ['Bearer garbage', 'Bearer', `Bearer ${admin.token}`]) {
    t.equal((await inject(app, 'GET', '/blogs', undefined, { authorization })).statusCode, 200)
  }
})

t.test('A trailing slash is ignored', async t => {
  const response = await inject(app, 'GET', '/blogs/')
  t.equal(response.statusCode, 200)
  t.strictSame(Object.keys(response.json()), ['blogs'])
  t.equal((await admin.inject('GET', '/blogs/admin/')).statusCode, 200)
})

for (const url of ['/blogs', '/blogs/me', '/blogs/admin']) {
  t.test(`GET ${url} is sorted by newest, then by id, and has no pages`, async t => {
    const author = await person(app)
    const [oldest, first, second, third, newest] = Array.from({ length: 5 }, () => randomUUID()).sort()
    const at = '2026-01-31T09:30:00.000Z'
    const [before, after] = ['2026-01-31T09:29:59.999Z', '2026-01-31T09:30:00.001Z']
    for (const [id, time] of [[second, at], [oldest, before], [third, at], [newest, after], [first, at]]) {
      await store(author, { id, created_at: time, status: 'PUBLISHED' })
    }
    await app.sql`
      INSERT INTO blogs (title, content, author_id, status, created_at)
      SELECT 'One of many', 'That are all in the list', ${author.id}, 'PUBLISHED', '2019-01-01'
      FROM generate_series(1, 150)
    `
    const reader = url === '/blogs/me' ? author : admin
    for (const query of ['', '?page=2&limit=1&status=DRAFT']) {
      const response = await reader.inject('GET', url + query)
      t.equal(response.statusCode, 200)
      const { blogs } = response.json()
      const ids = blogs.filter(({ authorId }: Fields) => authorId === author.id).map(({ id }: Fields) => id)
      t.strictSame(ids.slice(0, 5), [newest, first, second, third, oldest])
      t.strictSame(ids.slice(5), ids.slice(5).sort())
      t.equal(ids.length, 155)
      t.strictSame(blogs.map(({ createdAt }: Fields) => createdAt),
        blogs.map(({ createdAt }: Fields) => createdAt).sort().reverse())
    }
  })
}

t.test('GET /blogs/me lists the blogs of the user in every status, without author', async t => {
  for (const role of ROLES) {
    const me = await person(app, role)
    await store(await person(app), { status: 'PUBLISHED' })
    t.strictSame((await me.inject('GET', '/blogs/me')).json(), { blogs: [] }, 'none yet')
    const mine = []
    for (const [i, status] of STATUSES.entries()) {
      mine.unshift(await store(me, { status, created_at: new Date(i), image_url: i ? `https://x.org/${i}` : null }))
    }
    const response = await me.inject('GET', '/blogs/me')
    t.equal(response.statusCode, 200)
    t.strictSame(response.json(), { blogs: mine })
    t.strictSame(Object.keys(response.json().blogs[0]).sort(), SCALARS)
  }
})

t.test('GET /blogs/me is Unauthorized with a token without a user id, and empty for a deleted user', async t => {
  assertMessage(t, await inject(app, 'GET', '/blogs/me', undefined, bearer(sign({ role: 'STUDENT' }))), 401,
    'Unauthorized')
  const gone = { id: randomUUID(), role: 'STUDENT' } as const
  const response = await inject(app, 'GET', '/blogs/me', undefined, bearer(app.issueToken(gone)))
  t.strictSame([response.statusCode, response.json()], [200, { blogs: [] }])
})

t.test('GET /blogs/admin lists every blog in every status, with the names of the author', async t => {
  const author = await person(app, 'STUDENT', { avatar: 'https://example.org/ada.png' })
  const expected = []
  for (const [i, status] of STATUSES.entries()) {
    const blog = await store(author, { status, created_at: new Date(i) })
    expected.unshift({ ...blog, author: { firstName: 'Ada', lastName: 'Lovelace' } })
  }
  const response = await admin.inject('GET', '/blogs/admin')
  t.equal(response.statusCode, 200)
  const { blogs, ...rest } = response.json()
  t.strictSame(rest, {})
  t.strictSame(blogs.filter(({ authorId }: Fields) => authorId === author.id), expected)
  const [{ count }] = await app.sql`SELECT count(*)::integer FROM blogs` as unknown as [{ count: number }]
  t.equal(blogs.length, count)
})
