import { randomUUID } from 'node:crypto'

import t from 'tap'

import type { Sql } from '#lib/database.js'
import { answers, invalid, shown } from '../assertions.ts'
import { build, inject, person } from '../helper.ts'

const app = await build(t)
const admin = await person(app, 'ADMIN')

const UNKNOWN_IDS = [
  randomUUID(), '00000000-0000-0000-0000-000000000000', 'not-a-uuid', 'x'.repeat(10_240),
  '%00', '%20', '%2F', '%F0%9F%98%80', '__proto__',
]
const JSON_BODY = { 'content-type': 'application/json' }

async function addClub (fields: Record<string, unknown> = {}, { sql }: { sql: Sql } = app) {
  const club = { name: randomUUID(), description: 'A club', ...fields }
  const [row] = await sql<{ id: string, name: string }[]>`INSERT INTO clubs ${sql(club)} RETURNING id, name`
  return row!
}

async function addMentor (fields: Record<string, unknown> = {}, { sql }: { sql: Sql } = app) {
  const mentor = {
    name: 'Ada',
    expertise: 'Mathematics',
    image_url: 'https://example.org/ada.png',
    club_id: (await addClub({}, { sql })).id,
    ...fields,
  }
  const [row] = await sql<{ id: string }[]>`INSERT INTO mentors ${sql(mentor)} RETURNING id`
  return row!.id
}

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

const people = (count: number) => Promise.all(Array.from({ length: count }, () => person(app)))

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

t.test('GET /mentors without a mentor is an empty list', async t => {
  const fresh = await build(t)
  const response = await inject(fresh, 'GET', '/mentors')
  answers(t, response, 200, { mentors: [] })
  t.equal(response.headers['cache-control'], 'public, s-maxage=300, stale-while-revalidate=600')
})

t.test('GET /mentors shows the profile of every mentor to anyone', async t => {
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
  answers(t, response, 200, { mentors })
  t.equal(response.headers['cache-control'], 'public, s-maxage=300, stale-while-revalidate=600')
  t.match(response.headers['content-type'], /^application\/json/)
  answers(t, await inject(fresh, 'GET', '/mentors/'), 200, { mentors }, 'with a trailing slash')
  answers(t, await inject(fresh, 'GET', '/mentors?name=Bob&page=2'), 200, { mentors }, 'there is no query')
  answers(t, await inject(fresh, 'GET', '/mentors', undefined, { authorization: 'Bearer x' }), 200, { mentors },
    'a token does not matter')
})

t.test('GET /mentors orders by name, then id', async t => {
  const fresh = await build(t)
  const club = await addClub({}, fresh)
  const id = (n: number) => `00000000-0000-7000-8000-00000000000${n}`
  for (const [n, name] of [[5, 'Ada'], [1, 'Grace'], [4, 'Bob'], [3, 'Ada'], [6, 'Bobby'], [2, 'Ada']] as const) {
    await addMentor({ id: id(n), name, club_id: club.id }, fresh)
  }
  const { mentors } = (await inject(fresh, 'GET', '/mentors')).json()
  t.strictSame(mentors.map((mentor: { id: string }) => mentor.id), [2, 3, 5, 4, 6, 1].map(id))
})

t.test('GET /mentors is an empty list when it fails', async t => {
  const broken = await build(t)
  await addMentor({}, broken)
  await broken.sql`ALTER TABLE mentors RENAME TO gone`
  answers(t, await inject(broken, 'GET', '/mentors'), 200, { mentors: [] })
})

t.test('failures have the message of their operation', async t => {
  const broken = await build(t)
  const root = await person(broken, 'ADMIN')
  const { id: clubId } = await addClub({}, broken)
  const mentor = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId }
  const id = await addMentor({}, broken)
  await broken.sql`ALTER TABLE mentors RENAME TO gone`
  for (const [method, url, body, message] of [
    ['POST', `/mentors/${id}/like`, undefined, 'Error toggling mentor like'],
    ['GET', '/mentors/liked', undefined, 'Error fetching liked mentors'],
    ['POST', '/mentors', mentor, 'Error creating mentor'],
    ['PUT', `/mentors/${id}`, { name: 'Bob' }, 'Error updating mentor'],
    ['DELETE', `/mentors/${id}`, undefined, 'Error deleting mentor'],
  ] as const) {
    answers(t, await root.inject(method, url, body), 500, { message }, `${method} ${url}`)
  }
})

t.test('every operation but the list wants a valid token, before anything else', async t => {
  const id = await addMentor()
  for (const [method, url, body] of [
    ['POST', `/mentors/${id}/like`],
    ['POST', '/mentors/unknown/like'],
    ['GET', '/mentors/liked'],
    ['POST', '/mentors', { name: 5 }],
    ['PUT', `/mentors/${id}`, { name: 5 }],
    ['PUT', '/mentors//', {}],
    ['DELETE', `/mentors/${id}`],
    ['DELETE', '/mentors//'],
  ] as const) {
    const send = (headers?: Record<string, string>) => inject(app, method, url, body, headers)
    answers(t, await send(), 401, { message: 'Access token required' }, `${method} ${url}`)
    answers(t, await send({ authorization: 'Bearer' }), 401, { message: 'Access token required' }, `${method} ${url}`)
    answers(t, await send({ authorization: 'Bearer x.y.z' }), 401, { message: 'Invalid or expired token' },
      `${method} ${url}`)
  }
  t.strictSame(await likesOf(id), [])
  t.ok(await stored(id))
})

t.test('mutations are for the role ADMIN, before validation', async t => {
  const id = await addMentor()
  for (const role of ['STUDENT', 'CLUB_HEAD'] as const) {
    const someone = await person(app, role)
    for (const [method, url, body] of [
      ['POST', '/mentors', { name: 5 }],
      ['PUT', `/mentors/${id}`, { name: 'Bob' }],
      ['PUT', `/mentors/${id}`, { name: 5 }],
      ['PUT', '/mentors//', {}],
      ['DELETE', `/mentors/${id}`],
      ['DELETE', '/mentors//'],
    ] as const) {
      answers(t, await someone.inject(method, url, body), 403, { message: 'Forbidden' }, `${role} ${method} ${url}`)
    }
  }
  t.equal((await stored(id))?.name, 'Ada')
})

t.test('the role is the one that the token claims', async t => {
  const [student, former] = [await person(app, 'STUDENT'), await person(app, 'ADMIN')]
  await app.sql`UPDATE users SET role = 'ADMIN' WHERE id = ${student.id}`
  await app.sql`UPDATE users SET role = 'STUDENT' WHERE id = ${former.id}`
  const id = await addMentor()
  answers(t, await student.inject('DELETE', `/mentors/${id}`), 403, { message: 'Forbidden' })
  answers(t, await former.inject('DELETE', `/mentors/${id}`), 200, { message: 'Mentor deleted successfully' })
})

t.test('POST /mentors/:mentorId/like likes, unlikes, and likes again', async t => {
  const id = await addMentor()
  const liked = (likeCount: number) => ({ message: 'Mentor liked successfully', liked: true, likeCount })
  const unliked = (likeCount: number) => ({ message: 'Mentor unliked successfully', liked: false, likeCount })
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, other] = [await person(app, role), await person(app)]
    const toggle = () => someone.inject('POST', `/mentors/${id}/like`)
    answers(t, await toggle(), 200, liked(1), role)
    t.strictSame(await likesOf(id), [someone.id])
    answers(t, await toggle(), 200, unliked(0), role)
    t.strictSame(await likesOf(id), [])
    answers(t, await toggle(), 200, liked(1), role)
    answers(t, await other.inject('POST', `/mentors/${id}/like`), 200, liked(2), role)
    answers(t, await toggle(), 200, unliked(1), role)
    t.strictSame(await likesOf(id), [other.id], 'only one\'s own like is taken back')
    answers(t, await other.inject('POST', `/mentors/${id}/like/`), 200, unliked(0), 'with a trailing slash')
  }
})

t.test('POST /mentors/:mentorId/like counts the likes of this mentor only', async t => {
  const [ada, bob, someone] = [await addMentor(), await addMentor(), await person(app)]
  await like(bob, someone, ...await people(3))
  t.equal((await someone.inject('POST', `/mentors/${ada}/like`)).json().likeCount, 1)
  t.equal((await likesOf(bob)).length, 4)
})

t.test('POST /mentors/:mentorId/like takes an empty JSON body for none', async t => {
  const [id, { token }] = [await addMentor(), await person(app)]
  const headers = { authorization: `Bearer ${token}`, ...JSON_BODY }
  t.equal((await inject(app, 'POST', `/mentors/${id}/like`, undefined, headers)).json().liked, true)
})

t.test('POST /mentors/:mentorId/like does not find an unknown mentor', async t => {
  const someone = await person(app)
  for (const id of [...UNKNOWN_IDS, '', (await addMentor()).toUpperCase()]) {
    const response = await someone.inject('POST', `/mentors/${id}/like`)
    answers(t, response, 404, { message: 'Mentor not found' }, shown(id))
  }
})

t.test('POST /mentors/:mentorId/like fails for a user who is gone', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  await app.sql`DELETE FROM users WHERE id = ${someone.id}`
  const response = await someone.inject('POST', `/mentors/${id}/like`)
  answers(t, response, 500, { message: 'Error toggling mentor like' })
  t.strictSame(await likesOf(id), [])
})

t.test('a token without a user id is not enough to like', async t => {
  const headers = { authorization: `Bearer ${app.jwt.sign({ role: 'STUDENT' } as never)}` }
  for (const [method, url] of [
    ['POST', `/mentors/${await addMentor()}/like`],
    ['POST', '/mentors/unknown/like'],
    ['GET', '/mentors/liked'],
  ] as const) {
    const response = await inject(app, method, url, undefined, headers)
    answers(t, response, 401, { message: 'Authentication required' }, url)
  }
})

t.test('50 parallel toggles of one user neither fail nor miscount', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const responses = await Promise.all(numbers(1, 50).map(() => someone.inject('POST', `/mentors/${id}/like`)))
  t.strictSame(responses.map(({ statusCode }) => statusCode), Array(50).fill(200))
  const outcomes = responses.map(response => response.json())
  t.equal(outcomes.filter(({ liked }) => liked).length, 25, 'every like is followed by an unlike')
  t.ok(outcomes.every(({ likeCount }) => likeCount === 0 || likeCount === 1), 'and nobody else is counted')
  t.strictSame(await likesOf(id), [])
})

t.test('50 parallel likes of different users neither fail nor miscount', async t => {
  const [id, fans] = [await addMentor(), await people(50)]
  const toggle = async (liked: boolean) => {
    const responses = await Promise.all(fans.map(fan => fan.inject('POST', `/mentors/${id}/like`)))
    t.ok(responses.every(response => response.statusCode === 200 && response.json().liked === liked))
    return responses.map(response => response.json().likeCount as number).sort((a, b) => a - b)
  }
  // Counted after the write, and so at the earliest when it is one of as many.
  t.ok((await toggle(true)).every((count, i) => count > i && count <= 50))
  t.strictSame(await likesOf(id), fans.map(fan => fan.id).sort())
  t.ok((await toggle(false)).every((count, i) => count >= 0 && count <= i))
  t.strictSame(await likesOf(id), [])
})

t.test('toggles in parallel with the deletion of the mentor come before it, or find no mentor', async t => {
  const allowed = ['200 Mentor liked successfully', '200 Mentor unliked successfully', '404 Mentor not found']
  for (let round = 0; round < 5; round++) {
    const [id, fans] = [await addMentor(), await people(20)]
    await like(id, ...fans.slice(5, 15))
    const toggle = (fan: typeof admin) => fan.inject('POST', `/mentors/${id}/like`)
    const [before, deletion, after] = await Promise.all([
      Promise.all(fans.slice(0, 10).map(toggle)),
      admin.inject('DELETE', `/mentors/${id}`),
      Promise.all(fans.slice(10).map(toggle)),
    ])
    answers(t, deletion, 200, { message: 'Mentor deleted successfully' })
    const texts = [...before, ...after].map(response => `${response.statusCode} ${response.json().message}`)
    t.strictSame(texts.filter(text => !allowed.includes(text)), [])
    t.strictSame(await likesOf(id), [])
  }
})

t.test('a like that comes while the mentor is being deleted finds no mentor', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const { like } = await app.sql.begin(async sql => {
    await sql`DELETE FROM mentors WHERE id = ${id}`
    const like = someone.inject('POST', `/mentors/${id}/like`)
    const waiting = () => app.sql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `
    for (let tries = 0; tries < 1000 && (await waiting()).length === 0; tries++);
    return { like }
  })
  answers(t, await like, 404, { message: 'Mentor not found' })
})

t.test('GET /mentors/liked shows the profiles of the mentors that one likes', async t => {
  const club = await addClub({ image_url: 'https://example.org/club.png' })
  const plain = await addClub()
  const ada = await addMentor({ club_id: club.id })
  const bob = await addMentor({ club_id: plain.id, name: 'Bob', network_url: 'bob' })
  const other = await addMentor()
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, another] = [await person(app, role), await person(app)]
    answers(t, await someone.inject('GET', '/mentors/liked'), 200, { likedMentors: [] }, role)
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
  answers(t, response, 201, { mentor: { id, ...body, club: { name: club.name } } })
  t.strictSame({ ...await stored(id) }, {
    id,
    name: 'Ada',
    expertise: 'Mathematics',
    image_url: 'https://example.org/ada.png',
    network_url: 'https://network.example/ada',
    club_id: club.id,
  })
  const again = await admin.inject('POST', '/mentors/', body)
  t.equal(again.statusCode, 201, 'a second one just alike, and with a trailing slash')
  t.not(again.json().mentor.id, id)
})

const NUL = '\0'
const LONG = 'x'.repeat(10_240)

/** Values that a field takes, and values that it refuses, on create and on update. */
const FIELDS: Record<string, { takes: unknown[], refuses: unknown[] }> = {
  name: {
    takes: ['A', ' ', LONG, 'Zoë 😀', '\'"; --', '\ufeff'],
    refuses: ['', 5, true, null, ['Ada'], {}, NUL, `Ada${NUL}`],
  },
  expertise: {
    takes: ['xx', '  ', '😀', LONG],
    refuses: ['', 'x', 'é', 12, null, ['xx'], {}, `xx${NUL}`],
  },
  imageUrl: {
    takes: ['https://example.org', 'HTTPS://Example.ORG/a b', 'data:,x', 'mailto:ada@example.org', `data:,${LONG}`],
    refuses: ['', 'nope', '/ada.png', '//example.org/x', 'https://', 5, true, null, ['https://example.org'], {},
      `https://example.org/${NUL}`],
  },
  networkUrl: {
    takes: ['', 'not a URL', 'https://network.example/ada', LONG],
    refuses: [5, true, [], {}, `a${NUL}`],
  },
}

const NO_CLUB_ID = { refuses: ['', 5, true, null, [], {}, NUL] }

t.test('POST /mentors takes what its rules allow, as it is given', async t => {
  const { id: clubId } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId }
  for (const [field, { takes }] of Object.entries(FIELDS)) {
    for (const value of takes) {
      const response = await admin.inject('POST', '/mentors', { ...body, [field]: value })
      t.equal(response.statusCode, 201, `${field} ${shown(value)}`)
      t.equal(response.json().mentor[field], value)
    }
  }
})

t.test('POST /mentors stores a networkUrl that is absent or null as an empty string', async t => {
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

t.test('POST /mentors refuses what its rules do not allow', async t => {
  const { id: clubId } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId }
  for (const [field, { refuses }] of Object.entries({ ...FIELDS, clubId: NO_CLUB_ID })) {
    for (const value of refuses) {
      const response = await admin.inject('POST', '/mentors', { ...body, [field]: value })
      invalid(t, response, [field], `${field} ${shown(value)}`)
    }
  }
  for (const field of ['name', 'expertise', 'clubId']) {
    invalid(t, await admin.inject('POST', '/mentors', { ...body, [field]: undefined }), [field], `no ${field}`)
  }
  invalid(t, await admin.inject('POST', '/mentors', {}), ['name', 'expertise', 'clubId'], 'every issue is told')
  const bad = { name: '', expertise: 'x', clubId: 5, imageUrl: 'x', networkUrl: 5 }
  invalid(t, await admin.inject('POST', '/mentors', bad), Object.keys(bad), 'every issue is told')
  const [{ count } = {}] = await app.sql`SELECT count(*)::int FROM mentors WHERE club_id = ${clubId}`
  t.equal(count, 0, 'nothing is stored')
})

t.test('POST and PUT want an object', async t => {
  const headers = { authorization: `Bearer ${admin.token}`, ...JSON_BODY }
  for (const [method, url] of [['POST', '/mentors'], ['PUT', `/mentors/${await addMentor()}`]] as const) {
    for (const body of ['[]', 'null', '"Ada"', '5', 'true', '[{"name":"Ada"}]']) {
      invalid(t, await inject(app, method, url, body, headers), [''], `${method} ${body}`)
    }
  }
  invalid(t, await admin.inject('POST', '/mentors'), [''], 'POST without a body')
})

t.test('POST /mentors wants an imageUrl', async t => {
  const { id: clubId } = await addClub()
  const message = 'All fields are required'
  const body = { name: 'Ada', expertise: 'Mathematics', clubId }
  answers(t, await admin.inject('POST', '/mentors', body), 400, { message })
  answers(t, await admin.inject('POST', '/mentors', { ...body, clubId: 'unknown' }), 400, { message },
    'before the club is looked for')
  invalid(t, await admin.inject('POST', '/mentors', { ...body, name: '' }), ['name'], 'after validation')
})

t.test('POST /mentors fails for an unknown club', async t => {
  const { id } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org' }
  for (const clubId of [randomUUID(), 'not-a-uuid', ' ', LONG, id.toUpperCase(), `${id} `]) {
    const response = await admin.inject('POST', '/mentors', { ...body, clubId })
    answers(t, response, 500, { message: 'Error creating mentor' }, shown(clubId))
  }
})

t.test('a lone surrogate in text is replaced or refused', async t => {
  const { id: clubId } = await addClub()
  const response = await admin.inject('POST', '/mentors', {
    name: 'Ada \ud800', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId,
  })
  if (response.statusCode === 201) t.equal(response.json().mentor.name, 'Ada \ufffd')
  else invalid(t, response, ['name'])
})

t.test('PUT /mentors/:id changes what it is given and nothing else', async t => {
  const [club, other] = [await addClub({ image_url: 'https://example.org/club.png' }), await addClub()]
  const id = await addMentor({ club_id: club.id, network_url: 'ada' })
  await like(id, admin)
  let mentor = {
    id,
    name: 'Ada',
    expertise: 'Mathematics',
    imageUrl: 'https://example.org/ada.png',
    networkUrl: 'ada',
    clubId: club.id,
    club: { name: club.name },
  }
  answers(t, await admin.inject('PUT', `/mentors/${id}`, {}), 200, { mentor }, 'an empty object')
  for (const change of [
    { name: 'Bob' },
    { expertise: 'Go' },
    { imageUrl: 'data:,bob' },
    { networkUrl: 'bob' },
    { networkUrl: '' },
    { name: 'Eve', expertise: 'Chess', imageUrl: 'data:,eve', networkUrl: 'eve' },
  ]) {
    mentor = { ...mentor, ...change }
    answers(t, await admin.inject('PUT', `/mentors/${id}`, change), 200, { mentor }, shown(change))
    answers(t, await admin.inject('PUT', `/mentors/${id}/`, {}), 200, { mentor }, 'it stays, and with a trailing slash')
  }
  mentor = { ...mentor, clubId: other.id, club: { name: other.name } }
  answers(t, await admin.inject('PUT', `/mentors/${id}`, { clubId: other.id }), 200, { mentor }, 'another club')
  answers(t, await admin.inject('PUT', `/mentors/${id}`, { id: randomUUID(), likeCount: 9, club: { name: 'x' } }),
    200, { mentor }, 'unknown fields')
  t.strictSame(await likesOf(id), [admin.id], 'its likes stay')
})

t.test('PUT /mentors/:id changes only this mentor', async t => {
  const [ada, bob] = [await addMentor(), await addMentor({ name: 'Bob' })]
  await admin.inject('PUT', `/mentors/${ada}`, { name: 'Eve', networkUrl: 'eve' })
  t.match(await stored(bob), { name: 'Bob', network_url: '' })
})

t.test('PUT /mentors/:id takes what its rules allow, as it is given', async t => {
  const id = await addMentor()
  for (const [field, { takes }] of Object.entries(FIELDS)) {
    for (const value of takes) {
      const response = await admin.inject('PUT', `/mentors/${id}`, { [field]: value })
      t.equal(response.statusCode, 200, `${field} ${shown(value)}`)
      t.equal(response.json().mentor[field], value)
    }
  }
})

t.test('PUT /mentors/:id refuses what its rules do not allow', async t => {
  const id = await addMentor()
  const before = await stored(id)
  for (const [field, { refuses }] of Object.entries({ ...FIELDS, clubId: NO_CLUB_ID })) {
    for (const value of refuses) {
      const response = await admin.inject('PUT', `/mentors/${id}`, { [field]: value })
      invalid(t, response, [field], `${field} ${shown(value)}`)
    }
  }
  invalid(t, await admin.inject('PUT', `/mentors/${id}`, { name: '', expertise: 'x', imageUrl: null, clubId: 5 }),
    ['name', 'expertise', 'imageUrl', 'clubId'], 'every issue is told')
  invalid(t, await admin.inject('PUT', `/mentors/${randomUUID()}`, { name: '' }), ['name'], 'whatever the id')
  invalid(t, await admin.inject('PUT', '/mentors//', {}), ['id'], 'an empty id')
  t.strictSame(await stored(id), before, 'nothing changes')
})

t.test('PUT /mentors/:id fails for a null networkUrl', async t => {
  const id = await addMentor({ network_url: 'ada' })
  const response = await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob', networkUrl: null })
  answers(t, response, 500, { message: 'Error updating mentor' })
  t.match(await stored(id), { name: 'Ada', network_url: 'ada' }, 'nothing changes')
})

t.test('PUT /mentors/:id fails for an unknown mentor', async t => {
  const message = 'Error updating mentor'
  for (const id of [...UNKNOWN_IDS, (await addMentor()).toUpperCase()]) {
    answers(t, await admin.inject('PUT', `/mentors/${id}`, {}), 500, { message }, shown(id))
    answers(t, await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob' }), 500, { message }, shown(id))
  }
})

t.test('PUT /mentors/:id fails for an unknown club', async t => {
  const id = await addMentor()
  for (const clubId of [randomUUID(), 'not-a-uuid', LONG, (await addClub()).id.toUpperCase()]) {
    const response = await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob', clubId })
    answers(t, response, 500, { message: 'Error updating mentor' }, shown(clubId))
  }
  t.equal((await stored(id))?.name, 'Ada', 'nothing changes')
})

t.test('DELETE /mentors/:id deletes the mentor and its likes, and no others', async t => {
  const [ada, bob, someone] = [await addMentor(), await addMentor(), await person(app)]
  await like(ada, someone, admin)
  await like(bob, someone)
  const response = await admin.inject('DELETE', `/mentors/${ada}`)
  answers(t, response, 200, { message: 'Mentor deleted successfully' })
  t.equal(await stored(ada), undefined)
  t.strictSame(await likesOf(ada), [])
  t.ok(await stored(bob))
  t.strictSame(await likesOf(bob), [someone.id])
  const { likedMentors } = (await someone.inject('GET', '/mentors/liked')).json()
  t.strictSame(likedMentors.map((mentor: { id: string }) => mentor.id), [bob])
  answers(t, await someone.inject('POST', `/mentors/${ada}/like`), 404, { message: 'Mentor not found' })
  answers(t, await admin.inject('DELETE', `/mentors/${ada}`), 500, { message: 'Error deleting mentor' }, 'once')
})

t.test('DELETE /mentors/:id takes an empty JSON body for none, and a trailing slash', async t => {
  const headers = { authorization: `Bearer ${admin.token}`, ...JSON_BODY }
  const response = await inject(app, 'DELETE', `/mentors/${await addMentor()}/`, undefined, headers)
  answers(t, response, 200, { message: 'Mentor deleted successfully' })
})

t.test('DELETE /mentors/:id fails for an unknown id, and refuses an empty one', async t => {
  const id = await addMentor()
  for (const unknown of [...UNKNOWN_IDS, id.toUpperCase(), 'liked']) {
    const response = await admin.inject('DELETE', `/mentors/${unknown}`)
    answers(t, response, 500, { message: 'Error deleting mentor' }, shown(unknown))
  }
  invalid(t, await admin.inject('DELETE', '/mentors//'), ['id'])
  t.ok(await stored(id))
})

t.test('there are no other operations', async t => {
  const id = await addMentor()
  for (const [method, url] of [
    ['GET', `/mentors/${id}`],
    ['PATCH', `/mentors/${id}`],
    ['GET', `/mentors/${id}/like`],
    ['DELETE', `/mentors/${id}/like`],
    ['PUT', '/mentors'],
    ['DELETE', '/mentors'],
  ] as const) {
    answers(t, await admin.inject(method, url), 404, { message: 'Not found' }, `${method} ${url}`)
  }
})
