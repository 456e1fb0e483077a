import type { FastifyJWT } from '@fastify/jwt'
import { randomUUID } from 'node:crypto'

import { ROLES } from '#lib/values/roles.js'
import { assertMessage, DATE_TIME } from '../assertions.ts'
import { bearer, build, inject, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)

type Fields = Record<string, unknown>

const STATUSES = ['DRAFT', 'PUBLISHED', 'ARCHIVED']
const PAST = '2020-02-03T04:05:06.780Z'
const BODY = { title: 'On testing', content: 'As long as a blog must be' }

const admin = await person(app, 'ADMIN')

/** Inserts a blog. Returns its own columns as a response has them. */
async function store (author: { id: string }, fields: Fields = {}) {
  const row = { ...BODY, author_id: author.id, ...fields }
  const [blog] = await app.sql`
    INSERT INTO blogs ${app.sql(row)}
    RETURNING
      id, title, content, image_url AS "imageUrl", status, author_id AS "authorId",
      created_at AS "createdAt", updated_at AS "updatedAt"
  `
  return JSON.parse(JSON.stringify(blog)) as { [scalar: string]: string | null, id: string }
}

async function stored (id: string) {
  const [row] = await app.sql`SELECT * FROM blogs WHERE id = ${id}`
  return row
}

/** A valid token with these claims; `undefined` removes one. */
const sign = (claims: Fields) => app.jwt.sign(claims as unknown as FastifyJWT['payload'])

t.test('An account has megabytes for posts that are not published', async t => {
  const small = await build(t, { DATABASE_URL: app.config.DATABASE_URL, DRAFT_MB_PER_USER: '1' })
  const me = await person(small)
  const content = 'x'.repeat(490_000)
  for (let n = 0; n < 2; n++) t.equal((await me.inject('POST', '/blogs/submit', { ...BODY, content })).statusCode, 201)
  for (const status of ['DRAFT', 'ARCHIVED']) {
    await app.sql`UPDATE blogs SET status = ${status} WHERE author_id = ${me.id}`
    const response = await me.inject('POST', '/blogs/submit', { ...BODY, content })
    assertMessage(t, response, 413, 'You may have at most 1 MB of posts that are not published')
  }
  t.equal((await (await person(small)).inject('POST', '/blogs/submit', { ...BODY, content })).statusCode, 201, 'others')
  await app.sql`UPDATE blogs SET status = 'PUBLISHED' WHERE author_id = ${me.id}`
  t.equal((await me.inject('POST', '/blogs/submit', { ...BODY, content })).statusCode, 201)
})

t.test('New accounts of a network have no megabytes of their own', async t => {
  const small = await build(t, { DATABASE_URL: app.config.DATABASE_URL, DRAFT_MB_PER_USER: '1' })
  const submit = async (remoteAddress: string) => {
    const { token } = await person(small)
    const payload = { ...BODY, content: 'x'.repeat(700_000) }
    return small.inject({ method: 'POST', url: '/blogs/submit', headers: bearer(token), payload, remoteAddress })
  }
  const network = '192.0.2.1'
  for (let n = 0; n < 3; n++) t.equal((await submit(network)).statusCode, 201)
  const refused = await submit(network)
  assertMessage(t, refused, 429, 'Too many posts, please try again later')
  t.match(refused.headers['retry-after'], /^(900|8\d\d)$/)
  t.equal((await submit('192.0.2.2')).statusCode, 201, 'others')
})

t.test('Submissions at once do not exceed the megabytes of an account', async t => {
  await app.sql`DELETE FROM rate_limits`
  const small = await build(t, { DATABASE_URL: app.config.DATABASE_URL, DRAFT_MB_PER_USER: '1' })
  const me = await person(small)
  const content = 'x'.repeat(490_000)
  const submit = () => me.inject('POST', '/blogs/submit', { ...BODY, content })
  const statuses = (await Promise.all(Array.from({ length: 6 }, submit))).map(({ statusCode }) => statusCode)
  t.strictSame(statuses.sort(), [201, 201, 413, 413, 413, 413])
})

t.test('POST /blogs/submit stores a draft by the user of the token, for every role', async t => {
  for (const role of ROLES) {
    const me = await person(app, role, { avatar: 'https://example.org/me.png' })
    const response = await me.inject('POST', '/blogs/submit', { ...BODY, imageUrl: 'https://example.org/1.png' })
    t.equal(response.statusCode, 201)
    const { blog, ...rest } = response.json()
    t.strictSame(rest, {})
    const { id, createdAt, updatedAt, ...given } = blog
    t.strictSame(given, {
      ...BODY,
      imageUrl: 'https://example.org/1.png',
      status: 'DRAFT',
      authorId: me.id,
      author: { firstName: 'Ada', lastName: 'Lovelace' },
    })
    t.type(id, 'string')
    t.match([createdAt, updatedAt], [DATE_TIME, DATE_TIME])
    const { author, ...scalars } = blog
    t.strictSame((await me.inject('GET', '/blogs/me')).json(), { blogs: [scalars] })
  }
})

t.test('POST /blogs stores a blog by the user of the token, in the given status or as a draft', async t => {
  const me = await person(app, 'ADMIN', { avatar: 'https://example.org/me.png' })
  const other = await person(app)
  for (const status of [undefined, ...STATUSES]) {
    const body = { ...BODY, imageUrl: 'https://example.org/1.png', status, authorId: other.id, id: other.id, extra: 1 }
    const response = await me.inject('POST', '/blogs', body)
    t.equal(response.statusCode, 201)
    const { blog, ...rest } = response.json()
    t.strictSame(rest, {})
    const { id, createdAt, updatedAt, ...given } = blog
    t.strictSame(given, {
      ...BODY,
      imageUrl: 'https://example.org/1.png',
      status: status ?? 'DRAFT',
      authorId: me.id,
      author: { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/me.png' },
    })
    t.match([createdAt, updatedAt], [DATE_TIME, DATE_TIME])
    t.not(id, other.id)
    t.strictSame((await me.inject('GET', `/blogs/${id}`)).json(), { blog })
  }
})

for (const [url, role] of [['/blogs/submit', 'STUDENT'], ['/blogs', 'ADMIN']] as const) {
  t.test(`POST ${url} stores the content unchanged, and an omitted imageUrl as null`, async t => {
    const me = await person(app, role)
    const contents = [
      '<script>alert(1)</script><b onclick="x">& &amp; \'quotes\' "too"</b>',
      '  \t\n spaces before and behind are kept \r\n ',
      '漢字 👩‍👩‍👧‍👦 e\u0301 \\u0000 \\x00 \u202e \ufeff \u2028 \u0001 \u007f \uffff',
      '\'; DROP TABLE blogs; -- ${title} $1 %s',  // eslint-disable-line no-template-curly-in-string
      'x'.repeat(500_000),
    ]
    for (const content of contents) {
      const title = content.slice(0, 30)
      const response = await me.inject('POST', url, { title, content })
      t.equal(response.statusCode, 201)
      const { id, imageUrl } = response.json().blog
      t.equal(imageUrl, null)
      const { blog } = (await me.inject('GET', `/blogs/${id}`)).json()
      for (const found of [response.json().blog, blog]) {
        t.ok(found.content === content && found.title === title, JSON.stringify(title))
      }
    }
  })
}

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
  const { blogs, ...rest } = response.json()
  t.strictSame(rest, {})
  t.strictSame(blogs.filter(({ authorId }: Fields) => authorId === ada.id || authorId === bob.id), [
    { ...first, author: { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' } },
    { ...second, author: { firstName: 'Bob', lastName: 'Ross', avatar: null } },
  ])
  t.match(first, { createdAt: PAST, updatedAt: '2021-01-31T09:30:00.000Z' })
  for (const { status } of blogs) t.equal(status, 'PUBLISHED')
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
  }
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

for (const status of STATUSES) {
  t.test(`GET /blogs/:id: who may read a ${status} blog`, async t => {
    const author = await person(app)
    const blog = await store(author, { status, image_url: 'https://example.org/1.png' })
    const open = status === 'PUBLISHED'
    const readers: [string, string | undefined, boolean][] = [
      ['no header', undefined, open],
      ['an empty token', 'Bearer ', open],
      ['no scheme', admin.token, open],
      ['a different scheme', `Token ${admin.token}`, open],
      ['a lowercase scheme', `bearer ${admin.token}`, open],
      ['a longer scheme', `BearerX ${admin.token}`, open],
      ['two spaces', `Bearer  ${admin.token}`, open],
      ['garbage', 'Bearer garbage', open],
      ['a broken signature', `Bearer ${admin.token.slice(0, -8)}AAAAAAAA`, open],
      ['an expired token', `Bearer ${sign({ sub: admin.id, role: 'ADMIN', iat: 1 })}`, open],
      ['a student', `Bearer ${(await person(app)).token}`, open],
      ['a club head', `Bearer ${(await person(app, 'CLUB_HEAD')).token}`, open],
      ['a token without an id', `Bearer ${sign({ role: 'STUDENT' })}`, open],
      ['the author', `Bearer ${author.token}`, true],
      ['a third segment', `Bearer ${author.token} extra`, true],
      ['the author in a different role', `Bearer ${app.issueToken({ id: author.id, role: 'CLUB_HEAD' })}`, true],
      ['an admin', `Bearer ${admin.token}`, true],
      ['an admin without an id', `Bearer ${sign({ role: 'ADMIN' })}`, true],
    ]
    for (const [who, authorization, allowed] of readers) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      const response = await inject(app, 'GET', `/blogs/${blog.id}`, undefined, headers)
      if (allowed) {
        t.equal(response.statusCode, 200, who)
        const author = { firstName: 'Ada', lastName: 'Lovelace', avatar: null }
        t.strictSame(response.json(), { blog: { ...blog, author } }, who)
        if (!open) t.notMatch(String(response.headers['cache-control']), 'public', who)
      } else {
        assertMessage(t, response, 403, 'You are not allowed to view this blog', who)
      }
    }
  })
}

t.test('PUT /blogs/:id changes the given fields of any blog', async t => {
  const author = await person(app, 'CLUB_HEAD', { avatar: 'https://example.org/ada.png' })
  const blog = await store(author, { created_at: PAST, updated_at: PAST })
  const change = { title: 'Now', content: 'Twenty characters it has', imageUrl: 'https://x.org/', status: 'PUBLISHED' }
  const response = await admin.inject('PUT', `/blogs/${blog.id}`, change)
  t.equal(response.statusCode, 200)
  const { blog: { author: named, updatedAt, ...rest }, ...others } = response.json()
  t.strictSame(others, {})
  t.strictSame(rest, { id: blog.id, ...change, authorId: author.id, createdAt: PAST })
  t.strictSame(named, { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' })
  t.ok(updatedAt > PAST)
  t.strictSame((await inject(app, 'GET', `/blogs/${blog.id}`)).json(), response.json())
})

t.test('PUT /blogs/:id accepts an empty object, and leaves omitted fields unchanged', async t => {
  const author = await person(app)
  const blog = await store(author, { status: 'PUBLISHED', image_url: 'https://x.org/1', created_at: PAST })
  const other = { authorId: admin.id, id: randomUUID(), createdAt: new Date(), author: { firstName: 'X' }, extra: 1 }
  const [title, status] = [{ title: 'Only this' }, { status: 'DRAFT' }]
  for (const [body, change] of [[{}, {}], [other, {}], [title, title], [status, status]]) {
    const response = await admin.inject('PUT', `/blogs/${blog.id}`, body)
    t.equal(response.statusCode, 200)
    const { author: named, updatedAt, ...rest } = response.json().blog
    Object.assign(blog, change)
    t.strictSame({ ...rest, updatedAt: blog.updatedAt }, blog)
    t.strictSame(named, { firstName: 'Ada', lastName: 'Lovelace', avatar: null })
    t.match(updatedAt, DATE_TIME)
  }
})

for (const [operation, status] of [['approve', 'PUBLISHED'], ['archive', 'ARCHIVED']] as const) {
  t.test(`POST /blogs/:id/${operation} makes a blog ${status} from any status, and returns it`, async t => {
    const author = await person(app)
    for (const from of STATUSES) {
      const blog = await store(author, { status: from, created_at: PAST, updated_at: PAST })
      const response = await admin.inject('POST', `/blogs/${blog.id}/${operation}`)
      t.equal(response.statusCode, 200)
      const { blog: { updatedAt, ...rest }, ...others } = response.json()
      t.strictSame(others, {})
      const { updatedAt: _, ...expected }: Fields = { ...blog, status }
      t.strictSame(rest, expected)
      t.match(updatedAt, DATE_TIME)
      t.ok(updatedAt > PAST)
      t.equal((await stored(blog.id))?.status, status)
    }
  })
}

t.test('DELETE /blogs/:id deletes a blog of any status', async t => {
  const author = await person(app)
  const kept = await store(author)
  for (const status of STATUSES) {
    const { id } = await store(author, { status })
    assertMessage(t, await admin.inject('DELETE', `/blogs/${id}`), 200, 'Blog deleted successfully')
    t.equal(await stored(id), undefined)
  }
  t.strictSame((await author.inject('GET', '/blogs/me')).json(), { blogs: [kept] })
})
