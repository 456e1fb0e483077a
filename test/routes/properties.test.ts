// Random sequences of operations, compared with models in memory. A failure prints its seed and the shortest sequence
// that reproduces it.
import { randomUUID } from 'node:crypto'

import fc, { type Arbitrary } from 'fast-check'

import { build, inject, person } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const app = await build(t)

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'

/** Runs ten sequences of up to thirty steps. `start` resets the state, and returns a function for one step. */
async function holds<Step> (t: Test, step: Arbitrary<Step>, start: () => Promise<(step: Step) => Promise<void>>) {
  const sequences = fc.array(step, { minLength: 1, maxLength: 30, size: 'max' })
  const { failed, numRuns, seed, counterexample, errorInstance } = await fc.check(
    fc.asyncProperty(sequences, async steps => {
      const take = await start()
      for (const each of steps) await take(each)
    }),
    { numRuns: 10 })
  t.notOk(failed, `${numRuns} sequences agree with the model`, { seed, counterexample, found: errorInstance })
}

/** Throws unless both are deeply equal, in any order of keys. */
function agree (actual: unknown, expected: unknown, about: string) {
  const [a, b] = [actual, expected].map(value => JSON.stringify(sorted(value)))
  if (a !== b) throw new Error(`${about}\n  received ${a}\n  expected ${b}`)
}

/** Sorts the keys of all objects. */
function sorted (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => [k, sorted(v)]))
}

const pick = <T>(from: readonly T[], index: number): T | undefined => from[index % (from.length || 1)]
const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1

/** The body of a GET; `undefined` unless the status is 200. */
async function read (who: Pick<typeof reader, 'inject'>, url: string) {
  const response = await who.inject('GET', url)
  return response.statusCode === 200 ? response.json() : undefined
}

type Read = [who: Pick<typeof reader, 'inject'>, url: string, expected: unknown, as?: (body: any) => unknown]

/** Sends all requests at once, and compares their responses. */
function readAll (reads: Read[]) {
  return Promise.all(reads.map(async ([who, url, expected, as = body => body]) =>
    agree(as(await read(who, url)), expected, `GET ${url}`)))
}

const admin = await person(app, 'ADMIN', { first_name: 'Admin', last_name: 'One' })
const reader = await person(app)
const anyone: typeof reader = { ...reader, inject: (method, url, payload) => inject(app, method, url, payload) }
const index = fc.nat(11)

t.test('blogs', async t => {
  const writers = [
    await person(app, 'STUDENT', { first_name: 'Stu', avatar: 'https://img.example/a.png' }),
    await person(app, 'CLUB_HEAD', { first_name: 'Head' }),
    admin,
  ]
  const profiles = new Map((await app.sql`
    SELECT id, first_name AS "firstName", last_name AS "lastName", avatar FROM users
  `).map(({ id, ...profile }) => [id as string, profile]))

  interface Blog {
    id: string
    title: string
    content: string
    imageUrl: string | null
    status: string
    authorId: string
    createdAt: string
    updatedAt: string
  }
  const title = fc.constantFrom('abc', 'A title', 'Ünïcödé 😀', 'ab', '')
  const content = fc.constantFrom('x'.repeat(20), 'long enough, surely, for a blog', '<b>'.repeat(20), 'too short')
  const imageUrl = fc.constantFrom('https://img.example/1.png', 'data:,x', 'not a url')
  const status = fc.constantFrom('DRAFT', 'PUBLISHED', 'ARCHIVED', 'draft')
  const fields = fc.record({ title, content, imageUrl, status }, { requiredKeys: [] })
  const whole = fc.record({ title, content, imageUrl, status }, { requiredKeys: ['title', 'content'] })
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ op: fc.constant('submit' as const), who: index, fields: whole }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('create' as const), fields: whole }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('update' as const), blog: index, fields }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constantFrom('approve' as const, 'archive' as const), blog: index }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('delete' as const), blog: index }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('approve' as const), blog: fc.constant(-1) }) })

  await holds(t, step, async () => {
    await app.sql`DELETE FROM blogs`
    let blogs: Blog[] = []

    /** The blog with these changes; `undefined` when a field is invalid. */
    const valid = ({ title = 'abc', content = 'x'.repeat(20), imageUrl = 'a:', status = 'DRAFT' }: Partial<Blog>) =>
      title.length >= 3 && content.length >= 20 && URL.canParse(imageUrl!) && status !== 'draft'
    /** Compares the blog in a response, apart from generated fields, and stores it in the model. */
    const learn = ({ author, ...received }: Blog & { author?: unknown }, expected: Partial<Blog>) => {
      agree(received, { ...received, ...expected }, 'the blog')
      blogs = [...blogs.filter(({ id }) => id !== received.id), received]
      agree(Object.keys(received).length, 8, 'the fields of the blog')
    }

    return async step => {
      const known = [...blogs].sort(byId)
      const blog = 'blog' in step && step.blog >= 0 ? pick(known, step.blog) : undefined
      const path = `/blogs/${blog?.id ?? UNKNOWN}`

      if (step.op === 'submit' || step.op === 'create') {
        const who = step.op === 'submit' ? pick(writers, step.who)! : admin
        const { status, ...rest } = step.fields
        const response = await who.inject('POST', step.op === 'submit' ? '/blogs/submit' : '/blogs', step.fields)
        // The status in a submission is ignored.
        const ok = valid(step.op === 'submit' ? rest : step.fields)
        agree(response.statusCode, ok ? 201 : 400, step.op)
        const given = step.op === 'create' && status ? status : 'DRAFT'
        if (ok) learn(response.json().blog, { imageUrl: null, ...rest, status: given, authorId: who.id })
      } else if (step.op === 'update') {
        const response = await admin.inject('PUT', path, step.fields)
        agree(response.statusCode, !valid(step.fields) ? 400 : blog ? 200 : 500, step.op)
        if (response.statusCode === 200) {
          const { updatedAt: _, ...rest } = blog!
          learn(response.json().blog, { ...rest, ...step.fields })
        }
      } else if (step.op === 'delete') {
        agree((await admin.inject('DELETE', path)).statusCode, blog ? 200 : 500, step.op)
        blogs = blogs.filter(({ id }) => id !== blog?.id)
      } else {
        const response = await admin.inject('POST', `${path}/${step.op}`)
        agree(response.statusCode, blog ? 200 : 500, step.op)
        if (blog) {
          const { updatedAt: _, ...rest } = blog
          learn(response.json().blog, { ...rest, status: step.op === 'approve' ? 'PUBLISHED' : 'ARCHIVED' })
        }
      }

      blogs.sort((a, b) => a.createdAt === b.createdAt ? byId(a, b) : a.createdAt > b.createdAt ? -1 : 1)
      const withAuthor = (blog: Blog) => ({ ...blog, author: profiles.get(blog.authorId) })
      const withName = (blog: Blog) => {
        const { firstName, lastName } = profiles.get(blog.authorId)!
        return { ...blog, author: { firstName, lastName } }
      }
      const now = blogs.find(({ id }) => id === blog?.id)
      const mayRead = (who: typeof reader) => now?.status === 'PUBLISHED' ||
        (who !== anyone && (who.role === 'ADMIN' || who.id === now?.authorId))
      await readAll([
        [anyone, '/blogs', { blogs: blogs.filter(({ status }) => status === 'PUBLISHED').map(withAuthor) }],
        [admin, '/blogs/admin', { blogs: blogs.map(withName) }],
        ...writers.map((who): Read =>
          [who, '/blogs/me', { blogs: blogs.filter(({ authorId }) => authorId === who.id) }]),
        ...[anyone, reader, ...writers].map((who): Read =>
          [who, path, now && mayRead(who) ? { blog: withAuthor(now) } : undefined]),
      ])
    }
  })
})

t.test('likes', async t => {
  const [club] = await app.sql<{ id: string, name: string, imageUrl: string | null }[]>`
    INSERT INTO clubs (name, description) VALUES ('Likes', 'A club') RETURNING id, name, image_url AS "imageUrl"
  `
  const { id: clubId, ...clubOf } = club!
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ op: fc.constant('like' as const), who: index, mentor: index }) },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constant('likes' as const), mentor: index, who: fc.array(index, { minLength: 2, maxLength: 8 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ op: fc.constant('arrive' as const), name: fc.constantFrom('Ada', 'Bea', 'Zoe') }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('leave' as const), mentor: index }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('forget' as const), who: index }) })

  await holds(t, step, async () => {
    await app.sql`DELETE FROM mentors`
    let mentors: { id: string, name: string }[] = []
    const people = await Promise.all([person(app), person(app, 'CLUB_HEAD'), person(app, 'ADMIN')])
    const likes = new Map(people.map(({ id }) => [id, new Set<string>()]))
    const count = (mentorId: string) => [...likes.values()].filter(liked => liked.has(mentorId)).length
    const toggle = (userId: string, mentorId: string) => {
      const liked = likes.get(userId)!
      if (!liked.delete(mentorId)) liked.add(mentorId)
      return liked.has(mentorId)
    }

    return async step => {
      const mentor = 'mentor' in step ? pick([...mentors].sort(byId), step.mentor) : undefined
      if (step.op === 'like') {
        const who = pick(people, step.who)!
        const response = await who.inject('POST', `/mentors/${mentor?.id ?? UNKNOWN}/like`)
        if (!mentor) {
          agree(response.json(), { message: 'Mentor not found' }, 'like')
        } else {
          const liked = toggle(who.id, mentor.id)
          const message = liked ? 'Mentor liked successfully' : 'Mentor unliked successfully'
          agree(response.json(), { message, liked, likeCount: count(mentor.id) }, 'like')
        }
      } else if (step.op === 'likes' && mentor) {
        const all = step.who.map(each => pick(people, each)!)
        const responses = await Promise.all(all.map(who => who.inject('POST', `/mentors/${mentor.id}/like`)))
        agree(responses.map(({ statusCode }) => statusCode), all.map(() => 200), 'concurrent likes')
        for (const { id } of all) toggle(id, mentor.id)
      } else if (step.op === 'arrive') {
        const fields = { name: step.name, expertise: 'Go', clubId, imageUrl: 'https://img.example/m.png' }
        const response = await admin.inject('POST', '/mentors', fields)
        agree(response.statusCode, 201, 'arrive')
        mentors = [...mentors, { id: response.json().mentor.id, name: step.name }]
      } else if (step.op === 'leave') {
        const response = await admin.inject('DELETE', `/mentors/${mentor?.id ?? UNKNOWN}`)
        agree(response.statusCode, mentor ? 200 : 500, 'leave')
        mentors = mentors.filter(({ id }) => id !== mentor?.id)
        for (const liked of likes.values()) liked.delete(mentor?.id ?? '')
      } else if (step.op === 'forget') {
        // Replaces the account, whose likes go with it.
        const at = step.who % people.length
        agree((await admin.inject('DELETE', `/users/${people[at]!.id}`)).statusCode, 200, 'forget')
        likes.delete(people[at]!.id)
        people[at] = await person(app)
        likes.set(people[at].id, new Set())
      }

      mentors.sort((a, b) => a.name === b.name ? byId(a, b) : a.name < b.name ? -1 : 1)
      const profiles = mentors.map(({ id, name }) => ({
        id,
        name,
        expertise: 'Go',
        imageUrl: 'https://img.example/m.png',
        networkUrl: '',
        clubId,
        club: clubOf,
        likeCount: count(id),
      }))
      await readAll([
        [anyone, '/mentors', { mentors: profiles }],
        ...people.map((who): Read => {
          const liked = profiles.filter(({ id }) => likes.get(who.id)!.has(id)).sort(byId)
          return [who, '/mentors/liked', liked, ({ likedMentors }) => likedMentors.sort(byId)]
        }),
      ])
    }
  })
})

t.test('registrations', async t => {
  const clubs = await app.sql<{ id: string, name: string, imageUrl: string | null }[]>`
    INSERT INTO clubs (name, description, image_url) VALUES ('One', 'A club', NULL), ('Two', 'A club', 'data:,x')
    RETURNING id, name, image_url AS "imageUrl"
  `
  const heads = await Promise.all(clubs.map(({ id }) => person(app, 'CLUB_HEAD', { club_id: id })))
  const people = [await person(app, 'STUDENT', { first_name: 'Stu', last_name: 'Dent' }), heads[0]!, admin]
  const names = new Map((await app.sql`SELECT id, first_name, last_name FROM users`)
    .map(({ id, first_name: first, last_name: last }) => [id as string, `${first} ${last}`]))
  const date = fc.constantFrom('2030-01-01T00:00:00.000Z', '2030-01-02T00:00:00.000Z', '2030-01-03T12:00:00.000Z')
  const club = fc.nat(1)
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.record({ op: fc.constant('register' as const), who: index, event: index }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('announce' as const), club, date }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('move' as const), by: index, event: index, club, date }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('cancel' as const), by: index, event: index }) })
  const announcement = { title: 'Meeting', description: 'Everybody comes', imageUrl: 'https://img.example/e.png' }

  interface Event { id: string, date: string, clubId: string, club: unknown }
  interface Registration { id: string, userId: string, eventId: string, registeredAt: string }

  await holds(t, step, async () => {
    await app.sql`DELETE FROM event_registrations`
    await app.sql`DELETE FROM events`
    let events: Event[] = []
    let registrations: Registration[] = []
    const clubOf = (id: string) => {
      const { name, imageUrl } = clubs.find(club => club.id === id)!
      return { name, imageUrl }
    }
    const byDate = (a: Event, b: Event) => a.date === b.date ? byId(a, b) : a.date > b.date ? -1 : 1

    return async step => {
      const event = 'event' in step ? pick([...events].sort(byId), step.event) : undefined
      const path = `/events/${event?.id ?? UNKNOWN}`
      const actor = 'by' in step ? pick([...heads, admin], step.by)! : admin
      const allowed = actor === admin || clubs[heads.indexOf(actor)]?.id === event?.clubId

      if (step.op === 'register') {
        const who = pick(people, step.who)!
        const response = await who.inject('POST', `${path}/register`)
        const already = registrations.some(({ userId, eventId }) => userId === who.id && eventId === event?.id)
        agree(response.statusCode, !event ? 500 : already ? 400 : 201, 'register')
        if (response.statusCode === 201) {
          const { event: _, user: __, ...registration } = response.json().registration
          agree(registration, { ...registration, userId: who.id, eventId: event!.id }, 'the registration')
          registrations = [...registrations, registration]
        }
      } else if (step.op === 'announce') {
        const { date: data, club } = step
        const response = await heads[club]!.inject('POST', '/events', { ...announcement, data })
        agree(response.statusCode, 201, 'announce')
        const { event } = response.json()
        const clubId = clubs[club]!.id
        agree(event, { ...event, ...announcement, date: data, clubId, club: clubOf(clubId) }, 'the event')
        events = [...events, event]
      } else if (step.op === 'move') {
        const clubId = clubs[step.club]!.id
        const response = await actor.inject('PUT', path, { data: step.date, clubId })
        agree(response.statusCode, !event ? 404 : allowed ? 200 : 403, 'move')
        if (response.statusCode === 200) {
          const moved = { ...event!, date: step.date, clubId, club: clubOf(clubId) }
          agree(response.json(), { event: moved, message: 'Event updated successfully' }, 'the moved event')
          events = events.map(each => each === event ? moved : each)
        }
      } else {
        const response = await actor.inject('DELETE', path)
        agree(response.statusCode, !event ? 404 : allowed ? 200 : 403, 'cancel')
        if (response.statusCode === 200) {
          events = events.filter(each => each !== event)
          registrations = registrations.filter(({ eventId }) => eventId !== event!.id)
        }
      }

      events.sort(byDate)
      const of = (event: Event) => registrations.filter(({ eventId }) => eventId === event.id)
      const mine = (clubId: string) => events.filter(event => event.clubId === clubId).map(event => (
        { ...event, registrations: of(event).map(({ id }) => ({ id })).sort(byId) }))
      const registered = (userId: string) => registrations.filter(registration => registration.userId === userId)
        .map(registration => ({ ...registration, event: events.find(({ id }) => id === registration.eventId)! }))
        .sort((a, b) => a.event.date === b.event.date ? byId(a, b) : a.event.date > b.event.date ? -1 : 1)
      const now = events.find(({ id }) => id === event?.id)
      await readAll([
        [anyone, '/events?limit=100', {
          events: events.map(event => ({ ...event, registrationCount: of(event).length })),
          pagination: { page: 1, pages: events.length > 0 ? 1 : 0, total: events.length, limit: 100 },
        }],
        ...heads.map((head, i): Read => [head, '/events/mine', mine(clubs[i]!.id), ({ events }) => {
          for (const event of events) event.registrations.sort(byId)
          return events
        }]),
        ...people.map((who): Read => [who, '/events/registered', { registrations: registered(who.id) }]),
        [admin, `${path}/registrations`, now && {
          event: { id: now.id, date: now.date, title: announcement.title },
          registrations: of(now)
            .sort((a, b) => a.registeredAt === b.registeredAt ? byId(a, b) : a.registeredAt > b.registeredAt ? -1 : 1)
            .map(({ id, userId, registeredAt }) => ({
              id, userId, registeredAt, name: names.get(userId), email: people.find(({ id }) => id === userId)!.email,
            })),
        }],
      ])
    }
  })
})

t.test('membership', async t => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ op: fc.constant('found' as const), name: fc.nat(5), head: fc.option(index, { freq: 8 }) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('update' as const),
        who: index,
        club: fc.oneof(index, index, fc.constantFrom('none' as const, 'unknown' as const, 'empty' as const)),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('assign' as const), who: fc.option(index, { freq: 8 }), club: fc.option(index, { freq: 8 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant('role' as const), who: index, role: fc.constantFrom('STUDENT', 'CLUB_HEAD', 'ADMIN'),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('delete' as const), who: index }) })

  interface User { id: string, email: string, role: string, clubId: string | null }
  interface Club { id: string, name: string, clubHeadId: string }

  await holds(t, step, async () => {
    await app.sql`UPDATE users SET club_id = NULL`
    for (const table of ['mentors', 'event_registrations', 'events', 'clubs']) {
      await app.sql`DELETE FROM ${app.sql(table)}`
    }
    const run = randomUUID()
    const people = await Promise.all([1, 2, 3, 4].map(() => person(app, 'STUDENT', { first_name: run })))
    let users: User[] = people.map(({ id, email, role }) => ({ id, email, role, clubId: null })).sort(byId)
    let clubs: Club[] = []
    const set = (user: User, fields: Partial<User>) => {
      users = users.map(each => each.id === user.id ? { ...each, ...fields } : each)
    }

    return async step => {
      const user = 'who' in step && step.who !== null ? pick(users, step.who) : undefined

      if (step.op === 'found') {
        const head = step.head === null ? undefined : pick(users, step.head)
        const fields = { name: `Club ${step.name}`, description: 'A club', clubHeadEmail: head?.email }
        const response = await admin.inject('POST', '/clubs', fields)
        const taken = clubs.some(({ name, clubHeadId }) => name === fields.name || clubHeadId === head?.id)
        agree(response.statusCode, !head ? 404 : taken ? 500 : 201, 'found')
        if (response.statusCode === 201) {
          const { club } = response.json()
          agree([club.name, club.clubHeadId], [fields.name, head!.id], 'the club')
          clubs = [...clubs, { id: club.id, name: club.name, clubHeadId: club.clubHeadId }].sort(byId)
          set(head!, { role: 'CLUB_HEAD', clubId: club.id })
        }
      } else if (step.op === 'update' || step.op === 'assign') {
        const club = typeof step.club === 'number' ? pick(clubs, step.club) : undefined
        const clubId = club?.id ?? (step.club === 'none' ? null : step.club === 'empty' ? '' : UNKNOWN)
        const path = `/users/${user?.id ?? UNKNOWN}${step.op === 'assign' ? '/club' : ''}`
        const response = await admin.inject('PUT', path, { clubId })
        const unknown = step.op === 'assign' ? 500 : 404
        agree(response.statusCode, !user ? unknown : club || clubId === null ? 200 : 500, step.op)
        if (response.statusCode === 200) {
          set(user!, { clubId })
          const { id, role } = user!
          const found = response.json().user
          agree([found.id, found.clubId, found.role, found.club], [id, clubId, role, club ? { name: club.name } : null],
            'the user')
        }
      } else if (step.op === 'role') {
        const response = await admin.inject('PUT', `/users/${user?.id ?? UNKNOWN}/role`, { newRole: step.role })
        agree(response.statusCode, user ? 200 : 500, 'role')
        if (user) set(user, { role: step.role })
      } else {
        agree((await admin.inject('DELETE', `/users/${user?.id ?? UNKNOWN}`)).statusCode, user ? 200 : 404, 'delete')
        users = users.filter(({ id }) => id !== user?.id)
      }

      const nameOf = (clubId: string | null) => clubs.find(({ id }) => id === clubId)?.name
      const only = ({ id, email, role }: User) => ({ id, email, role })
      await readAll([
        [anyone, '/clubs', clubs.map(club => ({
          ...club, members: users.filter(({ clubId }) => clubId === club.id).map(only), events: [],
        })), body => body.clubs.map(({ id, name, clubHeadId, members, events }: any) => (
          { id, name, clubHeadId, members: members.map(only).sort(byId), events })).sort(byId)],
        [admin, '/users', users.map(user => ({ ...user, club: user.clubId ? { name: nameOf(user.clubId) } : null })),
          body => body.users.filter(({ firstName }: any) => firstName === run)
            .map(({ clubId, club, ...user }: any) => ({ ...only(user), clubId, club })).sort(byId)],
        ...users.map(({ id, role, clubId }): Read => [
          people.find(person => person.id === id)!, '/auth/me', [id, role, clubId, nameOf(clubId)],
          ({ user }) => [user.id, user.role, user.club?.id ?? null, user.club?.name],
        ]),
      ])
    }
  })
})
