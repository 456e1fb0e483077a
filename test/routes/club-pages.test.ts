import { assertResponse } from '../assertions.ts'
import { build, inject, insert, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const { sql } = app

t.test('GET /club-pages lists clubs by name with the number of members, and no people', async t => {
  await sql`TRUNCATE clubs CASCADE`
  const go = await insert(app, 'clubs', { name: 'Go', description: 'Stones' })
  const chess = await insert(app, 'clubs', { name: 'Chess', image_url: 'https://example.org/c.png' })
  const [ada, bob] = [await person(app, 'STUDENT', { club_id: chess }), await person(app, 'ADMIN', { club_id: chess })]
  assertResponse(t, await inject(app, 'GET', '/club-pages'), 200, {
    clubs: [
      { id: chess, name: 'Chess', description: 'A club', imageUrl: 'https://example.org/c.png', memberCount: 2 },
      { id: go, name: 'Go', description: 'Stones', imageUrl: null, memberCount: 0 },
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
  const club = { id, name: 'Bridge', description: 'A club', imageUrl: null, memberCount: 3 }
  assertResponse(t, await inject(app, 'GET', `/club-pages/${id}`), 200, { club: { ...club, organizers: [ann, zoe] } })
  await sql`UPDATE clubs SET club_head_id = ${headId} WHERE id = ${id}`
  assertResponse(t, await inject(app, 'GET', `/club-pages/${id}`), 200, {
    club: { ...club, organizers: [{ ...zoe, isHead: true }, ann] },
  })
})
