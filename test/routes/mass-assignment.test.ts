// Sends bodies with fields that a client may not set. No operation may store them.
import { toColumn } from '#lib/database/columns.js'
import { assertComplete } from '../assertions.ts'
import { allRows, buildWithRoutes, inject, insert, MAIL, nameOf, person } from '../helper.ts'
import { createWorld, OPERATIONS, pathWith, roleFor } from '../operations.ts'
import t from '../suite.ts'

const { app, routes } = await buildWithRoutes(t, MAIL)
const world = await createWorld(app)
const [stranger, strangeClub] = [await person(app), await insert(app, 'clubs')]

/** Fields that a client may not set, unless the operation accepts them. No row has these values otherwise. */
const FOREIGN: Record<string, unknown> = {
  id: '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b',
  role: 'ADMIN',
  status: 'PUBLISHED',
  password: 'a foreign password',
  idpId: 'a foreign person',
  avatar: 'https://foreign.example/avatar.png',
  authorId: stranger.id,
  userId: stranger.id,
  clubHeadId: stranger.id,
  clubId: strangeClub,
  createdAt: '1999-01-01T00:00:00.000Z',
  updatedAt: '1999-01-02T00:00:00.000Z',
  registeredAt: '1999-01-03T00:00:00.000Z',
  date: '1999-01-04T00:00:00.000Z',
  likeCount: 1_234_567,
  registrationCount: 2_345_678,
}

/** Not tested: they never succeed, read only an ID token, or take a file. */
const EXEMPT = ['DELETE /users/:userId/club', 'POST /auth/google', 'POST /me/pictures']

const writing = Object.entries(OPERATIONS).filter(([name]) => !name.startsWith('GET ') && !EXEMPT.includes(name))

t.test('All operations that write are tested here', async t => {
  const names = routes.filter(({ method }) => ![method].flat().includes('GET')).map(nameOf)
  assertComplete(t, [...writing.map(([name]) => name), ...EXEMPT], names, 'OPERATIONS in test/operations.ts')
})

for (const [name, operation] of writing) {
  const { body = {}, given, stores = [] } = operation
  const accepted = Object.keys(body).filter(field => field in FOREIGN)
  t.test(`${name} stores ${accepted.join(', ') || 'none'} of the foreign fields`, async t => {
    const [method, path] = name.split(' ') as ['POST' | 'PUT' | 'DELETE', string]
    // Other operations have revoked tokens.
    await app.sql`DELETE FROM revoked_tokens`
    const { id = '', body: more } = await given?.(world) ?? {}
    const own: Record<string, unknown> = { ...body, ...more }
    // Also as column names, and as inherited properties.
    const columns = Object.fromEntries(Object.entries(FOREIGN).map(([field, value]) => [toColumn(field), value]))
    const fields = { ...columns, ...FOREIGN, ...own, inherited: FOREIGN }
    const payload = JSON.stringify(fields).replace('"inherited"', '"__proto__"')
    const role = roleFor(operation)

    const before = await allRows(app)
    const response = await inject(app, method, pathWith(path, id), payload, {
      'content-type': 'application/json', ...role && { authorization: `Bearer ${world.people[role].token}` },
    })
    t.ok(response.statusCode < 300, `it succeeds: ${response.statusCode} ${response.body}`)
    const after = await allRows(app)
    const changed = [...after].filter(row => !before.has(row)).join('\n')
    const taken = [...Object.keys(own).filter(field => field in FOREIGN).map(field => own[field]), ...stores]
    const effective = Object.entries(FOREIGN)
      .filter(([, value]) => !taken.includes(value) && (changed + response.body).includes(String(value)))
    t.strictSame(effective, [], 'no other has an effect', { changed, response: response.body })
    // A password is stored as a hash.
    for (const value of taken.filter(value => value !== own.password)) {
      // Times are stored in a different form.
      t.ok(changed.includes(String(value).replace('.000Z', '+00:00')), `${value} is stored`)
    }
  })
}
