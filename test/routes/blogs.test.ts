import { createHmac, randomUUID } from 'node:crypto'

import type { LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'

import { build, inject, type Person, person } from '../helper.ts'

const app = await build(t)

type Method = Parameters<Person['inject']>[0]
type Fields = Record<string, unknown>

const ROLES = ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const
const STATUSES = ['DRAFT', 'PUBLISHED', 'ARCHIVED']
const SCALARS = ['authorId', 'content', 'createdAt', 'id', 'imageUrl', 'status', 'title', 'updatedAt']
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const PAST = '2020-02-03T04:05:06.780Z'
const BODY = { title: 'On testing', content: 'As long as a blog must be' }

const admin = await person(app, 'ADMIN')

/** Stores a blog; returns its scalars as an answer has them. */
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

function says (t: Test, response: LightMyRequestResponse, status: number, message: string, about = '') {
  t.strictSame([response.statusCode, response.json()], [status, { message }], about)
}

/** A validation error about exactly these fields. */
function invalid (t: Test, response: LightMyRequestResponse, paths: string[], about = '') {
  const { message, errors, ...rest } = response.json()
  t.strictSame([response.statusCode, message, rest], [400, 'Validation error', {}], about)
  const issues: Fields[] = errors ?? []
  t.strictSame([...new Set(issues.map(({ path }) => path))].sort(), paths, about)
  t.ok(issues.every(issue => Object.keys(issue).sort().join() === 'message,path' && issue.message), about)
}

/** A token of anybody's making. */
function forge (claims: Fields, alg = 'HS256', secret = 'a secret of somebody else, long enough') {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg, typ: 'JWT' })}.${part(claims)}`
  return `${signed}.${alg === 'none' ? '' : createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** A valid token without some of the claims, or with others. */
const sign = (claims: Fields) => app.jwt.sign(claims as { sub: string, role: 'STUDENT' })

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Texts that are the id of no blog, though one has the id given. */
const unknownIds = (id: string) => [
  randomUUID(), '00000000-0000-0000-0000-000000000000', 'not-a-uuid', id.toUpperCase(), `${id}%20`, `%7B${id}%7D`,
  id.replaceAll('-', ''), 'x'.repeat(10_000), '%00', 'a%2Fb', '%27%3B--', '0', 'null',
]

/** A fresh id that is written differently in capitals. */
const lettered = () => randomUUID().replace(/^./, 'a')

const GUARDED: [Method, string, typeof ROLES[number][]][] = [
  ['POST', '/blogs/submit', ['STUDENT', 'CLUB_HEAD', 'ADMIN']],
  ['GET', '/blogs/me', ['STUDENT', 'CLUB_HEAD', 'ADMIN']],
  ['GET', '/blogs/admin', ['ADMIN']],
  ['POST', '/blogs', ['ADMIN']],
  ['PUT', '/blogs/some-id', ['ADMIN']],
  ['POST', '/blogs//approve', ['ADMIN']],
  ['POST', '/blogs//archive', ['ADMIN']],
  ['DELETE', '/blogs/some-id', ['ADMIN']],
]

for (const [method, url, allowed] of GUARDED) {
  t.test(`${method} ${url} is for ${allowed.join(', ')}; that is checked before anything else`, async t => {
    const payload = method === 'GET' ? undefined : { title: 5 }
    const send = (authorization?: string) => inject(app, method, url, payload, authorization ? { authorization } : {})
    const { id } = await person(app)
    says(t, await send(), 401, 'Access token required')
    says(t, await send('Bearer'), 401, 'Access token required')
    says(t, await send(`Bearer  ${admin.token}`), 401, 'Access token required', 'two spaces')
    says(t, await send('Bearer garbage'), 401, 'Invalid or expired token')
    const claims = { sub: id, role: 'ADMIN' }
    for (const token of [sign({ ...claims, iat: 1 }), forge(claims), forge(claims, 'none')]) {
      says(t, await send(`Bearer ${token}`), 401, 'Invalid or expired token', 'expired, foreign, unsigned')
    }
    says(t, await send(`Bearer ${sign({ sub: id, role: 'GUEST' })}`), 403, 'Forbidden', 'no role of ours')
    says(t, await send(`Bearer ${sign({ sub: id })}`), 403, 'Forbidden', 'no role')
    for (const role of ROLES) {
      const response = await send(`Whatever ${app.issueToken({ id, role })}`)
      if (allowed.includes(role)) t.notOk([401, 403].includes(response.statusCode), role)
      else says(t, response, 403, 'Forbidden', role)
    }
  })
}

t.test('The role that counts is the one in the token', async t => {
  const stepped = await person(app, 'ADMIN')
  const risen = await person(app, 'STUDENT')
  const blog = await store(admin)
  const asStudent = bearer(app.issueToken({ id: stepped.id, role: 'STUDENT' }))
  const asAdmin = bearer(app.issueToken({ id: risen.id, role: 'ADMIN' }))
  for (const url of ['/blogs/admin', `/blogs/${blog.id}`]) {
    t.equal((await inject(app, 'GET', url, undefined, asStudent)).statusCode, 403)
    t.equal((await inject(app, 'GET', url, undefined, asAdmin)).statusCode, 200)
  }
})

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

t.test('GET /blogs asks for no token, and looks at none', async t => {
  for (const authorization of ['Bearer garbage', 'Bearer', `Bearer ${admin.token}`]) {
    t.equal((await inject(app, 'GET', '/blogs', undefined, { authorization })).statusCode, 200)
  }
})

t.test('A trailing slash makes no difference', async t => {
  const response = await inject(app, 'GET', '/blogs/')
  t.equal(response.statusCode, 200)
  t.strictSame(Object.keys(response.json()), ['blogs'])
  t.equal((await admin.inject('GET', '/blogs/admin/')).statusCode, 200)
})

for (const url of ['/blogs', '/blogs/me', '/blogs/admin']) {
  t.test(`GET ${url} is newest first, of the same instant by id, and not in pages`, async t => {
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

t.test('GET /blogs/me lists the blogs of the token\'s user in every status, without author', async t => {
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

t.test('GET /blogs/me with a token that names no user is Unauthorized, and empty for a deleted one', async t => {
  says(t, await inject(app, 'GET', '/blogs/me', undefined, bearer(sign({ role: 'STUDENT' }))), 401, 'Unauthorized')
  const gone = { id: randomUUID(), role: 'STUDENT' } as const
  const response = await inject(app, 'GET', '/blogs/me', undefined, bearer(app.issueToken(gone)))
  t.strictSame([response.statusCode, response.json()], [200, { blogs: [] }])
})

t.test('GET /blogs/admin lists every blog in every status, with the author\'s names', async t => {
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
  t.test(`GET /blogs/:id: who may read a blog that is ${status}`, async t => {
    const author = await person(app)
    const blog = await store(author, { status, image_url: 'https://example.org/1.png' })
    const stranger = await person(app)
    const head = await person(app, 'CLUB_HEAD')
    const adminClaims = { sub: admin.id, role: 'ADMIN' }

    const open = status === 'PUBLISHED'
    const readers: [string, string | undefined, boolean][] = [
      ['no header', undefined, open],
      ['an empty header', '', open],
      ['no token', 'Bearer', open],
      ['an empty token', 'Bearer ', open],
      ['no scheme', admin.token, open],
      ['a lowercase scheme', `bearer ${admin.token}`, open],
      ['an uppercase scheme', `BEARER ${admin.token}`, open],
      ['another scheme', `Token ${admin.token}`, open],
      ['a longer scheme', `BearerX ${admin.token}`, open],
      ['two spaces', `Bearer  ${admin.token}`, open],
      ['garbage', 'Bearer garbage', open],
      ['a broken signature', `Bearer ${admin.token.slice(0, -8)}AAAAAAAA`, open],
      ['an expired token', `Bearer ${sign({ ...adminClaims, iat: 1 })}`, open],
      ['a foreign token', `Bearer ${forge(adminClaims)}`, open],
      ['an unsigned token', `Bearer ${forge(adminClaims, 'none')}`, open],
      ['a student', `Bearer ${stranger.token}`, open],
      ['a club head', `Bearer ${head.token}`, open],
      ['nobody', `Bearer ${sign({ role: 'STUDENT' })}`, open],
      ['the author', `Bearer ${author.token}`, true],
      ['the author in another role', `Bearer ${app.issueToken({ id: author.id, role: 'CLUB_HEAD' })}`, true],
      ['the author without a role', `Bearer ${sign({ sub: author.id })}`, true],
      ['an admin', `Bearer ${admin.token}`, true],
      ['an admin who is gone', `Bearer ${app.issueToken({ id: randomUUID(), role: 'ADMIN' })}`, true],
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
        says(t, response, 403, 'You are not allowed to view this blog', who)
      }
    }
  })
}

t.test('GET /blogs/:id of an id that no blog has is 404, with and without a token', async t => {
  const { id } = await store(admin, { id: lettered(), status: 'PUBLISHED' })
  t.equal((await inject(app, 'GET', `/blogs/${id}`)).statusCode, 200)
  for (const unknown of unknownIds(id)) {
    const about = unknown.slice(0, 50)
    says(t, await inject(app, 'GET', `/blogs/${unknown}`), 404, 'Blog not found', about)
    says(t, await inject(app, 'GET', `/blogs/${unknown}`, undefined, bearer('garbage')), 404, 'Blog not found', about)
    says(t, await admin.inject('GET', `/blogs/${unknown}`), 404, 'Blog not found', about)
  }
})

t.test('GET /blogs/:id names the author with the avatar', async t => {
  const author = await person(app, 'STUDENT', { avatar: 'https://example.org/ada.png' })
  const { id } = await store(author, { status: 'PUBLISHED' })
  const { blog } = (await inject(app, 'GET', `/blogs/${id}`)).json()
  t.strictSame(blog.author, { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' })
})

t.test('POST /blogs/submit stores a draft of the token\'s user, for every role', async t => {
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

t.test('POST /blogs/submit ignores status, authorId and every other field', async t => {
  const me = await person(app)
  const other = await person(app)
  const bodies = [
    ...STATUSES.map(status => ({ ...BODY, status, authorId: other.id })),
    { ...BODY, status: 'NONE', authorId: 'nobody' },
    { ...BODY, status: 5, authorId: null, id: other.id, createdAt: PAST, updatedAt: PAST, author: {}, extra: [] },
  ]
  for (const body of bodies) {
    const response = await me.inject('POST', '/blogs/submit', body)
    t.equal(response.statusCode, 201)
    const { id, status, authorId, createdAt } = response.json().blog
    t.strictSame([status, authorId], ['DRAFT', me.id])
    t.not(id, other.id)
    t.not(createdAt, PAST)
  }
  t.strictSame((await other.inject('GET', '/blogs/me')).json(), { blogs: [] })
})

t.test('POST /blogs stores a blog of the token\'s user in the status given, or as a draft', async t => {
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

const CREATED: [string, string, typeof ROLES[number]][] = [
  ['/blogs/submit', 'Failed to submit blog', 'STUDENT'],
  ['/blogs', 'Failed to create blog', 'ADMIN'],
]

for (const [url, failure, role] of CREATED) {
  t.test(`POST ${url}: an omitted imageUrl becomes null`, async t => {
    const response = await (await person(app, role)).inject('POST', url, BODY)
    t.equal(response.statusCode, 201)
    t.equal(response.json().blog.imageUrl, null)
  })

  t.test(`POST ${url} reports every issue`, async t => {
    const me = await person(app, role)
    invalid(t, await me.inject('POST', url, {}), ['content', 'title'])
    invalid(t, await me.inject('POST', url, { content: BODY.content }), ['title'])
    invalid(t, await me.inject('POST', url, { title: BODY.title }), ['content'])
    invalid(t, await me.inject('POST', url, { title: 'ab', content: 'short', imageUrl: 'none' }),
      ['content', 'imageUrl', 'title'])
  })

  t.test(`POST ${url} wants an object`, async t => {
    const headers = { ...bearer((await person(app, role)).token), 'content-type': 'application/json' }
    for (const body of ['[]', '"text"', 'null', '5', 'true', `[${JSON.stringify(BODY)}]`, '']) {
      invalid(t, await inject(app, 'POST', url, body, headers), [''], body)
    }
  })

  t.test(`POST ${url} with the token of an author who is gone is ${failure}`, async t => {
    const me = await person(app, role)
    await app.sql`DELETE FROM users WHERE id = ${me.id}`
    says(t, await me.inject('POST', url, BODY), 500, failure)
    invalid(t, await me.inject('POST', url, {}), ['content', 'title'])
  })

  t.test(`POST ${url} stores the content as given`, async t => {
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
      const { id } = response.json().blog
      const { blog } = (await me.inject('GET', `/blogs/${id}`)).json()
      for (const answer of [response.json().blog, blog]) {
        t.ok(answer.content === content && answer.title === title, JSON.stringify(title))
      }
    }
  })

  t.test(`POST ${url} stores a lone surrogate as U+FFFD`, async t => {
    const me = await person(app, role)
    const response = await me.inject('POST', url, { title: '\ud800abc', content: `${BODY.content} \udc00` })
    t.equal(response.statusCode, 201)
    const { id } = response.json().blog
    const { blog } = (await me.inject('GET', `/blogs/${id}`)).json()
    t.strictSame([blog.title, blog.content], ['\ufffdabc', `${BODY.content} \ufffd`])
  })
}

t.test('A value of a wrong type is one issue', async t => {
  const { errors } = (await admin.inject('POST', '/blogs', { title: 5, content: [], imageUrl: {}, status: 5 })).json()
  t.strictSame(errors.map(({ path }: Fields) => path).sort(), ['content', 'imageUrl', 'status', 'title'])
})

t.test('POST /blogs/submit with a token that names no user is Unauthorized', async t => {
  const response = await inject(app, 'POST', '/blogs/submit', BODY, bearer(sign({ role: 'STUDENT' })))
  says(t, response, 401, 'Unauthorized')
})

t.test('POST /blogs with a token that names no user fails', async t => {
  says(t, await inject(app, 'POST', '/blogs', BODY, bearer(sign({ role: 'ADMIN' }))), 500, 'Failed to create blog')
})

/** Each rule for a field on both sides of its bound. */
const RULES: [string, unknown[], unknown[]][] = [
  ['title',
    ['abc', '   ', '😀a', 'x'.repeat(10_000)],
    ['', 'ab', '😀', 'a\0bc', '\0', null, 123, true, ['abc'], {}]],
  ['content',
    ['x'.repeat(20), ' '.repeat(20), '😀'.repeat(10)],
    ['', 'x'.repeat(19), `${'😀'.repeat(9)}x`, `${'x'.repeat(20)}\0`, null, 1e20, ['x'.repeat(20)], {}]],
  ['imageUrl',
    ['https://example.org/a.png', 'HTTP://EXAMPLE.ORG', 'data:,x', 'x:y', ' https://example.org/ü ?q#f '],
    ['', 'example.org/a.png', '/a.png', '//example.org/a.png', 'https://', 'https://example.org/\0', null, 5, [], {}]],
]
const STATUS_RULE: typeof RULES[number] = ['status',
  STATUSES, ['draft', '', 'DELETED', ' DRAFT', null, 5, ['DRAFT'], {}]]

for (const [field, good, bad] of [...RULES, STATUS_RULE]) {
  for (const [url, , role] of field === 'status' ? CREATED.slice(1) : CREATED) {
    t.test(`POST ${url} checks ${field}`, async t => {
      const me = await person(app, role)
      for (const value of good) {
        const response = await me.inject('POST', url, { ...BODY, [field]: value })
        t.equal(response.statusCode, 201, JSON.stringify(value).slice(0, 50))
        t.equal(response.json().blog[field], value)
      }
      for (const value of bad) {
        const about = JSON.stringify(value).slice(0, 50)
        invalid(t, await me.inject('POST', url, { ...BODY, [field]: value }), [field], about)
      }
    })
  }

  t.test(`PUT /blogs/:id changes ${field} alone, and checks it`, async t => {
    const author = await person(app)
    const fields = { created_at: PAST, updated_at: PAST, image_url: 'https://x.org/1', status: 'ARCHIVED' }
    for (const value of good) {
      const blog = await store(author, fields)
      const response = await admin.inject('PUT', `/blogs/${blog.id}`, { [field]: value })
      const about = JSON.stringify(value).slice(0, 50)
      t.equal(response.statusCode, 200, about)
      const { author: shown, updatedAt, ...rest } = response.json().blog
      const { updatedAt: _, ...expected }: Fields = { ...blog, [field]: value }
      t.strictSame(rest, expected, about)
      t.strictSame(shown, { firstName: 'Ada', lastName: 'Lovelace', avatar: null })
      t.ok(updatedAt > PAST)
    }
    const blog = await store(author, fields)
    const before = await stored(blog.id)
    for (const value of bad) {
      const about = JSON.stringify(value).slice(0, 50)
      invalid(t, await admin.inject('PUT', `/blogs/${blog.id}`, { [field]: value }), [field], about)
    }
    t.strictSame(await stored(blog.id), before)
  })
}

t.test('PUT /blogs/:id changes what is given, of anybody\'s blog', async t => {
  const author = await person(app, 'CLUB_HEAD', { avatar: 'https://example.org/ada.png' })
  const blog = await store(author, { created_at: PAST, updated_at: PAST })
  const change = { title: 'Now', content: 'Twenty characters it has', imageUrl: 'https://x.org/', status: 'PUBLISHED' }
  const response = await admin.inject('PUT', `/blogs/${blog.id}`, change)
  t.equal(response.statusCode, 200)
  const { blog: { author: shown, updatedAt, ...rest }, ...others } = response.json()
  t.strictSame(others, {})
  t.strictSame(rest, { id: blog.id, ...change, authorId: author.id, createdAt: PAST })
  t.strictSame(shown, { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' })
  t.match(updatedAt, DATE_TIME)
  t.strictSame((await inject(app, 'GET', `/blogs/${blog.id}`)).json(), response.json())
})

t.test('PUT /blogs/:id takes an empty object, and leaves what is omitted and all that is not named', async t => {
  const author = await person(app)
  const blog = await store(author, { status: 'PUBLISHED', image_url: 'https://x.org/1', created_at: PAST })
  const other = { authorId: admin.id, id: randomUUID(), createdAt: new Date(), author: { firstName: 'X' }, extra: 1 }
  for (const body of [{}, other]) {
    const response = await admin.inject('PUT', `/blogs/${blog.id}`, body)
    t.equal(response.statusCode, 200)
    const { author: shown, updatedAt, ...rest } = response.json().blog
    t.strictSame({ ...rest, updatedAt: blog.updatedAt }, blog)
    t.strictSame(shown, { firstName: 'Ada', lastName: 'Lovelace', avatar: null })
    t.match(updatedAt, DATE_TIME)
  }
})

t.test('PUT /blogs/:id moves a blog from any status to any other', async t => {
  for (const from of STATUSES) {
    for (const status of STATUSES) {
      const { id } = await store(admin, { status: from })
      const response = await admin.inject('PUT', `/blogs/${id}`, { status })
      t.equal(response.statusCode, 200)
      t.equal(response.json().blog.status, status)
    }
  }
})

t.test('PUT /blogs/:id reports every issue, and wants an object', async t => {
  const { id } = await store(admin)
  const body = { title: '', content: '', imageUrl: '', status: '' }
  invalid(t, await admin.inject('PUT', `/blogs/${id}`, body), ['content', 'imageUrl', 'status', 'title'])
  const headers = { ...bearer(admin.token), 'content-type': 'application/json' }
  for (const body of ['[]', '"text"', 'null']) {
    invalid(t, await inject(app, 'PUT', `/blogs/${id}`, body, headers), [''], body)
  }
})

for (const [operation, status, failure] of [
  ['approve', 'PUBLISHED', 'Failed to approve blog'], ['archive', 'ARCHIVED', 'Failed to archive blog'],
] as const) {
  t.test(`POST /blogs/:id/${operation} makes a blog ${status} from any status, and answers its scalars`, async t => {
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

  t.test(`POST /blogs/:id/${operation} takes an empty JSON body for none`, async t => {
    const { id } = await store(admin)
    const headers = { ...bearer(admin.token), 'content-type': 'application/json' }
    const response = await inject(app, 'POST', `/blogs/${id}/${operation}`, undefined, headers)
    t.equal(response.statusCode, 200)
    t.equal(response.json().blog.status, status)
  })

  t.test(`POST /blogs/:id/${operation} of an unknown id is ${failure}, of an empty one a validation error`, async t => {
    const { id } = await store(admin, { id: lettered() })
    for (const unknown of unknownIds(id)) {
      says(t, await admin.inject('POST', `/blogs/${unknown}/${operation}`), 500, failure, unknown.slice(0, 50))
    }
    invalid(t, await admin.inject('POST', `/blogs//${operation}`), ['id'])
    t.equal((await stored(id))?.status, 'DRAFT')
  })
}

t.test('PUT /blogs/:id of an unknown id is Failed to update blog, after the body is checked', async t => {
  const { id } = await store(admin, { id: lettered() })
  const before = await stored(id)
  for (const unknown of unknownIds(id)) {
    for (const body of [{}, { status: 'PUBLISHED' }]) {
      const response = await admin.inject('PUT', `/blogs/${unknown}`, body)
      says(t, response, 500, 'Failed to update blog', unknown.slice(0, 50))
    }
    invalid(t, await admin.inject('PUT', `/blogs/${unknown}`, { title: '' }), ['title'])
  }
  t.strictSame(await stored(id), before)
})

t.test('DELETE /blogs/:id removes a blog of any status', async t => {
  const author = await person(app)
  const kept = await store(author)
  for (const status of STATUSES) {
    const { id } = await store(author, { status })
    says(t, await admin.inject('DELETE', `/blogs/${id}`), 200, 'Blog deleted successfully')
    t.equal(await stored(id), undefined)
    says(t, await admin.inject('GET', `/blogs/${id}`), 404, 'Blog not found')
    says(t, await admin.inject('DELETE', `/blogs/${id}`), 500, 'Failed to delete blog')
  }
  t.strictSame((await author.inject('GET', '/blogs/me')).json(), { blogs: [kept] })
})

t.test('DELETE /blogs/:id takes an empty JSON body for none', async t => {
  const { id } = await store(admin)
  const headers = { ...bearer(admin.token), 'content-type': 'application/json' }
  const response = await inject(app, 'DELETE', `/blogs/${id}`, undefined, headers)
  says(t, response, 200, 'Blog deleted successfully')
})

t.test('DELETE /blogs/:id of an unknown id is Failed to delete blog', async t => {
  const { id } = await store(admin, { id: lettered() })
  for (const unknown of unknownIds(id)) {
    says(t, await admin.inject('DELETE', `/blogs/${unknown}`), 500, 'Failed to delete blog', unknown.slice(0, 50))
  }
  invalid(t, await admin.inject('DELETE', '/blogs//'), ['id'])
  t.ok(await stored(id))
})

t.test('A blog from submission to removal: who sees it when', async t => {
  const author = await person(app)
  const { id } = (await author.inject('POST', '/blogs/submit', BODY)).json().blog
  const statuses = async () => [
    (await inject(app, 'GET', `/blogs/${id}`)).statusCode,
    (await author.inject('GET', `/blogs/${id}`)).statusCode,
    (await inject(app, 'GET', '/blogs')).json().blogs.some((blog: Fields) => blog.id === id),
    (await author.inject('GET', '/blogs/me')).json().blogs.length,
    (await admin.inject('GET', '/blogs/admin')).json().blogs.some((blog: Fields) => blog.id === id),
  ]
  t.strictSame(await statuses(), [403, 200, false, 1, true])
  await admin.inject('POST', `/blogs/${id}/approve`)
  t.strictSame(await statuses(), [200, 200, true, 1, true])
  await admin.inject('POST', `/blogs/${id}/archive`)
  t.strictSame(await statuses(), [403, 200, false, 1, true])
  await admin.inject('PUT', `/blogs/${id}`, { status: 'DRAFT' })
  t.strictSame(await statuses(), [403, 200, false, 1, true])
  await admin.inject('DELETE', `/blogs/${id}`)
  t.strictSame(await statuses(), [404, 404, false, 0, false])
})

t.test('There are no contributor update or delete operations', async t => {
  for (const role of ['STUDENT', 'CLUB_HEAD'] as const) {
    const author = await person(app, role)
    const blog = await store(author)
    says(t, await author.inject('PUT', `/blogs/${blog.id}`, { title: 'Mine' }), 403, 'Forbidden')
    says(t, await author.inject('DELETE', `/blogs/${blog.id}`), 403, 'Forbidden')
    says(t, await author.inject('PATCH', `/blogs/${blog.id}`, { title: 'Mine' }), 404, 'Not found')
    t.strictSame((await author.inject('GET', '/blogs/me')).json(), { blogs: [blog] })
  }
})

t.test('When the database fails, each operation says so in its own words and in no others', async t => {
  const app = await build(t)
  await app.sql`ALTER TABLE blogs RENAME TO elsewhere`
  const headers = bearer(app.issueToken({ id: randomUUID(), role: 'ADMIN' }))
  const operations: [Method, string, string, Fields?][] = [
    ['GET', '/blogs', 'Failed to fetch blogs'],
    ['GET', '/blogs/some-id', 'Failed to fetch blog'],
    ['POST', '/blogs/submit', 'Failed to submit blog', BODY],
    ['GET', '/blogs/me', 'Failed to fetch your blogs'],
    ['GET', '/blogs/admin', 'Failed to fetch blogs'],
    ['POST', '/blogs', 'Failed to create blog', BODY],
    ['PUT', '/blogs/some-id', 'Failed to update blog', {}],
    ['POST', '/blogs/some-id/approve', 'Failed to approve blog'],
    ['POST', '/blogs/some-id/archive', 'Failed to archive blog'],
    ['DELETE', '/blogs/some-id', 'Failed to delete blog'],
  ]
  for (const [method, url, message, body] of operations) {
    const response = await inject(app, method, url, body, headers)
    says(t, response, 500, message, `${method} ${url}`)
    t.equal(response.headers['cache-control'], 'no-store')
  }
})
