import { build } from '../helper.ts'
import t from '../suite.ts'

const PASSWORD = 'correct horse battery staple'

t.test('A term of the community, over HTTP', async t => {
  const app = await build(t, { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: PASSWORD })
  const base = await app.listen({ host: '127.0.0.1', port: 0 })

  type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
  const request = async (token: string | undefined, method: Method, path: string, body?: object) => {
    const response = await fetch(base + path, {
      method,
      headers: {
        ...token && { authorization: `Bearer ${token}` },
        // Browsers send the content type without a body, too.
        'content-type': 'application/json',
      },
      ...body && { body: JSON.stringify(body) },
    })
    const text = await response.text()
    return { status: response.status, body: text ? JSON.parse(text) : undefined }
  }

  /** A user, or an anonymous client, whose requests must return a given status. */
  const visitor = (token?: string) => ({
    async does (status: number, method: Method, path: string, body?: object) {
      const response = await request(token, method, path, body)
      t.equal(response.status, status, `${method} ${path}: ${status}`)
      return response.body
    },
    async isRefused (status: number, message: string, method: Method, path: string, body?: object) {
      const response = await request(token, method, path, body)
      t.strictSame(response, { status, body: { message } }, `${method} ${path}: ${message}`)
    },
  })
  const anyone = visitor()

  const signIn = async (email: string) => {
    const { user, token } = await anyone.does(200, 'POST', '/auth/login', { email, password: PASSWORD })
    return { id: user.userId as string, email, role: user.role as string, ...visitor(token) }
  }
  const signUp = async (firstName: string) => {
    const email = `${firstName.toLowerCase()}@example.org`
    const account = { email, password: PASSWORD, firstName, lastName: 'Example', role: 'ADMIN' }
    const { user, token } = await anyone.does(201, 'POST', '/auth/register', account)
    t.strictSame(user, { id: user.id, firstName, lastName: 'Example', email, role: 'STUDENT' })
    return { id: user.id as string, email, firstName, ...visitor(token) }
  }

  const admin = await signIn('admin@example.org')
  t.equal(admin.role, 'ADMIN')

  // Two clubs, each with a head, who signs in again for a token with the new role.
  const [ada, grace] = [await signUp('Ada'), await signUp('Grace')]
  await anyone.isRefused(409, 'User already exists', 'POST', '/auth/register', {
    email: ada.email, password: PASSWORD, firstName: 'Ada', lastName: 'Again',
  })
  const makeClub = async (name: string, clubHeadEmail: string, imageUrl?: string) => {
    const payload = { name, description: `All about ${name}`, clubHeadEmail, imageUrl }
    return (await admin.does(201, 'POST', '/clubs', payload)).club
  }
  const chess = await makeClub('Chess', ada.email, 'https://img.example/chess.png')
  const robots = await makeClub('Robots', grace.email)
  await admin.isRefused(500, 'Error creating club', 'POST', '/clubs', {
    name: 'Chess', description: 'Once more', clubHeadEmail: admin.email,
  })
  const event = {
    title: 'Chess night',
    description: 'Bring your own board',
    data: '2030-05-01T18:00:00Z',
    imageUrl: 'https://img.example/night.png',
  }
  await ada.isRefused(403, 'Forbidden', 'POST', '/events', event)
  const [adaAsHead, graceAsHead] = [await signIn(ada.email), await signIn(grace.email)]
  t.strictSame([adaAsHead.role, graceAsHead.role], ['CLUB_HEAD', 'CLUB_HEAD'])
  t.strictSame((await adaAsHead.does(200, 'GET', '/auth/me')).user, {
    id: ada.id,
    firstName: 'Ada',
    lastName: 'Example',
    email: ada.email,
    avatar: null,
    role: 'CLUB_HEAD',
    club: { id: chess.id, name: 'Chess', imageUrl: 'https://img.example/chess.png' },
  })

  // The heads create events; an admin may not.
  const { event: night } = await adaAsHead.does(201, 'POST', '/events', event)
  const { event: open } = await adaAsHead.does(201, 'POST', '/events', { ...event, title: 'Open', data: '2030-06-01' })
  const raceInMay = { ...event, title: 'Race', data: '2030-05-15', clubId: chess.id }
  const { event: race } = await graceAsHead.does(201, 'POST', '/events', raceInMay)
  await admin.isRefused(403, 'Forbidden', 'POST', '/events', event)
  const titles = ({ events }: { events: { title: string }[] }) => events.map(({ title }) => title)
  t.strictSame(titles(await anyone.does(200, 'GET', '/events')), ['Open', 'Race', 'Chess night'])
  t.strictSame(titles(await anyone.does(200, 'GET', '/events?sort=asc&limit=2')), ['Chess night', 'Race'])
  t.strictSame(titles(await adaAsHead.does(200, 'GET', '/events/mine')), ['Open', 'Chess night'])
  t.strictSame(titles(await graceAsHead.does(200, 'GET', '/events/mine')), ['Race'])

  // Students register, join a club, and register for events.
  const [bob, cem, dot] = [await signUp('Bob'), await signUp('Cem'), await signUp('Dot')]
  await admin.does(200, 'PUT', `/users/${bob.id}/club`, { clubId: chess.id })
  await admin.does(200, 'PUT', `/users/${cem.id}`, { clubId: chess.id, lastName: 'Renamed' })
  for (const student of [bob, cem, dot]) await student.does(201, 'POST', `/events/${night.id}/register`)
  await bob.does(201, 'POST', `/events/${race.id}/register`)
  await bob.isRefused(400, 'You have already registered for this event', 'POST', `/events/${race.id}/register`)
  t.strictSame(
    (await bob.does(200, 'GET', '/events/registered')).registrations
      .map(({ event }: any) => [event.title, event.club.name]),
    [['Race', 'Robots'], ['Chess night', 'Chess']])
  t.strictSame(
    (await adaAsHead.does(200, 'GET', `/events/${night.id}/registrations`)).registrations
      .map(({ name }: any) => name).sort(),
    ['Bob Example', 'Cem Renamed', 'Dot Example'])
  t.strictSame(
    (await anyone.does(200, 'GET', '/events')).events.map(({ registrationCount }: any) => registrationCount), [0, 1, 3])
  const { clubs } = await anyone.does(200, 'GET', '/clubs')
  const { members, events } = clubs.find(({ id }: { id: string }) => id === chess.id)
  t.strictSame(members.map(({ email }: { email: string }) => email).sort(), [ada.email, bob.email, cem.email])
  t.strictSame(events.map(({ id }: { id: string }) => id).sort(), [night.id, open.id].sort())

  // A head changes their own events only.
  t.equal((await adaAsHead.does(200, 'PUT', `/events/${open.id}`, { title: 'Spring open' })).event.title, 'Spring open')
  await graceAsHead.isRefused(403, 'Not allowed to modify this event', 'PUT', `/events/${night.id}`, { title: 'Mine' })
  await graceAsHead.isRefused(403, 'Not allowed to delete this event', 'DELETE', `/events/${night.id}`)
  await graceAsHead.isRefused(403, 'Not allowed to view registrations for this event',
    'GET', `/events/${night.id}/registrations`)
  const forAdmins: [Method, string, object?][] = [
    ['GET', '/users'], ['GET', '/users/analytics'], ['PUT', `/users/${bob.id}`, {}], ['DELETE', `/users/${bob.id}`],
    ['PUT', `/users/${grace.id}/role`, { newRole: 'ADMIN' }], ['PUT', `/users/${bob.id}/club`, { clubId: robots.id }],
    ['POST', '/clubs', { name: 'Third' }], ['POST', '/mentors', {}], ['POST', '/testimonials', {}],
    ['GET', '/blogs/admin'], ['POST', '/blogs', {}],
  ]
  for (const [method, path, body] of forAdmins) await graceAsHead.isRefused(403, 'Forbidden', method, path, body)

  // A student submits a blog, an admin publishes it, visitors read it.
  const draft = { title: 'My first tournament', content: 'I lost every game but one.', status: 'PUBLISHED' }
  const { blog } = await bob.does(201, 'POST', '/blogs/submit', draft)
  t.strictSame([blog.status, blog.authorId], ['DRAFT', bob.id])
  t.strictSame(await anyone.does(200, 'GET', '/blogs'), { blogs: [] })
  await anyone.isRefused(403, 'You are not allowed to view this blog', 'GET', `/blogs/${blog.id}`)
  await cem.isRefused(403, 'You are not allowed to view this blog', 'GET', `/blogs/${blog.id}`)
  await bob.does(200, 'GET', `/blogs/${blog.id}`)
  await bob.isRefused(403, 'Forbidden', 'POST', `/blogs/${blog.id}/approve`)
  t.equal((await admin.does(200, 'POST', `/blogs/${blog.id}/approve`)).blog.status, 'PUBLISHED')
  for (const reader of [anyone, cem, graceAsHead]) {
    const { author, content } = (await reader.does(200, 'GET', `/blogs/${blog.id}`)).blog
    t.strictSame([author, content], [{ firstName: 'Bob', lastName: 'Example', avatar: null }, draft.content])
  }
  t.strictSame(titles({ events: (await anyone.does(200, 'GET', '/blogs')).blogs }), [draft.title])

  // Students like and unlike mentors.
  const makeMentor = async (name: string, clubId: string) => (await admin.does(201, 'POST', '/mentors', {
    name, expertise: 'Endgames', clubId, imageUrl: 'https://img.example/mentor.png',
  })).mentor.id as string
  const [yifan, zoe] = [await makeMentor('Yifan', chess.id), await makeMentor('Zoe', robots.id)]
  for (const [someone, mentor, liked, likeCount] of [
    [bob, yifan, true, 1], [cem, yifan, true, 2], [dot, yifan, true, 3], [dot, zoe, true, 1], [cem, yifan, false, 2],
  ] as const) {
    const message = liked ? 'Mentor liked successfully' : 'Mentor unliked successfully'
    t.strictSame(await someone.does(200, 'POST', `/mentors/${mentor}/like`), { message, liked, likeCount })
  }
  t.strictSame((await anyone.does(200, 'GET', '/mentors')).mentors.map(({ name, likeCount }: any) => [name, likeCount]),
    [['Yifan', 2], ['Zoe', 1]])
  t.strictSame((await dot.does(200, 'GET', '/mentors/liked')).likedMentors.map(({ id }: any) => id).sort(),
    [yifan, zoe].sort())
  t.strictSame(await cem.does(200, 'GET', '/mentors/liked'), { likedMentors: [] })

  // A former student gives a testimonial.
  const { testimonial } = await admin.does(201, 'POST', '/testimonials', {
    name: 'Eve', batchYear: 2019, content: 'I still play.',
  })
  t.strictSame(await anyone.does(200, 'GET', '/testimonials'), { items: [testimonial], page: 1, limit: 12, total: 1 })

  // The lists and counts agree.
  const analyse = async () => {
    const { recentRegistrations, roleCounts, ...totals } = (await admin.does(200, 'GET', '/users/analytics')).analytics
    return {
      ...totals,
      roles: Object.fromEntries(roleCounts.map(({ role, _count }: any) => [role, _count.role])),
      registrations: recentRegistrations.map(({ user, event }: any) => `${user.firstName}: ${event.title}`),
    }
  }
  const analytics = await analyse()
  t.strictSame({ ...analytics, registrations: [...analytics.registrations].sort() }, {
    totalUsers: 6,
    totalClubs: 2,
    totalEvents: 3,
    totalBlogs: 1,
    totalMentors: 2,
    roles: { ADMIN: 1, CLUB_HEAD: 2, STUDENT: 3 },
    registrations: ['Bob: Chess night', 'Bob: Race', 'Cem: Chess night', 'Dot: Chess night'],
  })
  const { users } = await admin.does(200, 'GET', '/users')
  t.strictSame(Object.fromEntries(users.map((user: any) => [user.email, [user.club, user._count]])), {
    'admin@example.org': [null, { eventRegistrations: 0, blogs: 0 }],
    'ada@example.org': [{ name: 'Chess' }, { eventRegistrations: 0, blogs: 0 }],
    'grace@example.org': [{ name: 'Robots' }, { eventRegistrations: 0, blogs: 0 }],
    'bob@example.org': [{ name: 'Chess' }, { eventRegistrations: 2, blogs: 1 }],
    'cem@example.org': [{ name: 'Chess' }, { eventRegistrations: 1, blogs: 0 }],
    'dot@example.org': [null, { eventRegistrations: 1, blogs: 0 }],
  })

  // The term ends: referencing rows are deleted first.
  await admin.isRefused(500, 'Error deleting user', 'DELETE', `/users/${dot.id}`)
  await adaAsHead.does(200, 'DELETE', `/events/${night.id}`)
  await graceAsHead.does(200, 'DELETE', `/events/${race.id}`)
  await admin.does(200, 'DELETE', `/events/${open.id}`)
  t.strictSame(await anyone.does(200, 'GET', '/events'), {
    events: [], pagination: { page: 1, pages: 0, total: 0, limit: 12 },
  })
  t.strictSame(await bob.does(200, 'GET', '/events/registered'), { registrations: [] })

  await admin.isRefused(500, 'Error deleting user', 'DELETE', `/users/${bob.id}`)
  await admin.does(200, 'POST', `/blogs/${blog.id}/archive`)
  await admin.isRefused(500, 'Error deleting user', 'DELETE', `/users/${bob.id}`)
  await admin.does(200, 'DELETE', `/blogs/${blog.id}`)
  for (const { id } of [ada, grace, bob, cem, dot]) await admin.does(200, 'DELETE', `/users/${id}`)
  await bob.isRefused(401, 'Unauthorized', 'GET', '/auth/me')
  await anyone.isRefused(401, 'Invalid credentials', 'POST', '/auth/login', { email: bob.email, password: PASSWORD })
  // The likes are gone with their users; the clubs keep the ids of their heads.
  t.strictSame((await anyone.does(200, 'GET', '/mentors')).mentors.map(({ likeCount }: any) => likeCount), [0, 0])
  t.strictSame(
    (await anyone.does(200, 'GET', '/clubs')).clubs.map(({ clubHeadId, members, events }: any) =>
      ({ clubHeadId, members, events })).sort((a: any, b: any) => a.clubHeadId < b.clubHeadId ? -1 : 1),
    [ada.id, grace.id].sort().map(clubHeadId => ({ clubHeadId, members: [], events: [] })))

  for (const mentor of [yifan, zoe]) await admin.does(200, 'DELETE', `/mentors/${mentor}`)
  t.equal(await admin.does(204, 'DELETE', `/testimonials/${testimonial.id}`), undefined)
  t.strictSame(await analyse(), {
    totalUsers: 1,
    totalClubs: 2,
    totalEvents: 0,
    totalBlogs: 0,
    totalMentors: 0,
    roles: { ADMIN: 1 },
    registrations: [],
  })
})
