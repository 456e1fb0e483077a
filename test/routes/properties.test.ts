// Random sequences of operations, compared with models in memory. A failure prints its seed and the shortest sequence
// that reproduces it.
import { randomUUID } from 'node:crypto'

import fc, { type Arbitrary, type AsyncCommand, type WeightedArbitrary } from 'fast-check'

import { build, inject, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)

const UNKNOWN = '018f0000-0000-7000-8000-000000000000'

/** The state that the service must be in. */
interface Model {
  /** The requests that show it. */
  reads (): Read[]
}

/** The commands of one name. */
type Step<M extends Model> = (name: string) => WeightedArbitrary<AsyncCommand<M, typeof app>>

/**
 * A command for any of the given values. `send` compares the responses to its requests with the model, and changes the
 * model as they change the service. Afterwards all reads must agree with the model.
 */
function step<M extends Model, Given> (
  weight: number, given: { [K in keyof Given]: Arbitrary<Given[K]> },
  send: (model: M, given: Given) => Promise<void>, check: (model: M) => boolean = () => true
): Step<M> {
  return name => ({
    weight,
    arbitrary: fc.record(given).map(values => ({
      check,
      async run (model) {
        await send(model, values)
        await readAll(model.reads())
      },
      toString: () => `${name} ${JSON.stringify(values)}`,
    })),
  })
}

/** Runs ten sequences of up to thirty steps. `start` resets the service, and returns the model of that state. */
async function holds<M extends Model> (start: () => Promise<M>, steps: Record<string, Step<M>>) {
  const kinds = Object.entries(steps).map(([name, commands]) => commands(name))
  const sequences = fc.commands([fc.oneof(...kinds)], { maxCommands: 30, size: 'max' })
  const setup = async () => ({ model: await start(), real: app })
  await fc.assert(fc.asyncProperty(sequences, commands => fc.asyncModelRun(setup, commands)), { numRuns: 10 })
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

const pick = <T>(from: readonly T[], index: number | null): T | undefined => from[(index ?? NaN) % from.length]
const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1
const latestFirst = <T extends { id: string }>(time: (of: T) => string) => (a: T, b: T) =>
  time(a) === time(b) ? byId(a, b) : time(a) > time(b) ? -1 : 1

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
const indexOrNone = fc.option(index, { freq: 8 })

t.test('registrations', async () => {
  const clubs = await app.sql<{ id: string, name: string, imageUrl: string | null }[]>`
    INSERT INTO clubs (name, description, image_url) VALUES ('One', 'A club', NULL), ('Two', 'A club', 'data:,x')
    RETURNING id, name, image_url AS "imageUrl"
  `
  const heads = await Promise.all(clubs.map(({ id }) => person(app, 'CLUB_HEAD', { club_id: id })))
  const people = [await person(app, 'STUDENT', { first_name: 'Stu', last_name: 'Dent' }), heads[0]!, admin]
  const names = new Map((await app.sql`SELECT id, first_name, last_name FROM users`)
    .map(({ id, first_name: first, last_name: last }) => [id as string, `${first} ${last}`]))
  const announcement = { title: 'Meeting', description: 'Everybody comes', imageUrl: 'https://img.example/e.png' }
  /** The fields of an event that show its club. */
  const clubOf = (index: number) => {
    const { id: clubId, ...club } = clubs[index]!
    return { clubId, club }
  }

  interface Event { id: string, date: string, clubId: string, club: unknown }
  interface Registration { id: string, userId: string, eventId: string, registeredAt: string }

  class Events implements Model {
    events: Event[] = []
    registrations: Registration[] = []
    /** The event of the last step. */
    id = UNKNOWN

    choose (index: number) {
      const event = pick(this.events.toSorted(byId), index)
      this.id = event?.id ?? UNKNOWN
      return event
    }

    of (event: Event) {
      return this.registrations.filter(({ eventId }) => eventId === event.id)
    }

    reads (): Read[] {
      const events = this.events.toSorted(latestFirst(({ date }) => date))
      const mine = (clubId: string) => events.filter(event => event.clubId === clubId).map(event => (
        { ...event, registrations: this.of(event).map(({ id }) => ({ id })).sort(byId) }))
      const registered = (userId: string) => this.registrations.filter(registration => registration.userId === userId)
        .map(registration => ({ ...registration, event: events.find(({ id }) => id === registration.eventId)! }))
        .sort(latestFirst(({ event }) => event.date))
      const event = events.find(({ id }) => id === this.id)
      return [
        [anyone, '/events?limit=100', {
          events: events.map(event => ({ ...event, registrationCount: this.of(event).length })),
          pagination: { page: 1, pages: events.length > 0 ? 1 : 0, total: events.length, limit: 100 },
        }],
        ...heads.map((head, i): Read => [head, '/events/mine', mine(clubs[i]!.id), ({ events }) => {
          for (const event of events) event.registrations.sort(byId)
          return events
        }]),
        ...people.map((who): Read => [who, '/events/registered', { registrations: registered(who.id) }]),
        [admin, `/events/${this.id}/registrations`, event && {
          event: { id: event.id, date: event.date, title: announcement.title },
          registrations: this.of(event).sort(latestFirst(({ registeredAt }) => registeredAt))
            .map(({ id, userId, registeredAt }) => ({
              id, userId, registeredAt, name: names.get(userId), email: people.find(({ id }) => id === userId)!.email,
            })),
        }],
      ]
    }
  }

  const managers = [...heads, admin]
  /** The status of a change: heads may only change the events of their own club. */
  const statusFor = (actor: typeof reader, event: Event | undefined) =>
    !event ? 404 : actor === admin || clubs[heads.indexOf(actor)]?.id === event.clubId ? 200 : 403
  const date = fc.constantFrom('2030-01-01T00:00:00.000Z', '2030-01-02T00:00:00.000Z', '2030-01-03T12:00:00.000Z')
  const club = fc.nat(1)

  const start = async () => {
    await app.sql`DELETE FROM event_registrations`
    await app.sql`DELETE FROM events`
    return new Events()
  }

  await holds(start, {
    register: step(8, { who: index, event: index }, async (model, { who, event: at }) => {
      const student = pick(people, who)!
      const event = model.choose(at)
      const response = await student.inject('POST', `/events/${model.id}/register`)
      const already = event && model.of(event).some(({ userId }) => userId === student.id)
      agree(response.statusCode, !event ? 500 : already ? 400 : 201, 'register')
      if (response.statusCode !== 201) return
      const { event: _, user: __, ...registration } = response.json().registration
      agree(registration, { ...registration, userId: student.id, eventId: model.id }, 'the registration')
      model.registrations.push(registration)
    }),
    announce: step(4, { club, date }, async (model, { club, date }) => {
      const response = await heads[club]!.inject('POST', '/events', { ...announcement, data: date })
      agree(response.statusCode, 201, 'announce')
      const { event } = response.json()
      agree(event, { ...event, ...announcement, date, ...clubOf(club) }, 'the event')
      model.events.push(event)
      model.id = event.id
    }),
    move: step(2, { by: index, event: index, club, date }, async (model, { by, event: at, club, date }) => {
      const actor = pick(managers, by)!
      const event = model.choose(at)
      const response = await actor.inject('PUT', `/events/${model.id}`, { data: date, clubId: clubs[club]!.id })
      agree(response.statusCode, statusFor(actor, event), 'move')
      if (response.statusCode !== 200) return
      const moved = { ...event!, date, ...clubOf(club) }
      agree(response.json(), { event: moved, message: 'Event updated successfully' }, 'the moved event')
      model.events = model.events.map(each => each === event ? moved : each)
    }),
    cancel: step(1, { by: index, event: index }, async (model, { by, event: at }) => {
      const actor = pick(managers, by)!
      const event = model.choose(at)
      const response = await actor.inject('DELETE', `/events/${model.id}`)
      agree(response.statusCode, statusFor(actor, event), 'cancel')
      if (response.statusCode !== 200) return
      model.events = model.events.filter(each => each !== event)
      model.registrations = model.registrations.filter(({ eventId }) => eventId !== model.id)
    }),
  })
})

t.test('membership', async () => {
  interface User { id: string, email: string, role: string, clubId: string | null }
  interface Club { id: string, name: string, clubHeadId: string }

  class Members implements Model {
    users: User[]
    clubs: Club[] = []
    readonly people: typeof reader[]
    /** The first name of these users. */
    readonly name: string

    constructor (people: typeof reader[], name: string) {
      this.people = people
      this.name = name
      this.users = people.map(({ id, email, role }) => ({ id, email, role, clubId: null })).sort(byId)
    }

    set (user: User, fields: Partial<User>) {
      this.users = this.users.map(each => each === user ? { ...user, ...fields } : each)
    }

    reads (): Read[] {
      const { users, clubs, people } = this
      const nameOf = (clubId: string | null) => clubs.find(({ id }) => id === clubId)?.name
      const only = ({ id, email, role }: User) => ({ id, email, role })
      return [
        [anyone, '/clubs', clubs.map(club => ({
          ...club, members: users.filter(({ clubId }) => clubId === club.id).map(only), events: [],
        })), body => body.clubs.map(({ id, name, clubHeadId, members, events }: any) => (
          { id, name, clubHeadId, members: members.map(only).sort(byId), events })).sort(byId)],
        [admin, '/users', users.map(user => ({ ...user, club: user.clubId ? { name: nameOf(user.clubId) } : null })),
          body => body.users.filter(({ firstName }: any) => firstName === this.name)
            .map(({ clubId, club, ...user }: any) => ({ ...only(user), clubId, club })).sort(byId)],
        ...users.map(({ id, role, clubId }): Read => [
          people.find(person => person.id === id)!, '/auth/me', [id, role, clubId, nameOf(clubId)],
          ({ user }) => [user.id, user.role, user.club?.id ?? null, user.club?.name],
        ]),
      ]
    }
  }

  const start = async () => {
    await app.sql`UPDATE users SET club_id = NULL`
    for (const table of ['mentors', 'event_registrations', 'events', 'clubs']) {
      await app.sql`DELETE FROM ${app.sql(table)}`
    }
    const name = randomUUID()
    const people = await Promise.all([1, 2, 3, 4].map(() => person(app, 'STUDENT', { first_name: name })))
    return new Members(people, name)
  }
  const clubOrOther = fc.oneof(index, index, fc.constantFrom('none', 'empty', null))
  const role = fc.constantFrom('STUDENT', 'CLUB_HEAD', 'ADMIN')

  interface Assignment { who: number | null, club: number | string | null }

  /** Changes the club of a user, by one of two operations: `unknown` is the status for a user that does not exist. */
  async function assign (model: Members, { who, club: at }: Assignment, path: string, unknown: number) {
    const user = pick(model.users, who)
    const club = typeof at === 'string' ? undefined : pick(model.clubs, at)
    const clubId = club?.id ?? (at === 'none' ? null : at === 'empty' ? '' : UNKNOWN)
    const response = await admin.inject('PUT', `/users/${user?.id ?? UNKNOWN}${path}`, { clubId })
    agree(response.statusCode, !user ? unknown : club || clubId === null ? 200 : 500, `PUT /users/:id${path}`)
    if (response.statusCode !== 200) return
    const { id, role } = user!
    const found = response.json().user
    agree([found.id, found.clubId, found.role, found.club], [id, clubId, role, club ? { name: club.name } : null],
      'the user')
    model.set(user!, { clubId })
  }

  await holds(start, {
    found: step(4, { name: fc.nat(5), head: indexOrNone }, async (model, { name: number, head: at }) => {
      const head = pick(model.users, at)
      const fields = { name: `Club ${number}`, description: 'A club', clubHeadEmail: head?.email }
      const response = await admin.inject('POST', '/clubs', fields)
      const taken = model.clubs.some(({ name, clubHeadId }) => name === fields.name || clubHeadId === head?.id)
      agree(response.statusCode, !head ? 404 : taken ? 500 : 201, 'found')
      if (response.statusCode !== 201) return
      const { id, name, clubHeadId } = response.json().club
      agree([name, clubHeadId], [fields.name, head!.id], 'the club')
      model.clubs = [...model.clubs, { id, name, clubHeadId }].sort(byId)
      model.set(head!, { role: 'CLUB_HEAD', clubId: id })
    }),
    update: step(4, { who: index, club: clubOrOther }, (model, given) => assign(model, given, '', 404)),
    assign: step(4, { who: indexOrNone, club: indexOrNone }, (model, given) => assign(model, given, '/club', 500)),
    appoint: step(1, { who: index, newRole: role }, async (model, { who, newRole }) => {
      const user = pick(model.users, who)
      const response = await admin.inject('PUT', `/users/${user?.id ?? UNKNOWN}/role`, { newRole })
      agree(response.statusCode, user ? 200 : 500, 'role')
      if (user) model.set(user, { role: newRole })
    }),
    delete: step(1, { who: index }, async (model, { who }) => {
      const user = pick(model.users, who)
      agree((await admin.inject('DELETE', `/users/${user?.id ?? UNKNOWN}`)).statusCode, user ? 200 : 404, 'delete')
      model.users = model.users.filter(each => each !== user)
    }),
  })
})
