// One network that asks for as much as it can, alongside honest clients of other networks. As a worker thread this file
// runs the attackers, so that they do not delay the clients that measure what others notice.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

import { hashPassword } from '#lib/auth/passwords.js'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, PASSWORD, signToken } from './fixture.ts'
import { openClient, type Outcome, type Request } from './http.ts'
import { createGroup, NO_GROUP } from './memory.ts'
import { judge, type Row, rowOf } from './report.ts'
import type { Scope } from '../scope.ts'
import { startService } from './service.ts'
import { percentile } from '../statistics.ts'

/** A client of a network, which sends its requests one after the other, again and again. */
interface Client {
  network: string
  requests: Request[]
  /** Opens a connection for each request. */
  leaves?: boolean
  /** Asks again at once after a failure, because refused requests are the attack. */
  insists?: boolean
}

/** How many requests had which status, or the code of an error without a response. */
type Statuses = Record<number | string, number>

interface Attack {
  name: string
  variables?: NodeJS.Dict<string>
  attackers: Client[]
  honest: Client[]
  /** Returns the problem of the responses to the attackers; `undefined` if they are as declared. */
  check (statuses: Statuses): string | undefined
}

const ATTACKER = '127.0.0.7'
const HONEST = '127.0.0.9'

/** The pause of an attacker after a response, and a further one after an error, in milliseconds. */
const PAUSE = { success: 1, error: 50 }

/** Timeout of a request, in milliseconds. */
const TIMEOUT = 20_000

/** Number of people in line for the popular event, and of events whose line the erased accounts are in. */
const LINE = 20_000
const LINES = 2000

/** Megabytes of drafts that an account may have. */
const DRAFT_MB = 50

/** Seconds for which a list is read. */
const SLOW_LIST = 0.3

export function networkFaults ({ scope, directory, short, memory }: Setting): Fault[] {
  const seconds = short ? 3 : 15
  /** Wrong passwords of a network until it gets a 429. */
  const attempts = short ? 8 : 200
  const server = lazy(async () => {
    const { databaseUrl } = await startPrimary(scope, directory)
    const fixture = await createFixture(databaseUrl)
    return { fixture, DATABASE_URL: databaseUrl, rows: await fill(fixture) }
  })

  const fault = (name: string, describe: (fixture: Fixture, rows: Rows) => Omit<Attack, 'name'>): Fault => ({
    name,
    async run () {
      const { fixture, DATABASE_URL, rows } = await server()
      const own = scope.inner()
      try {
        return await run(own, DATABASE_URL, { name, ...describe(fixture, rows) })
      } finally {
        await own.end()
      }
    },
  })

  async function run (own: Scope, DATABASE_URL: string, attack: Attack) {
    const { name, variables, attackers, honest, check } = attack
    const row: Row = rowOf(name, [], [])
    const group = await createGroup(own, memory)
    if (!group) return { ...row, missing: NO_GROUP }
    const { url, child } = await startService(own, directory, { DATABASE_URL, ...variables }, group)
    const clients = honest.map(client => ({ ...client, ...openClient(url, 1, TIMEOUT, client.network) }))
    own.teardown(() => clients.forEach(({ end }) => end()))
    const visit = async (seconds: number) => {
      const end = performance.now() + seconds * 1000
      const outcomes = await Promise.all(clients.map(client => repeat(client, 20, () => performance.now() > end)))
      return outcomes.flat()
    }
    await visit(1)
    const alone = await visit(seconds / 2)

    const worker = new Worker(new URL(import.meta.url), { workerData: { url, attackers } })
    own.teardown(() => worker.terminate())
    await once(worker, 'message')
    const beside = await visit(seconds)
    worker.postMessage('stop')
    const [statuses] = await once(worker, 'message') as [Statuses]

    const took = (outcomes: Outcome[]) => Math.round(percentile(outcomes.map(({ took }) => took), 90))
    judge(row, alone, beside, !short)
    row.note = `nine of ten requests beside it took up to ${took(beside)} ms, and ${took(alone)} ms without it; ` +
      `the attackers got ${Object.entries(statuses).map(([status, count]) => `${count} × ${status}`).join(', ')}`
    const problem = check(statuses)
    if (problem) row.problems.push(problem)
    const { exitCode, signalCode } = child
    if (exitCode !== null || signalCode !== null) row.problems.push('the service has ended')
    return row
  }

  return [
    fault('networks: 160 clients of one network that write', ({ students }, { mentors }) => ({
      attackers: repeated(160, n => ({ network: ATTACKER, requests: [like(students[n]!, mentors[0]!)] })),
      honest: [{ network: HONEST, requests: mentors.map(mentor => like(students.at(-1)!, mentor)) }],
      // Attackers may be served or refused, or may wait for too long.
      check: only(200, 500, 503),
    })),
    fault('networks: 81 pictures of one network, and long lists', ({ students }, { mentors, picture }) => ({
      attackers: [
        ...repeated(81, () => ({ network: ATTACKER, requests: [get(`/pictures/${picture}`)] })),
        ...repeated(3, n => ({ network: '127.0.0.8', requests: [get(`/events?limit=${10_000 + n}`)] })),
      ],
      honest: repeated(20, n => ({ network: `127.0.1.${n + 1}`, requests: [like(students[n]!, mentors[n]!)] })),
      check: only(200, 500, 503),
    })),
    fault('networks: 1,500 of them that want a slow list', ({ students }, { mentors }) => ({
      attackers: repeated(1500, n => ({ network: `127.1.${n >> 8}.${n & 255}`, requests: [get('/testimonials')] })),
      honest: [
        // Each commit has all lists read again.
        { network: HONEST, requests: mentors.map(mentor => like(students[0]!, mentor)) },
        { network: '127.0.1.1', requests: [get('/clubs'), get('/events'), get('/mentors')] },
      ],
      check: only(200),
    })),
    fault('networks: 40 clients of one network that want slow lists', ({ students }, { mentors }) => ({
      attackers: repeated(40, n => ({ network: ATTACKER, requests: [get(`/testimonials?page=${n + 1}`)] })),
      // Each commit has the list read again.
      honest: [{
        network: HONEST, requests: mentors.flatMap(mentor => [like(students[0]!, mentor), get('/mentors')]),
      }],
      check: only(200, 500, 503),
    })),
    fault('networks: one that tries a password on all accounts', ({ students }, { mentors }) => ({
      variables: { SIGN_IN_ATTEMPTS_PER_NETWORK: String(attempts) },
      attackers: repeated(8, client => ({
        network: ATTACKER,
        requests: repeated(500, n => signIn(`student-${1 + (60 * client + n) % 500}@example.org`, 'Summer2026!')),
      })),
      honest: [{
        network: HONEST,
        requests: [signIn('honest@example.org', PASSWORD), get('/events'), like(students[0]!, mentors[0]!)],
      }],
      check ({ 401: wrong = 0, 429: refused = 0, ...others }) {
        if (Object.keys(others).length > 0) return 'a sign-in was neither a 401 nor a 429'
        if (refused === 0) return 'no sign-in was refused'
        // Passwords that were being verified when the limit was reached.
        if (wrong > attempts + 8) return `${wrong} wrong passwords were verified`
      },
    })),
    fault('networks: a list that is full of one of them', ({ students }, { mentors }) => ({
      attackers: repeated(1116, n => ({
        network: ATTACKER,
        requests: [get(n < 1100 ? `/events?limit=3&page=${n + 1}` : '/events?limit=50')],
        insists: true,
      })),
      honest: [{
        network: HONEST, requests: mentors.flatMap(mentor => [like(students[0]!, mentor), get('/events?limit=50')]),
      }],
      check: only(200, 500, 503),
    })),
    fault('networks: one that opens connections without end', () => ({
      attackers: repeated(100, () => ({ network: ATTACKER, requests: [get('/livez')], leaves: true })),
      honest: [{ network: HONEST, requests: [get('/livez'), get('/readyz'), get('/clubs')], leaves: true }],
      check: only(200, 'ECONNRESET', 'TIMEOUT'),
    })),
    fault('networks: 60 clients that want a seat of others, of 20,000 in line', ({ students }, { popular, lines }) => ({
      attackers: repeated(60, () => ({
        network: ATTACKER, requests: [seat(students[1]!, popular, true)], insists: true,
      })),
      honest: [{ network: HONEST, requests: [false, true].map(coming => seat(students[0]!, lines[0]!, coming)) }],
      check: only(404, 500, 503),
    })),
    fault('networks: erasures of accounts in 2,000 lines', ({ students }, { lines, members }) => ({
      attackers: repeated(2, n => ({
        network: ATTACKER, requests: members.slice(6 * n, 6 * n + 6).map(erase), insists: true,
      })),
      honest: [{
        network: HONEST,
        requests: repeated(20, n => seat(students[0]!, lines[n % 10]!, n >= 10)),
      }],
      check: only(200, 401),
    })),
    fault('networks: 200 clients that read the description, and probes', () => ({
      attackers: repeated(200, () => ({ network: ATTACKER, requests: [get('/openapi.json'), get('/docs/json')] })),
      honest: [{ network: HONEST, requests: [get('/livez'), get('/readyz')], leaves: true }],
      check: only(200),
    })),
    fault('networks: paths and lists that cannot be decoded', ({ students }, { mentors }) => ({
      attackers: repeated(8, n => ({
        network: ATTACKER,
        requests: [get('/%'.repeat(7500)), get(`/live?list=/events%3Fpage=${n}${'%26%25FF=%25FF'.repeat(1000)}`)],
      })),
      honest: [{ network: HONEST, requests: [get('/livez'), ...mentors.map(mentor => like(students[0]!, mentor))] }],
      check: only(400, 404),
    })),
    fault('networks: drafts of 1 MB', ({ students }, { mentors }) => ({
      attackers: repeated(8, () => ({ network: ATTACKER, requests: [submit(students[1]!, 'x'.repeat(1_000_000))] })),
      honest: [{ network: HONEST, requests: mentors.map(mentor => like(students[0]!, mentor)) }],
      check: statuses => only(201, 413)(statuses) ??
        (statuses[201]! > DRAFT_MB ? `${statuses[201]} drafts were stored` : undefined),
    })),
  ]
}

const get = (path: string): Request => ({ method: 'GET', path })

const like = ({ token }: { token: string }, mentor: string): Request =>
  ({ method: 'POST', path: `/mentors/${mentor}/like`, token })

const signIn = (email: string, password: string): Request =>
  ({ method: 'POST', path: '/auth/login', body: { email, password } })

const seat = ({ token }: { token: string }, event: string, coming: boolean): Request =>
  ({ method: 'PUT', path: `/me/seats/${event}`, token, body: { coming } })

const erase = (token: string): Request => ({ method: 'DELETE', path: '/me', token, body: { currentPassword: null } })

const submit = ({ token }: { token: string }, content: string): Request =>
  ({ method: 'POST', path: '/blogs/submit', token, body: { title: 'Draft', content } })

/** Returns a check that all responses have one of these statuses. */
const only = (...expected: (number | string)[]) => (statuses: Statuses) => {
  const other = Object.keys(statuses).find(status => !expected.map(String).includes(status))
  return other && `an attacker got ${other}`
}

function repeated<T> (length: number, create: (n: number) => T) {
  return Array.from({ length }, (_, n) => create(n))
}

type Rows = Awaited<ReturnType<typeof fill>>

/** Inserts long lists, a picture, an account that can sign in, a list that is slow, and people in line. */
async function fill ({ look, students: [owner] }: Fixture) {
  const password = await hashPassword(PASSWORD)
  return look(async sql => {
    await sql`
      INSERT INTO users (email, password, first_name, last_name) VALUES ('honest@example.org', ${password}, 'Eva', 'Lu')
    `
    await sql`UPDATE users SET password = ${password} WHERE email LIKE 'student-%'`
    await sql`
      INSERT INTO events (title, description, date, club_id)
      SELECT 'Event', repeat('long ', 50), now(), clubs.id FROM clubs, generate_series(1, 10000)
    `
    await sql`ALTER TABLE testimonials RENAME TO written`
    await sql`
      CREATE VIEW testimonials AS
      SELECT written.* FROM pg_sleep(${sql.unsafe(String(SLOW_LIST))}) LEFT JOIN written ON true
    `
    const [picture] = await sql<[{ id: string }]>`
      INSERT INTO pictures (user_id, large, small, width, height)
      VALUES (${owner!.id}, ${randomBytes(250_000)}, ${randomBytes(25_000)}, 2000, 1500) RETURNING id
    `
    const mentors = await sql<{ id: string }[]>`SELECT id FROM mentors`
    const [popular, ...lines] = await sql<{ id: string }[]>`
      WITH made AS (
        INSERT INTO events (title, description, date, club_id)
        SELECT 'Chess Night', 'Chess', now() + interval '9 days', clubs.id
        FROM clubs, generate_series(0, ${LINES}::integer)
        RETURNING id
      )
      INSERT INTO event_details (event_id, capacity) SELECT id, 1 FROM made RETURNING event_id AS id
    `
    const people = await sql<{ id: string }[]>`
      INSERT INTO users (email, password, first_name, last_name)
      SELECT 'line-' || n || '@example.org', '!', 'Mary', 'Jackson' FROM generate_series(1, ${LINE}::integer) AS n
      RETURNING id
    `
    const register = (users: { id: string }[], events: { id: string }[]) => sql`
      INSERT INTO event_registrations (user_id, event_id)
      SELECT users::uuid, events::uuid
      FROM unnest(${ids(events)}::text[]) AS events, unnest(${ids(users)}::text[]) AS users
    `
    await register(people, [popular!])
    const erased = people.slice(0, 12)
    await register([...erased, owner!], lines)
    await sql`ANALYZE`
    const members = await Promise.all(erased.map(({ id }) => signToken(id, 'STUDENT')))
    return { picture: picture.id, mentors: ids(mentors), popular: popular!.id, lines: ids(lines), members }
  })
}

const ids = (rows: { id: string }[]) => rows.map(({ id }) => id)

/** Sends the requests of a client until it is over. */
async function repeat (
  { requests, leaves, send, end }: Client & ReturnType<typeof openClient>, pause: number, isOver: () => boolean,
  onOutcome?: (outcome: Outcome) => unknown
) {
  const outcomes: Outcome[] = []
  for (let n = 0; !isOver(); n++) {
    const outcome = await send(requests[n % requests.length]!)
    if (leaves) end()
    if (onOutcome) await onOutcome(outcome)
    else outcomes.push({ ...outcome, body: undefined })
    await sleep(pause)
  }
  return outcomes
}

if (!isMainThread) {
  const { url, attackers } = workerData as { url: string, attackers: Client[] }
  const statuses: Statuses = {}
  const begun = new Set<Client>()
  let hasBegun = false
  let isStopped = false
  parentPort!.once('message', () => {
    isStopped = true
    parentPort!.postMessage(statuses)
  })
  await Promise.all(attackers.map(client => {
    const connection = openClient(url, 1, TIMEOUT, client.network)
    return repeat({ ...client, ...connection }, PAUSE.success, () => isStopped, async ({ status, error }) => {
      const what = error ?? status
      statuses[what] = (statuses[what] ?? 0) + 1
      // What others notice is measured when every attacker has had a response.
      if (!hasBegun && begun.add(client).size === attackers.length) {
        hasBegun = true
        parentPort!.postMessage('begun')
      }
      if (!client.insists && (status < 200 || status > 299)) await sleep(PAUSE.error)
    })
  }))
}
