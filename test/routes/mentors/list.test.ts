import t from 'tap'

import { assertResponse } from '../../assertions.ts'
import { build, inject, person } from '../../helper.ts'
import { addClub, addMentor, app, like, likesOf } from './fixtures.ts'

t.test('GET /mentors without a mentor is an empty list', async t => {
  const fresh = await build(t)
  const response = await inject(fresh, 'GET', '/mentors')
  assertResponse(t, response, 200, { mentors: [] })
  t.equal(response.headers['cache-control'], 'public, s-maxage=300, stale-while-revalidate=600')
})

t.test('GET /mentors returns the profile of every mentor to anyone', async t => {
  const fresh = await build(t)
  const club = await addClub({ name: 'Chess', image_url: 'https://example.org/chess.png' }, fresh)
  const plain = await addClub({ name: 'Go' }, fresh)
  const ada = await addMentor({ club_id: club.id, network_url: 'https://network.example/ada' }, fresh)
  const bob = await addMentor({ club_id: plain.id, name: 'Bob', expertise: 'Go', image_url: 'data:,bob' }, fresh)
  const [first, second] = [await person(fresh), await person(fresh)]
  for (const { id } of [first, second]) {
    await fresh.sql`INSERT INTO mentor_likes (user_id, mentor_id) VALUES (${id}, ${ada})`
  }
  const mentors = [
    {
      id: ada,
      name: 'Ada',
      expertise: 'Mathematics',
      imageUrl: 'https://example.org/ada.png',
      networkUrl: 'https://network.example/ada',
      clubId: club.id,
      club: { name: 'Chess', imageUrl: 'https://example.org/chess.png' },
      likeCount: 2,
    },
    {
      id: bob,
      name: 'Bob',
      expertise: 'Go',
      imageUrl: 'data:,bob',
      networkUrl: '',
      clubId: plain.id,
      club: { name: 'Go', imageUrl: null },
      likeCount: 0,
    },
  ]
  const response = await inject(fresh, 'GET', '/mentors')
  assertResponse(t, response, 200, { mentors })
  t.equal(response.headers['cache-control'], 'public, s-maxage=300, stale-while-revalidate=600')
  t.match(response.headers['content-type'], /^application\/json/)
  assertResponse(t, await inject(fresh, 'GET', '/mentors/'), 200, { mentors }, 'with a trailing slash')
  assertResponse(t, await inject(fresh, 'GET', '/mentors?name=Bob&page=2'), 200, { mentors }, 'with a query')
  assertResponse(t, await inject(fresh, 'GET', '/mentors', undefined, { authorization: 'Bearer x' }), 200, { mentors },
    'a token does not matter')
})

t.test('GET /mentors is sorted by name, then by id', async t => {
  const fresh = await build(t)
  const club = await addClub({}, fresh)
  const id = (n: number) => `00000000-0000-7000-8000-00000000000${n}`
  for (const [n, name] of [[5, 'Ada'], [1, 'Grace'], [4, 'Bob'], [3, 'Ada'], [6, 'Bobby'], [2, 'Ada']] as const) {
    await addMentor({ id: id(n), name, club_id: club.id }, fresh)
  }
  const { mentors } = (await inject(fresh, 'GET', '/mentors')).json()
  t.strictSame(mentors.map((mentor: { id: string }) => mentor.id), [2, 3, 5, 4, 6, 1].map(id))
})

t.test('GET /mentors/liked returns the mentors that the user likes', async t => {
  const club = await addClub({ image_url: 'https://example.org/club.png' })
  const plain = await addClub()
  const ada = await addMentor({ club_id: club.id })
  const bob = await addMentor({ club_id: plain.id, name: 'Bob', network_url: 'bob' })
  const other = await addMentor()
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, another] = [await person(app, role), await person(app)]
    assertResponse(t, await someone.inject('GET', '/mentors/liked'), 200, { likedMentors: [] }, role)
    await like(ada, someone, another)
    await like(bob, someone)
    await like(other, another)
    const response = await someone.inject('GET', '/mentors/liked')
    const { likedMentors, ...rest } = response.json()
    t.strictSame([response.statusCode, rest], [200, {}], role)
    const expected = [
      {
        id: ada,
        name: 'Ada',
        expertise: 'Mathematics',
        imageUrl: 'https://example.org/ada.png',
        networkUrl: '',
        clubId: club.id,
        club: { name: club.name, imageUrl: 'https://example.org/club.png' },
        likeCount: (await likesOf(ada)).length,
      },
      {
        id: bob,
        name: 'Bob',
        expertise: 'Mathematics',
        imageUrl: 'https://example.org/ada.png',
        networkUrl: 'bob',
        clubId: plain.id,
        club: { name: plain.name, imageUrl: null },
        likeCount: (await likesOf(bob)).length,
      },
    ]
    const byName = (a: { name: string }, b: { name: string }) => a.name < b.name ? -1 : 1
    t.strictSame(likedMentors.sort(byName), expected, 'likeCount is everyone\'s')
    t.equal((await someone.inject('GET', '/mentors/liked/')).statusCode, 200, 'with a trailing slash')
  }
})

t.test('GET /mentors/liked follows the toggles', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const liked = async () => (await someone.inject('GET', '/mentors/liked')).json().likedMentors
    .map((mentor: { id: string, likeCount: number }) => [mentor.id, mentor.likeCount])
  await someone.inject('POST', `/mentors/${id}/like`)
  t.strictSame(await liked(), [[id, 1]])
  await someone.inject('POST', `/mentors/${id}/like`)
  t.strictSame(await liked(), [])
})
