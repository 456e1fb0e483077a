import { randomUUID } from 'node:crypto'

import t from 'tap'

import { assertInvalid, assertMessage, DATE_TIME, shown, unknownPaths } from '../../assertions.ts'
import { bearerOfJson, inject, person } from '../../helper.ts'
import { admin, app, type Fields, PAST, RULES, STATUS_RULE, STATUSES, store, stored } from './fixtures.ts'

for (const [field, good, bad] of [...RULES, STATUS_RULE]) {
  t.test(`PUT /blogs/:id changes only ${field}, and validates it`, async t => {
    const author = await person(app)
    const fields = { created_at: PAST, updated_at: PAST, image_url: 'https://x.org/1', status: 'ARCHIVED' }
    for (const value of good) {
      const blog = await store(author, fields)
      const response = await admin.inject('PUT', `/blogs/${blog.id}`, { [field]: value })
      t.equal(response.statusCode, 200, shown(value))
      const { author: named, updatedAt, ...rest } = response.json().blog
      const { updatedAt: _, ...expected }: Fields = { ...blog, [field]: value }
      t.strictSame(rest, expected, shown(value))
      t.strictSame(named, { firstName: 'Ada', lastName: 'Lovelace', avatar: null })
      t.ok(updatedAt > PAST)
    }
    const blog = await store(author, fields)
    const before = await stored(blog.id)
    for (const value of bad) {
      assertInvalid(t, await admin.inject('PUT', `/blogs/${blog.id}`, { [field]: value }), [field], shown(value))
    }
    t.strictSame(await stored(blog.id), before)
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
  t.match(updatedAt, DATE_TIME)
  t.strictSame((await inject(app, 'GET', `/blogs/${blog.id}`)).json(), response.json())
})

t.test('PUT /blogs/:id accepts an empty object, and leaves omitted fields unchanged', async t => {
  const author = await person(app)
  const blog = await store(author, { status: 'PUBLISHED', image_url: 'https://x.org/1', created_at: PAST })
  const other = { authorId: admin.id, id: randomUUID(), createdAt: new Date(), author: { firstName: 'X' }, extra: 1 }
  for (const body of [{}, other]) {
    const response = await admin.inject('PUT', `/blogs/${blog.id}`, body)
    t.equal(response.statusCode, 200)
    const { author: named, updatedAt, ...rest } = response.json().blog
    t.strictSame({ ...rest, updatedAt: blog.updatedAt }, blog)
    t.strictSame(named, { firstName: 'Ada', lastName: 'Lovelace', avatar: null })
    t.match(updatedAt, DATE_TIME)
  }
})

t.test('PUT /blogs/:id changes any status to any other', async t => {
  for (const from of STATUSES) {
    for (const status of STATUSES) {
      const { id } = await store(admin, { status: from })
      const response = await admin.inject('PUT', `/blogs/${id}`, { status })
      t.equal(response.statusCode, 200)
      t.equal(response.json().blog.status, status)
    }
  }
})

t.test('PUT /blogs/:id reports every issue, and requires an object', async t => {
  const { id } = await store(admin)
  const body = { title: '', content: '', imageUrl: '', status: '' }
  assertInvalid(t, await admin.inject('PUT', `/blogs/${id}`, body), ['content', 'imageUrl', 'status', 'title'])
  const headers = bearerOfJson(admin.token)
  for (const body of ['[]', '"text"', 'null']) {
    assertInvalid(t, await inject(app, 'PUT', `/blogs/${id}`, body, headers), [''], body)
  }
})

for (const [operation, status, failure] of [
  ['approve', 'PUBLISHED', 'Failed to approve blog'], ['archive', 'ARCHIVED', 'Failed to archive blog'],
] as const) {
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

  t.test(`POST /blogs/:id/${operation} accepts an empty JSON body`, async t => {
    const { id } = await store(admin)
    const headers = bearerOfJson(admin.token)
    const response = await inject(app, 'POST', `/blogs/${id}/${operation}`, undefined, headers)
    t.equal(response.statusCode, 200)
    t.equal(response.json().blog.status, status)
  })

  t.test(`POST /blogs/:id/${operation} is ${failure} for an unknown id, and a 400 for an empty one`, async t => {
    const { id } = await store(admin)
    for (const unknown of unknownPaths(id)) {
      assertMessage(t, await admin.inject('POST', `/blogs/${unknown}/${operation}`), 500, failure, unknown.slice(0, 50))
    }
    assertInvalid(t, await admin.inject('POST', `/blogs//${operation}`), ['id'])
    t.equal((await stored(id))?.status, 'DRAFT')
  })
}

t.test('PUT /blogs/:id returns 500 for an unknown id, after validation', async t => {
  const { id } = await store(admin)
  const before = await stored(id)
  for (const unknown of unknownPaths(id)) {
    for (const body of [{}, { status: 'PUBLISHED' }]) {
      const response = await admin.inject('PUT', `/blogs/${unknown}`, body)
      assertMessage(t, response, 500, 'Failed to update blog', unknown.slice(0, 50))
    }
    assertInvalid(t, await admin.inject('PUT', `/blogs/${unknown}`, { title: '' }), ['title'])
  }
  t.strictSame(await stored(id), before)
})

t.test('DELETE /blogs/:id deletes a blog of any status', async t => {
  const author = await person(app)
  const kept = await store(author)
  for (const status of STATUSES) {
    const { id } = await store(author, { status })
    assertMessage(t, await admin.inject('DELETE', `/blogs/${id}`), 200, 'Blog deleted successfully')
    t.equal(await stored(id), undefined)
    assertMessage(t, await admin.inject('GET', `/blogs/${id}`), 404, 'Blog not found')
    assertMessage(t, await admin.inject('DELETE', `/blogs/${id}`), 500, 'Failed to delete blog')
  }
  t.strictSame((await author.inject('GET', '/blogs/me')).json(), { blogs: [kept] })
})

t.test('DELETE /blogs/:id accepts an empty JSON body', async t => {
  const { id } = await store(admin)
  const headers = bearerOfJson(admin.token)
  const response = await inject(app, 'DELETE', `/blogs/${id}`, undefined, headers)
  assertMessage(t, response, 200, 'Blog deleted successfully')
})

t.test('DELETE /blogs/:id returns 500 for an unknown id', async t => {
  const { id } = await store(admin)
  for (const unknown of unknownPaths(id)) {
    assertMessage(t, await admin.inject('DELETE', `/blogs/${unknown}`), 500, 'Failed to delete blog',
      unknown.slice(0, 50))
  }
  assertInvalid(t, await admin.inject('DELETE', '/blogs//'), ['id'])
  t.ok(await stored(id))
})

t.test('Authors may neither update nor delete their blogs', async t => {
  for (const role of ['STUDENT', 'CLUB_HEAD'] as const) {
    const author = await person(app, role)
    const blog = await store(author)
    assertMessage(t, await author.inject('PUT', `/blogs/${blog.id}`, { title: 'Mine' }), 403, 'Forbidden')
    assertMessage(t, await author.inject('DELETE', `/blogs/${blog.id}`), 403, 'Forbidden')
    assertMessage(t, await author.inject('PATCH', `/blogs/${blog.id}`, { title: 'Mine' }), 404, 'Not found')
    t.strictSame((await author.inject('GET', '/blogs/me')).json(), { blogs: [blog] })
  }
})
