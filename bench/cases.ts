import { addEvents, type Fixture } from './fixture.ts'
import { get } from './http.ts'

/** The names of baselines and of the alternative in the tables. */
export const HTTP = 'node:http'
export const PGBENCH = 'pgbench'
export const UNTRACED = 'service without tracing'
export const WITHOUT_EMAILS = 'service without emails'
export const WITHOUT_LISTENERS = 'service without listeners'
export const WITHOUT_DRAW = 'service without a draw'
export const ARGON2 = 'argon2, 4 at once'
export const EXPRESS = 'Express + Prisma'

/** The requests of wrk: GET for a path, or the requests that wrk.lua makes of the arguments. */
export interface Load {
  path?: string
  headers?: Record<string, string>
  args?: string[]
}

/** An operation to measure. */
export interface Case {
  name: string
  /** Its baseline. */
  baseline?: typeof HTTP | typeof PGBENCH | typeof ARGON2
  /** Whether the alternative implements it. */
  alternative?: boolean
  /** The shares or multiples of other rates that the service must reach, with its defaults and with LOG_LEVEL=warn. */
  targets?: [of: string, defaults: number, warn: number][]
  /** Commits per second during the measurement, each a registration for a listed event. */
  commits?: number
  /** Requests per second; by default each connection sends the next request after a response. */
  rate?: number
  /** Prepares the requests for this URL, before each run. `check` returns a problem afterwards, if there is one. */
  prepare (fixture: Fixture, url: string): Promise<{
    load: Load
    check? (outcome: Outcome, connections: number): Promise<string | undefined>
  }>
}

/** The output of wrk. */
export interface Outcome {
  requests: number
  seconds: number
  bytes: number
  /** Milliseconds. */
  p50: number
  p99: number
  /** Responses with a status from 400, broken connections, and responses after the timeout of two minutes. */
  refused: number
  broken: number
  late: number
}

/** A GET request for one path. */
const reading = (path: string, more?: Partial<Case>): Case => ({
  name: `GET ${path}`,
  prepare: async () => ({ load: { path } }),
  ...more,
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Sends a request as each student, for one path after the other. */
async function asStudents ({ file, students }: Fixture, method: 'GET' | 'POST', paths: string[]) {
  return { load: { args: ['tokens', method, await file(paths), await file(students)] } }
}

/** docs/contribute/benchmark.md says where the rest of the share goes. */
export const EVENTS = reading('/events', { baseline: HTTP, alternative: true, targets: [[HTTP, 0.5, 0.55]] })

export const LISTS = [EVENTS, ...['/blogs', '/mentors', '/testimonials', '/clubs'].map(path => reading(path))]

export const BLOG = reading('/blogs/:id', { prepare: async ({ blog }) => ({ load: { path: `/blogs/${blog}` } }) })

/** A picture as pages of cards show it, from memory, and as large as it is stored, from the database. */
const PICTURES = ['?width=480', ''].map(query => reading(`/pictures/:id${query}`, {
  prepare: async ({ picture }) => ({ load: { path: `/pictures/${picture}${query}` } }),
}))

export const ME: Case = {
  name: 'GET /auth/me',
  alternative: true,
  targets: [[EXPRESS, 13, 15]],
  prepare: fixture => asStudents(fixture, 'GET', ['/auth/me']),
}

/** All students register for an event, then for the next one. `change` prepares the events. */
async function registering (fixture: Fixture, change: (ids: string[]) => Promise<unknown> = async () => {}) {
  const ids = await addEvents(fixture, 200)
  await change(ids)
  return {
    ...await asStudents(fixture, 'POST', ids.map(id => `/events/${id}/register`)),
    // Each response is a row. At the end, each connection may have one more whose response was not read.
    async check ({ requests }: Outcome, connections: number) {
      const [row] = await fixture.sql<[{ count: number }]>`
        SELECT count(*)::int FROM event_registrations WHERE event_id = ANY (${ids})
      `
      const surplus = row.count - requests
      if (surplus < 0 || surplus > connections) return `${requests} responses, ${row.count} registrations`
    },
  }
}

export const REGISTER: Case = {
  name: 'POST /events/:id/register',
  baseline: PGBENCH,
  alternative: true,
  targets: [[PGBENCH, 0.25, 0.25]],
  prepare: fixture => registering(fixture),
}

/** The same for events with 30 seats. */
export const REGISTER_IN_LINE: Case = {
  name: 'POST /events/:id/register, a draw waits',
  prepare: fixture => registering(fixture, ids => addSeats(fixture, ids)),
}

/** The same for events with 30 seats that will be drawn. */
export const REGISTER_FOR_DRAW: Case = {
  name: REGISTER_IN_LINE.name,
  prepare: fixture => registering(fixture, async ids => {
    await addSeats(fixture, ids)
    await fixture.sql`
      UPDATE event_details SET draw_at = '2099-12-31', draw_from = now(), draw_seed = repeat('0', 64)
      WHERE event_id = ANY (${ids})
    `
  }),
}

const addSeats = ({ sql }: Fixture, ids: string[]) =>
  sql`INSERT INTO event_details (event_id, capacity) SELECT unnest(${ids}::uuid[]), 30`

export const LIKE: Case = {
  name: 'POST /mentors/:id/like',
  async prepare (fixture) {
    const mentors = await fixture.sql<{ id: string }[]>`SELECT id FROM mentors`
    return asStudents(fixture, 'POST', mentors.map(({ id }) => `/mentors/${id}/like`))
  },
}

export const LOGIN: Case = {
  name: 'POST /auth/login',
  baseline: ARGON2,
  targets: [[ARGON2, 0.9, 0.9]],
  async prepare ({ sql, password, file }) {
    const users = await sql<{ email: string }[]>`SELECT email FROM users ORDER BY id LIMIT 64`
    const bodies = users.map(({ email }) => JSON.stringify({ email, password }))
    return { load: { path: '/auth/login', args: ['bodies', await file(bodies)] } }
  },
}

/** The same requests, 10,000 per second. */
const atFixedRate = ({ name, prepare }: Case): Case => ({ name: `${name}, 10,000/s`, rate: 10_000, prepare })

/** In the order of measurement. */
export const CASES: Case[] = [
  ...LISTS,
  reading('/events', { name: 'GET /events, 50 commits/s', commits: 50 }),
  reading('/events', {
    name: 'GET /events, If-None-Match',
    async prepare (_fixture, url) {
      const { headers: { etag } } = await get(`${url}/events`)
      return { load: { path: '/events', headers: { 'if-none-match': etag! } } }
    },
  }),
  reading('/events', {
    name: 'GET /events, br',
    prepare: async () => ({ load: { path: '/events', headers: { 'accept-encoding': 'br' } } }),
  }),
  atFixedRate(EVENTS),
  reading('/feeds/events.ics'),
  BLOG,
  ...PICTURES,
  reading('/events/mine', {
    prepare: async ({ heads }) => ({ load: { path: '/events/mine', headers: bearer(heads[0]!) } }),
  }),
  reading('/users', { prepare: async ({ admins }) => ({ load: { path: '/users', headers: bearer(admins[0]!) } }) }),
  ME,
  atFixedRate(ME),
  REGISTER,
  LIKE,
  LOGIN,
]

/** With tracing, compared with the service without tracing. */
export const TRACED = [EVENTS, ME].map(({ name, prepare }): Case => ({ name: `${name}, traced`, prepare }))

/** While all participants of a moved event get an email, compared with a service without emails. */
export const BESIDE_EMAILS: Case = { name: 'GET /events, beside emails to many', prepare: EVENTS.prepare }

/** Number of clients that watch the list of events by `GET /live`. */
export const LISTENERS = 1000

const beside = `beside ${LISTENERS.toLocaleString('en')} listeners`
export const BESIDE_LISTENERS: Case = { name: `GET /events, ${beside}`, prepare: EVENTS.prepare }
export const BESIDE_TOLD_LISTENERS: Case = {
  name: `GET /events, 50 commits/s, ${beside}`, commits: 50, prepare: EVENTS.prepare,
}
