import { randomUUID } from 'node:crypto'

import t from 'tap'

import { assertMessage, unknownPaths } from '../../assertions.ts'
import { bearer, inject, person } from '../../helper.ts'
import { admin, app, BODY, type Fields, forge, sign, STATUSES, store } from './fixtures.ts'

for (const status of STATUSES) {
  t.test(`GET /blogs/:id: who may read a ${status} blog`, async t => {
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
      ['a third segment', `Bearer ${author.token} extra`, true],
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
        assertMessage(t, response, 403, 'You are not allowed to view this blog', who)
      }
    }
  })
}

t.test('The role in the token counts', async t => {
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

t.test('GET /blogs/:id returns 404 for an unknown id, with and without a token', async t => {
  const { id } = await store(admin, { status: 'PUBLISHED' })
  t.equal((await inject(app, 'GET', `/blogs/${id}`)).statusCode, 200)
  for (const unknown of unknownPaths(id)) {
    const about = unknown.slice(0, 50)
    assertMessage(t, await inject(app, 'GET', `/blogs/${unknown}`), 404, 'Blog not found', about)
    assertMessage(t, await inject(app, 'GET', `/blogs/${unknown}`, undefined, bearer('garbage')), 404, 'Blog not found',
      about)
    assertMessage(t, await admin.inject('GET', `/blogs/${unknown}`), 404, 'Blog not found', about)
  }
})

t.test('GET /blogs/:id returns the author with the avatar', async t => {
  const author = await person(app, 'STUDENT', { avatar: 'https://example.org/ada.png' })
  const { id } = await store(author, { status: 'PUBLISHED' })
  const { blog } = (await inject(app, 'GET', `/blogs/${id}`)).json()
  t.strictSame(blog.author, { firstName: 'Ada', lastName: 'Lovelace', avatar: 'https://example.org/ada.png' })
})

t.test('Who may read a blog from submission to deletion', async t => {
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
