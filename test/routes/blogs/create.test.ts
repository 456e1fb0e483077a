import t from 'tap'

import { ROLES } from '#lib/auth/accounts.js'
import { assertInvalid, assertMessage, DATE_TIME, shown } from '../../assertions.ts'
import { bearer, inject, person } from '../../helper.ts'
import { admin, app, BODY, type Fields, PAST, RULES, sign, STATUS_RULE, STATUSES } from './fixtures.ts'

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

t.test('POST /blogs/submit ignores status, authorId and all other fields', async t => {
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
    assertInvalid(t, await me.inject('POST', url, {}), ['content', 'title'])
    assertInvalid(t, await me.inject('POST', url, { content: BODY.content }), ['title'])
    assertInvalid(t, await me.inject('POST', url, { title: BODY.title }), ['content'])
    assertInvalid(t, await me.inject('POST', url, { title: 'ab', content: 'short', imageUrl: 'none' }),
      ['content', 'imageUrl', 'title'])
  })

  t.test(`POST ${url} requires an object`, async t => {
    const headers = { ...bearer((await person(app, role)).token), 'content-type': 'application/json' }
    for (const body of ['[]', '"text"', 'null', '5', 'true', `[${JSON.stringify(BODY)}]`]) {
      assertInvalid(t, await inject(app, 'POST', url, body, headers), [''], body)
    }
    assertInvalid(t, await inject(app, 'POST', url, '', headers), ['content', 'title'], 'an empty body')
  })

  t.test(`POST ${url} with a token of a deleted author is ${failure}`, async t => {
    const me = await person(app, role)
    await app.sql`DELETE FROM users WHERE id = ${me.id}`
    assertMessage(t, await me.inject('POST', url, BODY), 500, failure)
    assertInvalid(t, await me.inject('POST', url, {}), ['content', 'title'])
  })

  t.test(`POST ${url} stores the content unchanged`, async t => {
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
      for (const found of [response.json().blog, blog]) {
        t.ok(found.content === content && found.title === title, JSON.stringify(title))
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

t.test('A value of the wrong type is one issue', async t => {
  const { errors } = (await admin.inject('POST', '/blogs', { title: 5, content: [], imageUrl: {}, status: 5 })).json()
  t.strictSame(errors.map(({ path }: Fields) => path).sort(), ['content', 'imageUrl', 'status', 'title'])
})

t.test('POST /blogs/submit with a token without a user id is Unauthorized', async t => {
  const response = await inject(app, 'POST', '/blogs/submit', BODY, bearer(sign({ role: 'STUDENT' })))
  assertMessage(t, response, 401, 'Unauthorized')
})

t.test('POST /blogs with a token without a user id is a 500', async t => {
  assertMessage(t, await inject(app, 'POST', '/blogs', BODY, bearer(sign({ role: 'ADMIN' }))), 500,
    'Failed to create blog')
})

for (const [field, good, bad] of [...RULES, STATUS_RULE]) {
  for (const [url, , role] of field === 'status' ? CREATED.slice(1) : CREATED) {
    t.test(`POST ${url} validates ${field}`, async t => {
      const me = await person(app, role)
      for (const value of good) {
        const response = await me.inject('POST', url, { ...BODY, [field]: value })
        t.equal(response.statusCode, 201, shown(value))
        t.equal(response.json().blog[field], value)
      }
      for (const value of bad) {
        assertInvalid(t, await me.inject('POST', url, { ...BODY, [field]: value }), [field], shown(value))
      }
    })
  }
}
