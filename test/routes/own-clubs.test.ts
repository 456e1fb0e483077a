// Clubs that their members run: joining, decisions, offices. Public reports of other services are cases here.
import { assertMessage, assertResponse, DATE_TIME } from '../assertions.ts'
import { bearer, build, inject, insert, type Person, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const { sql } = app

const NOT_ALLOWED = 'Not allowed to manage this club'
const NOT_LEADING = 'Only the head of the club and admins may do this'

type Joining = 'open' | 'request' | 'closed'

/** A club with a head and a deputy, and functions that send requests about it. */
async function clubOf (joining: Joining = 'request') {
  const id = await insert(app, 'clubs')
  await sql`INSERT INTO club_details VALUES (${id}, ${joining})`
  const head = await person(app, 'CLUB_HEAD', { club_id: id, first_name: 'Hedy' })
  const deputy = await person(app, 'CLUB_HEAD', { club_id: id, first_name: 'Dora' })
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${id}`
  return {
    id,
    head,
    deputy,
    join: (one: Person, body: object = {}) => one.inject('PUT', `/me/clubs/${id}`, body),
    leave: (one: Person) => one.inject('DELETE', `/me/clubs/${id}`),
    decide: (by: Person, one: { id: string }, body: object) =>
      by.inject('PUT', `/club-pages/${id}/members/${one.id}`, body),
    answer: (one: Person, accept = true) => one.inject('PUT', `/me/clubs/${id}/office`, { accept }),
    members: async (by: Person = head) => (await by.inject('GET', `/club-pages/${id}/members`)).json(),
    page: async () => (await inject(app, 'GET', `/club-pages/${id}`)).json().club,
    open: () => sql`UPDATE club_details SET joining = 'open' WHERE club_id = ${id}`,
    /** What the person sees of this club; `undefined` if nothing. */
    async seenBy (one: Person) {
      const { clubs } = (await one.inject('GET', '/me/clubs')).json()
      return clubs.find((club: { clubId: string }) => club.clubId === id)
    },
    /** Makes a person a member. */
    async member (one?: Person) {
      const someone = one ?? await person(app)
      await sql`INSERT INTO club_members (user_id, club_id, state) VALUES (${someone.id}, ${id}, 'member')`
      return someone
    },
    async event () {
      return insert(app, 'events', { club_id: id, date: new Date('2030-01-01') })
    },
  }
}

/** The user as the database has them. */
async function stored ({ id }: { id: string }) {
  const [row] = await sql<[{ role: string, club: string | null }]>`
    SELECT role, club_id AS club FROM users WHERE id = ${id}
  `
  return row
}

/** Moves all times of memberships in a club into the past. */
const later = (clubId: string, days: number) => sql`
  UPDATE club_members SET
    changed_at = changed_at - make_interval(days => ${days}), refused_at = refused_at - make_interval(days => ${days}),
    offered_at = offered_at - make_interval(days => ${days})
  WHERE club_id = ${clubId}
`

t.test('PUT /me/clubs/:clubId joins an open club and publishes nothing', async t => {
  const club = await clubOf('open')
  const ada = await person(app)
  const response = await club.join(ada)
  const { since, name, ...membership } = response.json().club
  t.equal(response.statusCode, 200)
  t.match(since, DATE_TIME)
  t.strictSame(membership, {
    clubId: club.id,
    imageUrl: null,
    state: 'member',
    office: null,
    offered: null,
    offeredUntil: null,
    reason: null,
    news: true,
    isListed: false,
  })
  t.strictSame(await club.seenBy(ada), { since, name, ...membership })
  t.strictSame(await stored(ada), { role: 'STUDENT', club: null })
  t.equal((await club.page()).memberCount, 3)
  const urls = ['/clubs', '/club-pages', `/club-pages/${club.id}`]
  const pages = await Promise.all(urls.map(url => inject(app, 'GET', url)))
  for (const { body } of pages) t.notMatch(body, ada.email)
  t.equal((await ada.inject('GET', '/auth/me')).json().user.club, null)
})

t.test('A member changes only the emails about news', async t => {
  const club = await clubOf('closed')
  const ada = await club.member()
  const before = await club.seenBy(ada)
  assertResponse(t, await club.join(ada, { news: false, message: 'x' }), 200, { club: { ...before, news: false } })
  assertResponse(t, await club.join(ada), 200, { club: { ...before, news: false } })
  t.strictSame((await club.members()).requests, [])
})

t.test('A request waits for an organizer, once per person', async t => {
  const club = await clubOf()
  const [ada, bea] = [await person(app, 'STUDENT', { email_verified_at: new Date() }), await person(app)]
  const asked = (await club.join(ada, { message: 'I play chess.' })).json().club
  t.strictSame([asked.state, asked.reason], ['requested', null])
  await later(club.id, 1)
  await club.join(bea)
  const again = (await club.join(ada, { message: 'Every day.', news: false })).json().club
  t.strictSame([again.state, again.news], ['requested', false])
  t.ok(again.since < asked.since, 'the place in the list stays')
  const { requests, requestCount, members } = await club.members(club.deputy)
  t.match(requests[1].askedAt, DATE_TIME)
  t.strictSame(requests, [
    {
      userId: ada.id,
      name: 'Ada Lovelace',
      email: ada.email,
      isEmailVerified: true,
      message: 'Every day.',
      askedAt: again.since,
    },
    {
      userId: bea.id,
      name: 'Ada Lovelace',
      email: bea.email,
      isEmailVerified: false,
      message: null,
      askedAt: requests[1].askedAt,
    },
  ])
  t.strictSame([requestCount, members.length], [2, 2])
  t.equal((await club.page()).memberCount, 2, 'a request is no membership')
  await club.open()
  t.equal((await club.join(ada)).json().club.state, 'member', 'the club is open now')
  await club.join(bea)
  const verified = new Map((await club.members()).members.map((member: any) => [member.userId, member.isEmailVerified]))
  t.strictSame([verified.get(ada.id), verified.get(bea.id)], [true, false], 'also of people who joined without asking')
})

t.test('A request keeps its message until there is another, and a member has none', async t => {
  const club = await clubOf()
  const ada = await person(app)
  await club.join(ada, { message: 'I play chess.' })
  await club.join(ada, { news: false })
  t.equal((await club.members()).requests[0].message, 'I play chess.')
  await club.open()
  await club.join(ada, { message: 'Every day.' })
  const [row] = await sql`SELECT state, message FROM club_members WHERE user_id = ${ada.id}`
  t.strictSame({ ...row }, { state: 'member', message: null })
})

t.test('A person can be in at most 50 clubs', async t => {
  const ada = await person(app)
  await sql`
    WITH created AS (
      INSERT INTO clubs (name, description) SELECT gen_random_uuid(), 'x' FROM generate_series(1, 50) RETURNING id
    )
    INSERT INTO club_members (user_id, club_id, state) SELECT ${ada.id}, id, 'member' FROM created
  `
  const club = await clubOf('open')
  assertMessage(t, await club.join(ada), 409, 'You can be in at most 50 clubs')
  await sql`
    UPDATE club_members SET state = 'refused', refused_at = now()
    WHERE user_id = ${ada.id} AND club_id = (SELECT club_id FROM club_members WHERE user_id = ${ada.id} LIMIT 1)
  `
  const clubs = [club, await clubOf('open'), await clubOf('open')]
  const statuses = await Promise.all(clubs.map(async ({ join }) => (await join(ada)).statusCode))
  t.strictSame(statuses.sort(), [200, 409, 409], 'also at the same time')
})

t.test('A closed club takes nobody', async t => {
  const club = await clubOf('closed')
  assertMessage(t, await club.join(await person(app)), 409, 'This club takes no new members')
})

t.test('Organizers accept and refuse, each once', async t => {
  const club = await clubOf()
  const [ada, bea] = [await person(app), await person(app)]
  await Promise.all([ada, bea].map(one => club.join(one, { message: 'x' })))
  const answer = { office: null, offered: null, offeredUntil: null }
  assertResponse(t, await club.decide(club.deputy, ada, { state: 'member' }), 200, {
    member: { userId: ada.id, state: 'member', ...answer },
  })
  assertResponse(t, await club.decide(club.head, bea, { state: 'refused', reason: 'The room is full.' }), 200, {
    member: { userId: bea.id, state: 'refused', ...answer },
  })
  const { state, reason, since } = await club.seenBy(bea)
  t.strictSame([state, reason], ['refused', 'The room is full.'])
  const accepted = await club.seenBy(ada)
  await club.decide(club.head, ada, { state: 'member' })
  await club.decide(club.head, bea, { state: 'refused', reason: 'Another one' })
  t.strictSame(await club.seenBy(ada), accepted, 'a second decision changes nothing')
  t.strictSame([(await club.seenBy(bea)).reason, (await club.seenBy(bea)).since], ['The room is full.', since])
  assertMessage(t, await club.decide(club.head, bea, { state: 'member' }), 404, 'Member not found', 'she must ask')
  assertMessage(t, await club.decide(club.head, await person(app), { state: 'member' }), 404, 'Member not found')
  const { requests, members } = await club.members()
  t.strictSame([requests, members.length], [[], 3])
  t.strictSame((await stored(ada)), { role: 'STUDENT', club: null })
})

t.test('A refusal holds for a week, whatever the person does', async t => {
  const club = await clubOf('open')
  const ada = await club.member()
  await club.decide(club.head, ada, { state: 'refused' })
  t.equal((await club.seenBy(ada)).reason, null)
  const refuses = async () => {
    assertMessage(t, await club.join(ada), 409, 'You can ask again a week after a refusal')
    assertMessage(t, await club.leave(ada), 404, 'You are not in this club')
    assertMessage(t, await club.join(ada), 409, 'You can ask again a week after a refusal')
  }
  await refuses()
  await later(club.id, 6)
  await club.decide(club.head, ada, { state: 'refused', reason: 'No' })
  await refuses()
  await later(club.id, 1)
  for (const time of ['first', 'second']) {
    t.equal((await club.join(ada)).json().club.state, 'requested', `an organizer decides, the ${time} time`)
    t.equal((await club.join(ada)).json().club.state, 'requested', 'asking twice does not help')
    t.equal((await club.leave(ada)).statusCode, 200)
    t.equal((await club.seenBy(ada)).state, 'refused', 'to ask and to leave does not help')
  }
  await club.join(ada)
  await club.decide(club.deputy, ada, { state: 'member' })
  await club.leave(ada)
  t.equal((await club.join(ada)).json().club.state, 'member', 'after an acceptance, the refusal is over')
})

t.test('Joining deletes refusals that are 90 days old', async t => {
  const club = await clubOf('open')
  const old = await Promise.all([1, 2].map(() => club.member()))
  for (const one of old) await club.decide(club.head, one, { state: 'refused' })
  await later(club.id, 89)
  await club.join(await person(app))
  t.ok(await club.seenBy(old[0]!))
  await later(club.id, 2)
  await club.join(await person(app))
  for (const one of old) t.equal(await club.seenBy(one), undefined)
})

t.test('Leaving ends a membership', async t => {
  const club = await clubOf()
  const ada = await club.member()
  assertMessage(t, await club.leave(ada), 200, 'You have left the club')
  assertMessage(t, await club.leave(ada), 404, 'You are not in this club')
  t.equal(await club.seenBy(ada), undefined)
  await club.join(ada)
  assertMessage(t, await club.leave(ada), 200, 'You have left the club')
  t.strictSame((await club.members()).requests, [])
  const listed = await person(app, 'STUDENT', { club_id: club.id })
  await club.leave(listed)
  t.strictSame(await stored(listed), { role: 'STUDENT', club: null }, 'also on the card')
})

t.test('Only organizers and admins see members and decide', async t => {
  const club = await clubOf()
  const other = await clubOf()
  const [ada, admin] = [await club.member(), await person(app, 'ADMIN')]
  await club.join(await person(app))
  const strangers = [
    ada, await person(app), await person(app, 'CLUB_HEAD'), other.head,
    await person(app, 'STUDENT', { club_id: club.id }),
  ]
  for (const one of strangers) {
    assertMessage(t, await one.inject('GET', `/club-pages/${club.id}/members`), 403, NOT_ALLOWED)
    assertMessage(t, await club.decide(one, ada, { state: 'refused' }), 403, NOT_ALLOWED)
    assertMessage(t, await club.decide(one, ada, { office: 'head' }), 403, NOT_ALLOWED)
  }
  const { leads, club: named, members } = await club.members()
  t.strictSame([leads, named.id, named.joining], [true, club.id, 'request'])
  t.strictSame(members.map(({ userId, office }: Record<string, unknown>) => [userId, office]).slice(0, 2),
    [[club.head.id, 'head'], [club.deputy.id, 'deputy']])
  t.equal((await club.members(club.deputy)).leads, false)
  t.equal((await club.members(admin)).leads, true)
  assertMessage(t, await admin.inject('GET', `/club-pages/${ada.id}/members`), 404, 'Club not found')
})

t.test('PUT /club-pages/:id/members/:userId takes a state or an office', async t => {
  const club = await clubOf()
  const ada = await club.member()
  for (const [body, path] of [
    [{}, 'state'], [{ state: 'member', office: null }, 'state'], [{ reason: 'x' }, 'state'],
    [{ state: 'member', reason: 'x' }, 'reason'], [{ office: null, reason: 'x' }, 'reason'],
    [{ state: 'requested' }, 'state'], [{ state: null }, 'state'], [{ office: 'admin' }, 'office'],
    [{ state: 'refused', reason: ' ' }, 'reason'], [{ state: 'refused', reason: 'x'.repeat(1001) }, 'reason'],
  ] as const) {
    const response = await club.decide(club.head, ada, body)
    const paths = response.json().errors?.map((issue: { path: string }) => issue.path)
    t.strictSame([response.statusCode, paths], [400, [path]])
  }
})

t.test('Joining and membership give no right to change events', async t => {
  const club = await clubOf('open')
  const event = await club.event()
  // An earlier head of a different club, whose token still has the role
  const former = await person(app, 'CLUB_HEAD')
  const ada = await person(app)
  for (const one of [former, ada]) {
    await club.join(one)
    t.equal((await one.inject('PUT', `/events/${event}`, { title: 'Mine' })).statusCode, 403)
    t.equal((await one.inject('PUT', `/agenda/${event}`, { place: 'Mine' })).statusCode, 403)
    t.equal((await one.inject('PUT', `/club-pages/${club.id}`, { description: 'Mine' })).statusCode, 403)
  }
  t.strictSame((await club.page()).organizers.length, 2)
})

t.test('An accepted offer makes a deputy, with a token', async t => {
  const club = await clubOf()
  const other = await clubOf()
  const event = await club.event()
  const ada = await club.member(await person(app, 'STUDENT', { club_id: other.id }))
  await sql`UPDATE club_members SET news = false WHERE user_id = ${ada.id}`
  const offered = (await club.decide(club.head, ada, { office: 'deputy' })).json().member
  t.strictSame([offered.office, offered.offered], [null, 'deputy'])
  t.ok(Math.abs(Date.parse(offered.offeredUntil) - Date.now() - 14 * 86_400_000) < 60_000)
  t.strictSame((await stored(ada)), { role: 'STUDENT', club: other.id }, 'nobody gets an office without saying yes')
  t.equal((await ada.inject('PUT', `/agenda/${event}`, { place: 'x' })).statusCode, 403)
  t.strictSame((await club.seenBy(ada)).offeredUntil, offered.offeredUntil)
  const again = (await club.decide(club.head, ada, { office: 'deputy' })).json().member
  t.strictSame(again, offered, 'the same offer again is the same offer')
  const { club: seen, token } = (await club.answer(ada)).json()
  t.strictSame([seen.state, seen.office, seen.offered], ['member', 'deputy', null])
  t.strictSame([seen.isListed, seen.news], [true, false])
  t.strictSame(await stored(ada), { role: 'CLUB_HEAD', club: club.id })
  t.equal((await inject(app, 'PUT', `/agenda/${event}`, { place: 'x' }, bearer(token))).statusCode, 200)
  const left = await other.seenBy(ada)
  t.strictSame([left.state, left.isListed, left.news], ['member', false, false], 'the other club keeps the member')
  assertMessage(t, await club.answer(ada), 404, 'There is no offer')
})

t.test('A declined offer is gone', async t => {
  const club = await clubOf()
  const ada = await club.member()
  assertMessage(t, await club.answer(ada), 404, 'There is no offer')
  await club.decide(club.head, ada, { office: 'head' })
  const { club: seen, token } = (await club.answer(ada, false)).json()
  t.strictSame([seen.office, seen.offered], [null, null])
  t.equal(app.verifyToken(token)?.role, 'STUDENT')
  assertMessage(t, await club.answer(ada), 404, 'There is no offer')
})

t.test('Nobody accepts an office that is not the one they have read about', async t => {
  const club = await clubOf()
  const ada = await club.member()
  const accept = (office: string) => ada.inject('PUT', `/me/clubs/${club.id}/office`, { accept: true, office })
  await club.decide(club.head, ada, { office: 'deputy' })
  await club.decide(club.head, ada, { office: 'head' })
  assertMessage(t, await accept('deputy'), 409, 'This offer is no longer valid')
  for (const body of [{}, { accept: 'yes' }, { accept: true, office: 'HEAD' }, { accept: true, office: null }]) {
    t.equal((await ada.inject('PUT', `/me/clubs/${club.id}/office`, body)).statusCode, 400)
  }
  t.equal((await club.seenBy(ada)).offered, 'head', 'the offer stays')
  t.equal((await accept('head')).json().club.office, 'head')
})

t.test('A new head makes a deputy of the old one', async t => {
  const club = await clubOf()
  const [ada, bea] = [await club.member(), await club.member()]
  await club.decide(club.head, ada, { office: 'head' })
  await club.decide(club.head, bea, { office: 'head' })
  assertMessage(t, await club.answer(ada), 404, 'There is no offer', 'one person at most is asked')
  t.equal((await club.answer(bea)).statusCode, 200)
  const offices = (await club.members(bea)).members
    .map(({ userId, office }: Record<string, unknown>) => [userId, office])
  t.strictSame(offices[0], [bea.id, 'head'])
  t.ok(offices.some(([id, office]: unknown[]) => id === club.head.id && office === 'deputy'))
  assertMessage(t, await club.decide(club.head, bea, { office: null }), 403, NOT_LEADING)
  t.equal((await club.page()).organizers[0].isHead, true)
})

t.test('An offer is valid only while who made it may still make it', async t => {
  const ends: Record<string, (club: Awaited<ReturnType<typeof clubOf>>, author: Person) => Promise<unknown>> = {
    'the author is removed': (_club, author) => sql`UPDATE users SET club_id = NULL WHERE id = ${author.id}`,
    'the author loses the role': (_club, author) => sql`UPDATE users SET role = 'STUDENT' WHERE id = ${author.id}`,
    'the author is deleted': (_club, author) => sql`DELETE FROM users WHERE id = ${author.id}`,
    'a different person is the head': club => sql`
      UPDATE clubs SET club_head_id = ${club.deputy.id} WHERE id = ${club.id}
    `,
    '14 days are over': club => later(club.id, 15),
  }
  for (const [why, end] of Object.entries(ends)) {
    const club = await clubOf()
    const ada = await club.member()
    await club.decide(club.head, ada, { office: 'deputy' })
    await end(club, club.head)
    const { offered, offeredUntil } = await club.seenBy(ada)
    t.strictSame([offered, offeredUntil], [null, null], why)
    assertMessage(t, await club.answer(ada), 409, 'This offer is no longer valid', why)
    t.strictSame(await stored(ada), { role: 'STUDENT', club: null }, why)
    t.equal((await club.answer(ada, false)).statusCode, 200, 'it can be declined')
  }
})

t.test('An organizer of a different club gets no office', async t => {
  const [club, other] = [await clubOf(), await clubOf()]
  await club.member(other.head)
  assertMessage(t, await club.decide(club.head, other.head, { office: 'deputy' }), 409,
    'This person organizes a different club')
  const ada = await club.member()
  await club.decide(club.head, ada, { office: 'deputy' })
  await sql`UPDATE users SET role = 'CLUB_HEAD', club_id = ${other.id} WHERE id = ${ada.id}`
  assertMessage(t, await club.answer(ada), 409, 'You organize a different club')
})

t.test('The end of an office ends the rights of every token, and they do not come back', async t => {
  const club = await clubOf('open')
  const event = await club.event()
  const may = async (token: string) =>
    (await inject(app, 'PUT', `/events/${event}`, { title: 'A new title' }, bearer(token))).statusCode === 200 ||
    (await inject(app, 'PUT', `/agenda/${event}`, { place: 'x' }, bearer(token))).statusCode === 200 ||
    (await inject(app, 'PUT', `/club-pages/${club.id}`, { description: 'x' }, bearer(token))).statusCode === 200
  const ada = await club.member()
  await club.decide(club.head, ada, { office: 'deputy' })
  const { token } = (await club.answer(ada)).json()
  t.ok(await may(token))
  await club.decide(club.head, ada, { office: null })
  t.notOk(await may(token))
  t.strictSame(await stored(ada), { role: 'STUDENT', club: null })
  t.equal((await club.seenBy(ada)).state, 'member', 'the membership stays')
  await club.leave(ada)
  await club.join(ada)
  t.strictSame([(await club.seenBy(ada)).office, await may(token)], [null, false], 'who comes back is a plain member')
  // The head leaves, and comes back.
  await club.leave(club.head)
  t.notOk(await may(club.head.token))
  await club.join(club.head)
  t.notOk(await may(club.head.token))
  t.strictSame((await club.page()).organizers.map(({ isHead }: { isHead: boolean }) => isHead), [false])
})

t.test('A deputy decides about offices only if the club has no head', async t => {
  const club = await clubOf()
  const [ada, bea] = [await club.member(), await person(app, 'CLUB_HEAD', { club_id: club.id })]
  for (const [one, change] of [
    [ada, { office: 'deputy' }], [ada, { office: 'head' }], [bea, { office: null }], [bea, { state: 'refused' }],
    [club.head, { office: null }], [club.head, { state: 'refused' }], [club.head, { office: 'deputy' }],
    [club.deputy, { office: 'head' }], [club.deputy, { state: 'refused' }],
  ] as const) assertMessage(t, await club.decide(club.deputy, one, change), 403, NOT_LEADING)
  await club.decide(club.head, ada, { office: 'deputy' })
  assertMessage(t, await club.decide(club.deputy, ada, { state: 'refused' }), 403, NOT_LEADING)
  await club.decide(club.head, ada, { office: null })
  t.equal((await club.decide(bea, bea, { office: null })).statusCode, 200, 'but can resign')
  t.equal((await club.decide(club.head, club.head, { office: 'deputy' })).json().member.office, 'deputy')
  t.equal((await club.members(club.deputy)).leads, true, 'the club has no head')
  t.equal((await club.decide(club.deputy, club.deputy, { office: 'head' })).statusCode, 200)
  t.equal((await club.answer(club.deputy)).json().club.office, 'head')
})

t.test('The head can leave and be erased; then deputies lead, and then admins', async t => {
  const club = await clubOf()
  const admin = await person(app, 'ADMIN')
  const ada = await club.member()
  assertMessage(t, await club.leave(club.head), 200, 'You have left the club')
  t.strictSame(await stored(club.head), { role: 'STUDENT', club: null })
  t.match(await sql`SELECT club_head_id AS head FROM clubs WHERE id = ${club.id}`, [{ head: null }])
  await club.decide(club.deputy, ada, { office: 'head' })
  await club.answer(ada)
  t.equal((await admin.inject('DELETE', `/account/${ada.id}`)).statusCode, 200)
  t.equal((await club.decide(club.deputy, club.deputy, { state: 'refused' })).statusCode, 200)
  t.strictSame((await club.page()).organizers, [])
  const bea = await club.member()
  await club.decide(admin, bea, { office: 'head' })
  t.equal((await club.answer(bea)).json().club.office, 'head')
})

t.test('Admins keep their role in and after an office', async t => {
  const club = await clubOf()
  const admin = await club.member(await person(app, 'ADMIN'))
  await club.decide(admin, admin, { office: 'head' })
  const { token } = (await club.answer(admin)).json()
  t.equal(app.verifyToken(token)?.role, 'ADMIN')
  t.strictSame(await stored(admin), { role: 'ADMIN', club: club.id })
  await club.leave(admin)
  t.strictSame(await stored(admin), { role: 'ADMIN', club: null })
})

t.test('A head whom an admin moved to a different club can head that one', async t => {
  const [club, other] = [await clubOf(), await clubOf()]
  await sql`UPDATE users SET club_id = ${other.id} WHERE id = ${club.head.id}`
  t.strictSame((await club.page()).organizers.map(({ isHead }: { isHead: boolean }) => isHead), [false])
  await other.decide(other.head, club.head, { office: 'head' })
  t.equal((await other.answer(club.head)).json().club.office, 'head')
  const [{ head }] = await sql<[{ head: null }]>`SELECT club_head_id AS head FROM clubs WHERE id = ${club.id}`
  t.equal(head, null)
})

t.test('A head whom an admin moved away comes back as what the offer says', async t => {
  const club = await clubOf('open')
  const admin = await person(app, 'ADMIN')
  await admin.inject('PUT', `/users/${club.head.id}`, { clubId: null })
  await club.join(club.head)
  await club.decide(club.deputy, club.head, { office: 'deputy' })
  t.equal((await club.answer(club.head)).json().club.office, 'deputy')
  t.equal((await club.members(club.deputy)).leads, true, 'the club still has no head')
})

t.test('An accepted office withdraws the offer of the club on the card', async t => {
  const [club, other] = [await clubOf(), await clubOf()]
  const ada = await person(app, 'STUDENT', { club_id: other.id })
  await other.decide(other.head, ada, { office: 'head' })
  await club.member(ada)
  await club.decide(club.head, ada, { office: 'deputy' })
  t.equal((await club.answer(ada)).statusCode, 200)
  const { state, offered } = await other.seenBy(ada)
  t.strictSame({ state, offered }, { state: 'member', offered: null })
  assertMessage(t, await other.answer(ada), 404, 'There is no offer')
})

t.test('Decisions about an office that change nothing', async t => {
  const club = await clubOf()
  const ada = await person(app, 'STUDENT', { club_id: club.id })
  t.equal((await club.decide(club.head, ada, { office: null })).statusCode, 200)
  t.strictSame(await stored(ada), { role: 'STUDENT', club: club.id }, 'a listed member stays listed')
  await club.decide(club.head, club.deputy, { office: 'head' })
  t.equal((await club.decide(club.head, club.deputy, { office: 'deputy' })).json().member.offered, null, 'withdrawn')
  await club.decide(club.head, ada, { office: 'deputy' })
  t.equal((await club.decide(club.head, ada, { office: null })).json().member.offered, null)
  assertMessage(t, await club.answer(ada), 404, 'There is no offer')
  const bea = await person(app)
  await club.join(bea)
  assertMessage(t, await club.decide(club.head, bea, { office: 'deputy' }), 404, 'Member not found', 'only a request')
})

t.test('POST /me/token gives the current role, and no longer life', async t => {
  const ada = await person(app)
  await sql`UPDATE users SET role = 'CLUB_HEAD' WHERE id = ${ada.id}`
  const claims = (token: string) => app.jwt.decode<Record<string, unknown>>(token)!
  const iat = Math.floor(Date.now() / 1000) - 1000
  const old = app.jwt.sign({ sub: ada.id, userId: ada.id, role: 'STUDENT', iat } as never, { expiresIn: '1h' })
  const renew = async (token: string) =>
    (await inject(app, 'POST', '/me/token', undefined, bearer(token))).json().token as string
  t.strictSame(claims(await renew(old)), { sub: ada.id, userId: ada.id, role: 'CLUB_HEAD', iat, exp: iat + 3600 })
  t.strictSame(claims(await renew(await renew(old))).exp, iat + 3600)
  const endless = app.jwt.sign({ sub: ada.id, role: 'STUDENT' } as never, { noTimestamp: true, expiresIn: '100000d' })
  const renewed = claims(await renew(endless))
  t.equal(renewed.iat, 0, 'the time of sign-in is unknown')
  t.ok(renewed.exp as number < Date.now() / 1000 + 8 * 86_400)
  const token = await renew(old)
  await ada.inject('DELETE', '/me/tokens')
  for (const revoked of [old, token]) {
    const response = await inject(app, 'POST', '/me/token', undefined, bearer(revoked))
    assertMessage(t, response, 401, 'Invalid or expired token')
  }
})

t.test('A renewed token keeps its epoch, and is no fresh sign-in', async t => {
  const ada = await person(app)
  await ada.inject('DELETE', '/me/tokens')
  const [{ epoch }] = await sql<[{ epoch: string }]>`SELECT epoch FROM revoked_tokens WHERE user_id = ${ada.id}`
  const iat = Math.floor(Date.now() / 1000) - 301
  const old = app.jwt.sign({ sub: ada.id, userId: ada.id, role: 'STUDENT', epoch, iat } as never)
  const { token } = (await inject(app, 'POST', '/me/token', undefined, bearer(old))).json()
  t.equal(app.verifyToken(token)?.epoch, epoch)
  assertMessage(t, await inject(app, 'DELETE', '/me', { currentPassword: null }, bearer(token)), 401,
    'Please sign in with your identity provider again, and retry within five minutes')
})

t.test('GET /club-pages/:id/members finds the reason for a missing list after admission', async t => {
  const { id } = await clubOf()
  const late = await person(app, 'CLUB_HEAD')
  const { operations } = app.queues
  const run = operations.run.bind(operations)
  const admitted = t.capture(operations, 'run', async (...work: Parameters<typeof run>) => {
    await sql`UPDATE users SET club_id = ${id} WHERE id = ${late.id}`
    return run(...work)
  })
  const url = `/club-pages/${id}/members`
  assertMessage(t, await late.inject('GET', url), 403, 'Not allowed to manage this club')
  t.equal(admitted().length, 1)
  t.equal((await late.inject('GET', url)).statusCode, 200)
})
