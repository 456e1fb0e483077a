import { randomUUID } from 'node:crypto'

import { assertInvalid, assertResponse, shown, unknownIds } from '../assertions.ts'
import { build, inject, insert, person, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const admin = await person(app, 'ADMIN')

async function addClub (fields: Record<string, unknown> = {}) {
  const name = randomUUID()
  return { name, id: await insert(app, 'clubs', { name, ...fields }) }
}

const addMentor = async (fields: Record<string, unknown> = {}) =>
  insert(app, 'mentors', { club_id: (await addClub()).id, ...fields })

async function like (mentorId: string, ...people: { id: string }[]) {
  for (const { id } of people) {
    await app.sql`INSERT INTO mentor_likes (user_id, mentor_id) VALUES (${id}, ${mentorId})`
  }
}

async function likesOf (mentorId: string) {
  const likes = await app.sql<{ userId: string }[]>`
    SELECT user_id AS "userId" FROM mentor_likes WHERE mentor_id = ${mentorId}
  `
  return likes.map(({ userId }) => userId).sort()
}

async function stored (id: string) {
  const [mentor] = await app.sql`SELECT * FROM mentors WHERE id = ${id}`
  return mentor
}

t.test('POST /mentors creates a mentor', async t => {
  const club = await addClub({ image_url: 'https://example.org/club.png' })
  const body = {
    name: 'Ada',
    expertise: 'Mathematics',
    imageUrl: 'https://example.org/ada.png',
    networkUrl: 'https://network.example/ada',
    clubId: club.id,
  }
  const response = await admin.inject('POST', '/mentors', { ...body, id: 'mine', likeCount: 7, club: { name: 'x' } })
  const { id } = response.json().mentor
  t.type(id, 'string')
  assertResponse(t, response, 201, { mentor: { id, ...body, club: { name: club.name } } })
  const again = await admin.inject('POST', '/mentors/', body)
  t.equal(again.statusCode, 201, 'a duplicate, with a trailing slash')
  t.not(again.json().mentor.id, id)
})

t.test('POST /mentors stores a missing or null networkUrl as an empty string', async t => {
  const { id: clubId } = await addClub()
  for (const networkUrl of [undefined, null]) {
    const response = await admin.inject('POST', '/mentors', {
      name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId, networkUrl,
    })
    const { mentor } = response.json()
    t.strictSame([response.statusCode, mentor.networkUrl], [201, ''])
    t.equal((await stored(mentor.id))?.network_url, '')
  }
})

t.test('POST /mentors requires an imageUrl', async t => {
  const { id: clubId } = await addClub()
  const message = 'All fields are required'
  const body = { name: 'Ada', expertise: 'Mathematics', clubId }
  assertResponse(t, await admin.inject('POST', '/mentors', body), 400, { message })
  assertResponse(t, await admin.inject('POST', '/mentors', { ...body, clubId: 'unknown' }), 400, { message },
    'before the club is looked for')
  assertInvalid(t, await admin.inject('POST', '/mentors', { ...body, name: '' }), ['name'], 'after validation')
})

t.test('POST /mentors and PUT /mentors/:id return 500 for an unknown club', async t => {
  const id = await addMentor()
  const body = { name: 'Bob', expertise: 'Mathematics', imageUrl: 'https://example.org' }
  for (const clubId of unknownIds((await addClub()).id)) {
    const created = await admin.inject('POST', '/mentors', { ...body, clubId })
    assertResponse(t, created, 500, { message: 'Error creating mentor' }, shown(clubId))
    const updated = await admin.inject('PUT', `/mentors/${id}`, { ...body, clubId })
    assertResponse(t, updated, 500, { message: 'Error updating mentor' }, shown(clubId))
  }
  t.equal((await stored(id))?.name, 'Ada', 'unchanged')
})

const people = (count: number) => Promise.all(Array.from({ length: count }, () => person(app)))

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

t.test('POST /mentors/:mentorId/like likes, unlikes, and likes again', async t => {
  const id = await addMentor()
  const liked = (likeCount: number) => ({ message: 'Mentor liked successfully', liked: true, likeCount })
  const unliked = (likeCount: number) => ({ message: 'Mentor unliked successfully', liked: false, likeCount })
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, other] = [await person(app, role), await person(app)]
    const toggle = () => someone.inject('POST', `/mentors/${id}/like`)
    assertResponse(t, await toggle(), 200, liked(1), role)
    t.strictSame(await likesOf(id), [someone.id])
    assertResponse(t, await toggle(), 200, unliked(0), role)
    t.strictSame(await likesOf(id), [])
    assertResponse(t, await toggle(), 200, liked(1), role)
    assertResponse(t, await other.inject('POST', `/mentors/${id}/like`), 200, liked(2), role)
    assertResponse(t, await toggle(), 200, unliked(1), role)
    t.strictSame(await likesOf(id), [other.id], 'only one\'s own like is taken back')
    assertResponse(t, await other.inject('POST', `/mentors/${id}/like/`), 200, unliked(0), 'with a trailing slash')
  }
})

t.test('50 concurrent toggles of one user are all counted', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const responses = await Promise.all(numbers(1, 50).map(() => someone.inject('POST', `/mentors/${id}/like`)))
  t.strictSame(responses.map(({ statusCode }) => statusCode), Array(50).fill(200))
  const outcomes = responses.map(response => response.json())
  t.equal(outcomes.filter(({ liked }) => liked).length, 25, 'likes and unlikes alternate')
  // A parallel toggle may be committed before the count.
  t.ok(outcomes.every(({ likeCount }) => likeCount === 0 || likeCount === 1), 'only this user is counted')
  t.strictSame(await likesOf(id), [])
})

t.test('A toggle that waits for a like of the same user takes it back', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  let toggling!: ReturnType<typeof someone.inject>
  await app.sql.begin(async sql => {
    await sql`INSERT INTO mentor_likes (user_id, mentor_id) VALUES (${someone.id}, ${id})`
    toggling = someone.inject('POST', `/mentors/${id}/like`)
    await untilBlocked(app.sql)
  })
  t.match((await toggling).json(), { liked: false, likeCount: 0 })
})

t.test('50 concurrent likes of different users are all counted', async t => {
  const [id, fans] = [await addMentor(), await people(50)]
  const toggle = async (liked: boolean) => {
    const responses = await Promise.all(fans.map(fan => fan.inject('POST', `/mentors/${id}/like`)))
    t.ok(responses.every(response => response.statusCode === 200 && response.json().liked === liked))
    return responses.map(response => response.json().likeCount as number).sort((a, b) => a - b)
  }
  // Each count is read after its own write, so the nth like counts at least n.
  t.ok((await toggle(true)).every((count, i) => count > i && count <= 50))
  t.strictSame(await likesOf(id), fans.map(fan => fan.id).sort())
  t.ok((await toggle(false)).every((count, i) => count >= 0 && count <= i))
  t.strictSame(await likesOf(id), [])
})

t.test('A like during the deletion of the mentor is a 404', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const { like } = await app.sql.begin(async sql => {
    await sql`DELETE FROM mentors WHERE id = ${id}`
    const like = someone.inject('POST', `/mentors/${id}/like`)
    await untilBlocked(app.sql)
    return { like }
  })
  assertResponse(t, await like, 404, { message: 'Mentor not found' })
})

t.test('GET /mentors returns the profile of every mentor to anyone', async t => {
  await app.sql`TRUNCATE mentors CASCADE`
  assertResponse(t, await inject(app, 'GET', '/mentors'), 200, { mentors: [] })
  const club = await addClub({ name: 'Chess', image_url: 'https://example.org/chess.png' })
  const plain = await addClub({ name: 'Go' })
  const ada = await addMentor({ club_id: club.id, network_url: 'https://network.example/ada' })
  const bob = await addMentor({ club_id: plain.id, name: 'Bob', expertise: 'Go', image_url: 'data:,bob' })
  await like(ada, await person(app), await person(app))
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
  for (const url of ['/mentors', '/mentors/?name=Bob&page=2']) {
    assertResponse(t, await inject(app, 'GET', url), 200, { mentors }, url)
  }
})

t.test('GET /mentors is sorted by name, then by id', async t => {
  await app.sql`TRUNCATE mentors CASCADE`
  const id = (n: number) => `00000000-0000-7000-8000-00000000000${n}`
  for (const [n, name] of [[5, 'Ada'], [1, 'Grace'], [4, 'Bob'], [3, 'Ada'], [6, 'Bobby'], [2, 'Ada']] as const) {
    await addMentor({ id: id(n), name })
  }
  const { mentors } = (await inject(app, 'GET', '/mentors')).json()
  t.strictSame(mentors.map((mentor: { id: string }) => mentor.id), [2, 3, 5, 4, 6, 1].map(id))
})

t.test('GET /mentors/liked returns the mentors that the user likes', async t => {
  const [ada, bob, other] = [await addMentor(), await addMentor({ name: 'Bob', network_url: 'bob' }), await addMentor()]
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, another] = [await person(app, role), await person(app)]
    assertResponse(t, await someone.inject('GET', '/mentors/liked'), 200, { likedMentors: [] }, role)
    await like(ada, someone, another)
    await like(bob, someone)
    await like(other, another)
    const response = await someone.inject('GET', '/mentors/liked/')
    const { likedMentors, ...rest } = response.json()
    t.strictSame([response.statusCode, rest], [200, {}], role)
    const { mentors } = (await inject(app, 'GET', '/mentors')).json()
    const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1
    t.strictSame(likedMentors.sort(byId),
      mentors.filter(({ id }: { id: string }) => [ada, bob].includes(id)).sort(byId), 'as GET /mentors lists them')
  }
})

t.test('PUT /mentors/:id changes only the given fields', async t => {
  const [club, other] = [await addClub({ image_url: 'https://example.org/club.png' }), await addClub()]
  const id = await addMentor({ club_id: club.id, network_url: 'ada' })
  await like(id, admin)
  let mentor: Record<string, unknown> = {
    id,
    name: 'Ada',
    expertise: 'Mathematics',
    imageUrl: 'https://example.org/ada.png',
    networkUrl: 'ada',
    clubId: club.id,
    club: { name: club.name },
  }
  assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, {}), 200, { mentor }, 'an empty object')
  for (const change of [
    { name: 'Bob' },
    { expertise: 'Go' },
    { imageUrl: 'data:,bob' },
    { networkUrl: 'bob' },
    { networkUrl: '' },
    { name: 'Eve', expertise: 'Chess', imageUrl: 'data:,eve', networkUrl: 'eve' },
  ]) {
    mentor = { ...mentor, ...change }
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, change), 200, { mentor }, shown(change))
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}/`, {}), 200, { mentor },
      'it stays, and with a trailing slash')
  }
  mentor = { ...mentor, clubId: other.id, club: { name: other.name } }
  assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, { clubId: other.id }), 200, { mentor }, 'another club')
  t.strictSame(await likesOf(id), [admin.id], 'likes are kept')
})

t.test('PUT /mentors/:id returns 500 for a null networkUrl', async t => {
  const id = await addMentor({ network_url: 'ada' })
  const response = await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob', networkUrl: null })
  assertResponse(t, response, 500, { message: 'Error updating mentor' })
  t.match(await stored(id), { name: 'Ada', network_url: 'ada' }, 'unchanged')
})

t.test('DELETE /mentors/:id deletes the mentor and its likes, and no others', async t => {
  const [ada, bob, someone] = [await addMentor(), await addMentor(), await person(app)]
  await like(ada, someone, admin)
  await like(bob, someone)
  const response = await admin.inject('DELETE', `/mentors/${ada}`)
  assertResponse(t, response, 200, { message: 'Mentor deleted successfully' })
  t.equal(await stored(ada), undefined)
  t.strictSame(await likesOf(ada), [])
  t.ok(await stored(bob))
  t.strictSame(await likesOf(bob), [someone.id])
  const { likedMentors } = (await someone.inject('GET', '/mentors/liked')).json()
  t.strictSame(likedMentors.map((mentor: { id: string }) => mentor.id), [bob])
})
