// Who may do what in clubs, after random operations on two instances, and in races.
import type { FastifyInstance } from 'fastify'
import fc from 'fast-check'

import type { Role } from '#lib/values/roles.js'
import { bearer, build, createDatabase, inject, insert, type Person, person } from '../helper.ts'
import t from '../suite.ts'

const DATABASE_URL = await createDatabase()
const instances = [await build(t, { DATABASE_URL }), await build(t, { DATABASE_URL })] as const
const [app] = instances
const { sql } = app

interface User { id: string, role: Role, club: string | null }

/** The rows that decide about rights. */
async function readRows (people: { id: string }[]) {
  const users = await sql<User[]>`
    SELECT id, role, club_id AS club FROM users WHERE id IN ${sql(people.map(({ id }) => id))}
  `
  const heads = await sql<{ id: string, head: string | null }[]>`SELECT id, club_head_id AS head FROM clubs`
  return {
    users: new Map(users.map(user => [user.id, user])),
    heads: new Map(heads.map(({ id, head }) => [id, head])),
  }
}

type Rows = Awaited<ReturnType<typeof readRows>>

const organizes = (user: User | undefined, club: string) => user?.club === club && user.role !== 'STUDENT'

const manages = (user: User, club: string) => user.role === 'ADMIN' || organizes(user, club)

function leads ({ users, heads }: Rows, user: User, club: string) {
  if (user.role === 'ADMIN') return true
  const head = heads.get(club) ?? ''
  return organizes(user, club) && (head === user.id || !organizes(users.get(head), club))
}

const [who, which, where] = [fc.nat(4), fc.nat(2), fc.nat(1)]
const role = fc.constantFrom<Role>('STUDENT', 'CLUB_HEAD', 'ADMIN')
const decision = fc.constantFrom(
  { state: 'member' }, { state: 'refused' }, { office: null }, { office: 'deputy' }, { office: 'head' }
)

const accept = fc.nat(4).map(n => n > 0)

const step = fc.record({
  where,
  which,
  act: fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('join' as const), who }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('leave' as const), who }) },
    // Most decisions come from an admin, so that offers exist.
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('decide' as const), by: who, who, decision }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('decide' as const), by: fc.constant(5), who, decision }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('answer' as const), who, accept }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('role' as const), who, role }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('card' as const), who, isNone: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('renew' as const), who }) }
  ),
})

t.test('Every token ever issued has the rights that the rows give, after each response, on each instance', async t => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 25 }), async steps => {
    const clubs = await Promise.all([1, 2, 3].map(() => insert(app, 'clubs')))
    await sql`INSERT INTO club_details SELECT id, 'open' FROM clubs WHERE id IN ${sql(clubs.slice(1))}`
    const events = await Promise.all(clubs.map(club =>
      insert(app, 'events', { club_id: club, date: new Date('2030-01-01') })))
    const people: Person[] = []
    for (const club of clubs.slice(0, 2)) people.push(await person(app, 'CLUB_HEAD', { club_id: club }))
    await sql`UPDATE clubs SET club_head_id = ${people[0]!.id} WHERE id = ${clubs[0]!}`
    for (const fields of [{ club_id: clubs[0] }, {}, {}]) people.push(await person(app, 'STUDENT', fields))
    people.push(await person(app, 'ADMIN'))
    const admin = people[5]!
    // By the claims, because tokens with the same claims have the same rights.
    const tokens = new Map(people.map(({ id, role, token }) => [`${id} ${role}`, { id, role, token }]))
    const latest = people.map(({ token }) => token)

    for (const { where, which, act } of steps) {
      const [here, there] = [instances[where], instances[1 - where]] as FastifyInstance[]
      const club = clubs[which]!
      const before = await readRows(people)
      const one = people[act.who]!
      const user = before.users.get(one.id)!
      const send = (by: number, method: 'PUT' | 'POST' | 'DELETE', url: string, body?: object) =>
        inject(here!, method, url, body, bearer(latest[by]!))
      const isHere = user.club === club
      const left = { ...user, club: null, role: user.role === 'ADMIN' ? user.role : 'STUDENT' }
      let expected: unknown = user
      let response
      switch (act.kind) {
        case 'join':
          response = await send(act.who, 'PUT', `/me/clubs/${club}`, {})
          break
        case 'leave':
          response = await send(act.who, 'DELETE', `/me/clubs/${club}`)
          if (response.statusCode === 200 && isHere) expected = left
          break
        case 'decide': {
          const actor = before.users.get(people[act.by]!.id)!
          response = await send(act.by, 'PUT', `/club-pages/${club}/members/${one.id}`, act.decision)
          if (response.statusCode !== 200) break
          t.ok(manages(actor, club), 'only organizers decide')
          const isOffice = 'office' in act.decision
          const isLeaving = isOffice ? act.decision.office === null : act.decision.state === 'refused'
          const isResigning = isOffice && isLeaving && actor === user
          if (isOffice || (isLeaving && organizes(user, club))) {
            t.ok(leads(before, actor, club) || isResigning, 'only leaders decide about offices')
          }
          if (isLeaving && isHere && (!isOffice || organizes(user, club))) expected = left
          break
        }
        case 'answer': {
          response = await send(act.who, 'PUT', `/me/clubs/${club}/office`, { accept: act.accept })
          if (response.statusCode !== 200) break
          if (act.accept) expected = { ...user, club, role: user.role === 'ADMIN' ? 'ADMIN' : 'CLUB_HEAD' }
          latest[act.who] = response.json().token
          break
        }
        case 'role':
          response = await send(5, 'PUT', `/users/${one.id}/role`, { newRole: act.role })
          expected = { ...user, role: act.role }
          break
        case 'card':
          response = await send(5, 'PUT', `/users/${one.id}`, { clubId: act.isNone ? null : club })
          expected = { ...user, club: act.isNone ? null : club }
          break
        case 'renew':
          response = await send(act.who, 'POST', '/me/token')
          latest[act.who] = response.json().token
      }
      t.ok([200, 403, 404, 409].includes(response.statusCode), `${act.kind}: ${response.statusCode}`)
      const now = app.verifyToken(latest[act.who]!)!
      tokens.set(`${now.id} ${now.role}`, { id: now.id, role: now.role, token: latest[act.who]! })

      const after = await readRows(people)
      t.strictSame(after.users.get(one.id), expected, `${act.kind} changes the person as it says`)
      for (const other of people) {
        if (other !== one) t.strictSame(after.users.get(other.id), before.users.get(other.id), 'and nobody else')
      }
      const { count: lost } = await sql`
        SELECT FROM users WHERE club_id IS NOT NULL AND NOT EXISTS (
          SELECT FROM club_members WHERE user_id = users.id AND club_id = users.club_id AND state = 'member'
        )
      `
      t.equal(lost, 0, 'the club on a card has its member')
      for (const { id, role, token } of tokens.values()) {
        const rows = await Promise.all(events.map(async (event, n) => {
          const may = role === 'ADMIN' || (role === 'CLUB_HEAD' && after.users.get(id)!.club === clubs[n])
          const url = n % 2 ? `/events/${event}` : `/agenda/${event}`
          const { statusCode } = await inject(there!, 'PUT', url, { title: 'A new title' }, bearer(token))
          return [statusCode, role === 'STUDENT' || !may ? 403 : 200]
        }))
        for (const [status, right] of rows) t.equal(status, right, `${role} after ${act.kind}`)
      }
    }
    await sql`DELETE FROM users WHERE id = ${admin.id}`
  }), { numRuns: 3, endOnFailure: true })
})

/** Accepting to be the head, while something else happens. */
const RACES: Record<string, (world: Awaited<ReturnType<typeof offered>>) => Promise<unknown>> = {
  'a withdrawal': ({ admin, club, next }) =>
    admin.inject('PUT', `/club-pages/${club}/members/${next.id}`, { office: null }),
  'a removal': ({ admin, club, next }) =>
    admin.inject('PUT', `/club-pages/${club}/members/${next.id}`, { state: 'refused' }),
  'an offer to somebody else': ({ head, club, other }) =>
    head.inject('PUT', `/club-pages/${club}/members/${other.id}`, { office: 'head' }),
  'the end of the head': ({ head, club }) => head.inject('DELETE', `/me/clubs/${club}`),
  'the erasure of the head': ({ admin, head }) => admin.inject('DELETE', `/account/${head.id}`),
  'the erasure of the next head': ({ admin, next }) => admin.inject('DELETE', `/account/${next.id}`),
  'a new role of the head': ({ admin, head }) => admin.inject('PUT', `/users/${head.id}/role`, { newRole: 'STUDENT' }),
  'a different club of the head': ({ admin, head }) => admin.inject('PUT', `/users/${head.id}`, { clubId: null }),
  'the same answer': ({ club, next }) => next.inject('PUT', `/me/clubs/${club}/office`, { accept: true }),
  'a leave': ({ club, next }) => next.inject('DELETE', `/me/clubs/${club}`),
}

/** A club whose head offers the headship to a member. */
async function offered () {
  const club = await insert(app, 'clubs')
  const head = await person(app, 'CLUB_HEAD', { club_id: club })
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${club}`
  const next = await person(app, 'STUDENT', { club_id: club })
  const other = await person(app, 'STUDENT', { club_id: club })
  await head.inject('PUT', `/club-pages/${club}/members/${next.id}`, { office: 'head' })
  return { club, head, next, other, admin: await person(app, 'ADMIN') }
}

for (const [what, happen] of Object.entries(RACES)) {
  t.test(`The acceptance of headship next to ${what} is before or after it`, async t => {
    for (let n = 0; n < 8; n++) {
      const world = await offered()
      const { club, next } = world
      const accept = () => inject(instances[1], 'PUT', `/me/clubs/${club}/office`, { accept: true }, bearer(next.token))
      const both = n % 2 ? [accept(), happen(world)] : [happen(world), accept()]
      const statuses = (await Promise.all(both)).map(response => (response as { statusCode: number }).statusCode)
      for (const status of statuses) t.ok([200, 401, 403, 404, 409].includes(status), `${status}`)
      const [state] = await sql`
        SELECT
          (SELECT count(*)::int FROM users WHERE club_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM club_members WHERE user_id = users.id AND club_id = users.club_id AND state = 'member'
          )) AS lost,
          (SELECT count(*)::int FROM club_members WHERE club_id = ${club} AND offered = 'head') > 1 AS twice,
          (SELECT count(*)::int FROM clubs WHERE id = ${club} AND club_head_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM users WHERE id = club_head_id
          )) AS unknown
      `
      t.strictSame(state, { lost: 0, twice: false, unknown: 0 })
    }
  })
}

t.test('Joining next to a close fits the club of a moment', async t => {
  const club = await insert(app, 'clubs')
  const admin = await person(app, 'ADMIN')
  const people = await Promise.all(Array.from({ length: 20 }, () => person(app)))
  const set = (joining: string) => admin.inject('PUT', `/club-pages/${club}`, { joining })
  for (let n = 0; n < 10; n++) {
    await sql`DELETE FROM club_members WHERE club_id = ${club}`
    t.equal((await set('open')).statusCode, 200)
    const [closed, ...joins] = await Promise.all([
      set('closed'), ...people.map(({ token }, n) =>
        inject(instances[n % 2]!, 'PUT', `/me/clubs/${club}`, {}, bearer(token))),
    ])
    t.equal(closed.statusCode, 200)
    for (const { statusCode } of joins) t.ok([200, 409].includes(statusCode), `${statusCode}`)
    const { count } = await sql`SELECT FROM club_members WHERE club_id = ${club} AND state = 'member'`
    t.equal(count, joins.filter(({ statusCode }) => statusCode === 200).length)
    t.equal((await people[0]!.inject('PUT', `/me/clubs/${club}`, {})).statusCode,
      joins[0]!.statusCode === 200 ? 200 : 409, 'after the close, nobody new joins')
  }
})

t.test('Joining twice at once makes one membership', async t => {
  const club = await insert(app, 'clubs')
  const ada = await person(app)
  const responses = await Promise.all(instances.map(instance =>
    inject(instance, 'PUT', `/me/clubs/${club}`, {}, bearer(ada.token))))
  t.strictSame(responses.map(({ statusCode }) => statusCode), [200, 200])
  const { count } = await sql`SELECT FROM club_members WHERE club_id = ${club}`
  t.equal(count, 1)
})
