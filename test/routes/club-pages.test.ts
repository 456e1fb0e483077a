import { assertMessage, assertResponse } from '../assertions.ts'
import { build, inject, insert, type Person, person, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const { sql } = app

/** A club without details. */
const asks = { joining: 'request' }

t.test('GET /club-pages lists clubs by name with the number of members, and no people', async t => {
  await sql`TRUNCATE clubs CASCADE`
  const go = await insert(app, 'clubs', { name: 'Go', description: 'Stones' })
  const chess = await insert(app, 'clubs', { name: 'Chess', image_url: 'https://example.org/c.png' })
  const [ada, bob] = [await person(app, 'STUDENT', { club_id: chess }), await person(app, 'ADMIN', { club_id: chess })]
  assertResponse(t, await inject(app, 'GET', '/club-pages'), 200, {
    clubs: [
      { id: chess, name: 'Chess', description: 'A club', imageUrl: 'https://example.org/c.png', ...asks, memberCount: 2 },
      { id: go, name: 'Go', description: 'Stones', imageUrl: null, ...asks, memberCount: 0 },
    ],
  })
  for (const { id } of [ada, bob]) await sql`UPDATE users SET club_id = ${go} WHERE id = ${id}`
  const { clubs } = (await inject(app, 'GET', '/club-pages')).json()
  t.strictSame(clubs.map(({ memberCount }: { memberCount: number }) => memberCount), [0, 2])
})

t.test('GET /club-pages/:id shows organizers without ids and email addresses, the head first', async t => {
  const id = await insert(app, 'clubs', { name: 'Bridge' })
  const named = (role: 'STUDENT' | 'CLUB_HEAD' | 'ADMIN', name: string, fields: object = {}) =>
    person(app, role, { club_id: id, first_name: name, last_name: 'X', ...fields })
  await named('STUDENT', 'Stu')
  await named('ADMIN', 'Ann', { avatar: 'https://example.org/ann.png' })
  await named('CLUB_HEAD', 'Elsewhere', { club_id: await insert(app, 'clubs') })
  const { id: headId } = await named('CLUB_HEAD', 'Zoe')
  const ann = { firstName: 'Ann', lastName: 'X', avatar: 'https://example.org/ann.png', isHead: false }
  const zoe = { firstName: 'Zoe', lastName: 'X', avatar: null, isHead: false }
  const club = { id, name: 'Bridge', description: 'A club', imageUrl: null, ...asks, memberCount: 3 }
  assertResponse(t, await inject(app, 'GET', `/club-pages/${id}`), 200, { club: { ...club, organizers: [ann, zoe] } })
  await sql`UPDATE clubs SET club_head_id = ${headId} WHERE id = ${id}`
  assertResponse(t, await inject(app, 'GET', `/club-pages/${id}`), 200, {
    club: { ...club, organizers: [{ ...zoe, isHead: true }, ann] },
  })
})

/** A club with a head and a deputy. */
async function clubWithOrganizers () {
  const club = await insert(app, 'clubs')
  const [head, deputy] = [
    await person(app, 'CLUB_HEAD', { club_id: club }), await person(app, 'CLUB_HEAD', { club_id: club }),
  ]
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${club}`
  return { club, head, deputy, url: `/club-pages/${club}` }
}

t.test('PUT /club-pages/:id changes only the given fields, for organizers and admins', async t => {
  const { club, head, deputy, url } = await clubWithOrganizers()
  const admin = await person(app, 'ADMIN')
  const [{ name }] = await sql<[{ name: string }]>`SELECT name FROM clubs WHERE id = ${club}`
  const before = (await inject(app, 'GET', url)).json().club
  t.strictSame(before.name, name)
  const expect = async (sender: Person, changes: object, after: object) => {
    assertResponse(t, await sender.inject('PUT', url, changes), 200, { club: { ...before, ...after } })
    assertResponse(t, await inject(app, 'GET', url), 200, { club: { ...before, ...after } })
  }
  await expect(head, {}, {})
  await expect(deputy, { name, description: 'New' }, { description: 'New' })
  await expect(head, { joining: 'open' }, { description: 'New', joining: 'open' })
  await expect(deputy, { joining: 'closed', imageUrl: 'https://example.org/a.png' },
    { description: 'New', joining: 'closed', imageUrl: 'https://example.org/a.png' })
  await expect(admin, { name: 'Rowing', imageUrl: null }, { description: 'New', joining: 'closed', name: 'Rowing' })
})

t.test('PUT /club-pages/:id accepts a long description in any script', async t => {
  const { head, url } = await clubWithOrganizers()
  const description = '棋'.repeat(10_000)
  const response = await head.inject('PUT', url, { description })
  t.equal(response.statusCode, 200)
  t.equal(response.json().club.description, description)
})

t.test('PUT /club-pages/:id is for those who organize the club in the database', async t => {
  const { club, head, deputy, url } = await clubWithOrganizers()
  const elsewhere = { club_id: await insert(app, 'clubs') }
  const refused = [
    await person(app), await person(app, 'STUDENT', { club_id: club }), await person(app, 'CLUB_HEAD'),
    await person(app, 'CLUB_HEAD', elsewhere),
  ]
  const demoted = [await person(app, 'ADMIN'), await person(app, 'CLUB_HEAD', { club_id: club })]
  for (const { id } of demoted) await sql`UPDATE users SET role = 'STUDENT' WHERE id = ${id}`
  await sql`UPDATE users SET club_id = NULL WHERE id = ${deputy.id}`
  for (const sender of [...refused, ...demoted, deputy]) {
    assertMessage(t, await sender.inject('PUT', url, { description: 'x' }), 403, 'Not allowed to manage this club')
  }
  assertMessage(t, await head.inject('PUT', url, { name: 'Mine' }), 403, 'Only admins may rename a club')
  assertMessage(t, await head.inject('PUT', url, { name: 'Mine', joining: 'open' }), 403,
    'Only admins may rename a club')
  t.equal((await inject(app, 'GET', url)).json().club.joining, 'request')
})

t.test('An office that ends during PUT /club-pages/:id ends after it, not before its commit', async t => {
  const { club, deputy, url } = await clubWithOrganizers()
  const admin = await person(app, 'ADMIN')
  let responses: Promise<{ statusCode: number }[]>
  await sql.begin(async sql => {
    await sql`SELECT FROM clubs WHERE id = ${club} FOR UPDATE`
    const changed = deputy.inject('PUT', url, { description: 'By the deputy' })
    await untilBlocked(app.database.shortSql)
    const demoted = admin.inject('PUT', `/users/${deputy.id}/role`, { newRole: 'STUDENT' })
    responses = Promise.all([changed, demoted])
    await untilBlocked(app.database.shortSql, 2)
  })
  t.strictSame((await responses!).map(({ statusCode }) => statusCode), [200, 200])
})

t.test('PUT /club-pages/:id gives no club the name of a different club', async t => {
  const { url } = await clubWithOrganizers()
  const { url: other } = await clubWithOrganizers()
  const admin = await person(app, 'ADMIN')
  t.equal((await admin.inject('PUT', url, { name: 'Fencing' })).statusCode, 200)
  assertMessage(t, await admin.inject('PUT', other, { name: 'Fencing', description: 'x' }), 409,
    'A club has this name already')
  t.equal((await inject(app, 'GET', other)).json().club.description, 'A club', 'nothing changes')
  const urls = await Promise.all(Array.from({ length: 4 }, async () => (await clubWithOrganizers()).url))
  const statuses = await Promise.all(urls.map(async url =>
    (await admin.inject('PUT', url, { name: 'Archery' })).statusCode))
  t.strictSame(statuses.sort(), [200, 409, 409, 409], 'at the same time')
})

t.test('A person is a member of the club on the card, whoever writes it', async t => {
  const [one, other] = [await insert(app, 'clubs'), await insert(app, 'clubs')]
  const { id } = await person(app, 'STUDENT', { club_id: one })
  const rows = () => sql`
    SELECT club_id AS club, state, message, reason, refused_at FROM club_members WHERE user_id = ${id} ORDER BY club_id
  `
  const member = { state: 'member', message: null, reason: null, refused_at: null }
  t.strictSame([...await rows()], [{ club: one, ...member }])
  const [{ changed }] = await sql<[{ changed: string }]>`
    SELECT changed_at::text AS changed FROM club_members WHERE user_id = ${id}
  `
  await sql`UPDATE users SET club_id = club_id, first_name = 'Bea' WHERE id = ${id}`
  const { count } = await sql`
    SELECT FROM club_members WHERE user_id = ${id} AND changed_at = ${changed}::text::timestamptz
  `
  t.equal(count, 1, 'the same club changes nothing')
  await sql`
    INSERT INTO club_members (user_id, club_id, state, reason, refused_at)
    VALUES (${id}, ${other}, 'refused', 'No', now())
  `
  await sql`UPDATE users SET club_id = ${other} WHERE id = ${id}`
  t.strictSame([...await rows()], [{ club: other, ...member }])
  await sql`UPDATE users SET club_id = NULL WHERE id = ${id}`
  t.strictSame([...await rows()], [])
})
