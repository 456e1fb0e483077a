import { get } from './http.ts'
import type { Server } from './programs.ts'
import type { Load, Outcome } from './wrk.ts'
import { addEvents, type World } from './world.ts'

/** One run of a case: what to send, and what must hold afterwards; `check` returns what does not. */
export interface Trial {
  load: Load
  check? (outcome: Outcome, connections: number): Promise<string | undefined>
}

/** An operation that is measured. */
export interface Case {
  name: string
  /** A bare server can send the same bytes to everybody. */
  floor?: boolean
  /** The peers have it too. */
  peers?: boolean
  /** Answers of other statuses than these fail the benchmark, in the mode `bodies`; in others, all from 400 on. */
  statuses?: number[]
  prepare (world: World, server: Server): Trial | Promise<Trial>
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A GET of the same path every time. */
function reading (
  name: string, path: (world: World) => string, token?: (world: World) => string
): Pick<Case, 'name' | 'prepare'> {
  return {
    name,
    prepare: world => ({
      load: { path: path(world), mode: 'plain', headers: token ? bearer(token(world)) : {} },
    }),
  }
}

/** A GET in the name of one user after another. */
function readingOf (path: string): Pick<Case, 'name' | 'prepare'> {
  return { name: `GET ${path}`, prepare: world => ({ load: { path, mode: 'tokens', args: [world.userFile] } }) }
}

/** A public list: what every visitor loads. */
function listing (path: string) {
  return {
    name: `GET ${path}`,
    path,
    floor: true,
    peers: true,
    prepare: () => ({
      load: { path, mode: 'plain' as const },
      // GET /mentors answers 200 with an empty list when it fails.
      check: async ({ bytes, requests }: Outcome) => bytes / requests < 1000 ? 'the lists are empty' : undefined,
    }),
  }
}

export const EVENTS = listing('/events')
export const LISTS = [EVENTS, ...['/blogs', '/mentors', '/clubs', '/testimonials'].map(listing)]

/** A browser that has the list already. */
export const NOT_MODIFIED: Case = {
  name: `${EVENTS.name}, If-None-Match`,
  async prepare (_world, { url }) {
    const { headers: { etag = '' } } = await get(url + EVENTS.path)
    return {
      load: { path: EVENTS.path, mode: 'plain', headers: { 'if-none-match': etag } },
      check: async ({ bytes, requests }) => bytes / requests < 1000 ? undefined : 'the answers are no 304',
    }
  },
}

/** A browser that takes it compressed. */
export const COMPRESSED: Case = {
  name: `${EVENTS.name}, br`,
  prepare: () => ({ load: { path: EVENTS.path, mode: 'plain', headers: { 'accept-encoding': 'br' } } }),
}

export const POLLS = [NOT_MODIFIED, COMPRESSED]

/** How often a second somebody else writes meanwhile. */
export const COMMITS = 50

/** The lists while somebody else writes; with others beside it only what everybody looks at most. */
export const LISTS_WHILE_WRITING = LISTS.map(list => ({
  ...list, name: `${list.name}, ${COMMITS} commits/s`, floor: list === EVENTS, peers: list === EVENTS,
}))
export const EVENTS_WHILE_WRITING = LISTS_WHILE_WRITING[0]!

export const BLOG: Case = { ...reading('GET /blogs/:id', ({ blog }) => `/blogs/${blog}`), floor: true, peers: true }

export const ME: Case = { ...readingOf('/auth/me'), peers: true }

export const USERS: Case = reading('GET /users', () => '/users', ({ admin }) => admin)

export const READS: Case[] = [
  ...LISTS,
  BLOG,
  ME,
  readingOf('/events/registered'),
  reading('GET /events/mine', () => '/events/mine', ({ head }) => head),
  USERS,
  reading('GET /users/analytics', () => '/users/analytics', ({ admin }) => admin),
]

/** All users register for one event; for the next one when all have. */
export const REGISTER_ONE: Case = { ...registering('one event', 'users', 200), peers: true }

/** Each registration is for another event than the one before, of a hundred. */
export const REGISTER_MANY: Case = registering('many events', 'ids', 100)

export const LIKE: Case = {
  name: 'POST /mentors/:id/like',
  prepare: world => ({
    load: { path: '', mode: 'pairs', args: ['/mentors/', '/like', 'ids', world.userFile, world.mentorFile] },
  }),
}

export const WRITES = [REGISTER_ONE, REGISTER_MANY, LIKE]

/** A flood of sign-ins may be told to come back later. */
export const LOGIN: Case = {
  name: 'POST /auth/login',
  statuses: [200, 503],
  prepare: ({ loginFile }) => ({ load: { path: '/auth/login', mode: 'bodies', args: [loginFile] } }),
}

function registering (what: string, order: 'users' | 'ids', count: number): Pick<Case, 'name' | 'prepare'> {
  return {
    name: `POST /events/:id/register, ${what}`,
    async prepare (world) {
      const { ids, path } = await addEvents(world, count)
      return {
        load: { path: '', mode: 'pairs', args: ['/events/', '/register', order, world.userFile, path] },
        check: ({ requests }, connections) => checkRows(world, ids, requests, connections),
      }
    },
  }
}

/** Every answer is a row; so may be what each connection still waited for at the end. */
async function checkRows ({ sql }: World, events: string[], answers: number, connections: number) {
  const [found] = await sql<{ rows: number }[]>`
    SELECT count(*)::int AS rows FROM event_registrations WHERE event_id = ANY (${events})
  `
  const { rows } = found!
  if (rows < answers || rows > answers + connections) return `${answers} registrations answered, ${rows} rows`
}
