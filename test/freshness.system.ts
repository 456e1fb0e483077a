// Tries to get stale responses from two instances: with all kinds of writers, and while the database fails. Only this
// file writes to the server: commits of other tests would invalidate entries, and hide a stale one.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'

import { buildApp } from '#lib/app.js'
import { signOut } from '#lib/accounts/accounts.js'
import { openDatabase, type Sql } from '#lib/database/pools.js'
import { migrate } from '#lib/database/migrations.js'
import { StartupError } from '#lib/config/startup-error.js'
import { recordResponses } from './responses.ts'
import { makeProxy, PostgresServer } from './postgres-server.ts'
import { Bounds, holds, turns } from './freshness.ts'
import { assertComplete } from './assertions.ts'
import { bearer, bearerOfJson, buildWithRoutes, type Person, person, testConfig } from './helper.ts'

const server = await PostgresServer.create(t)
await server.start()
const proxy = await makeProxy(t, server.port)

const administration = connect(t, server.url())
await administration`CREATE DATABASE community`
await migrate(server.url('community'))
const sql = connect(t, server.url('community'))

function connect (t: Pick<Test, 'teardown'>, url: string) {
  const sql = postgres(url, { max: 4, onnotice () {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

/** Starts an instance of the service. */
async function serve (t: Pick<Test, 'teardown'>, port = proxy.port) {
  const app = buildApp(testConfig({ DATABASE_URL: server.url('community', port) }))
  recordResponses(app)
  t.teardown(() => app.close())
  await app.listen({ host: '127.0.0.1', port: 0 })
  return app
}

const services = [await serve(t), await serve(t)]
const admin = await person(services[0]!, 'ADMIN')
const clubId = randomUUID()

interface List {
  paths: string[]
  /** The size of the list in a response. */
  count (body: any): number
  insert (sql: postgres.ISql, id?: string): PromiseLike<unknown>
  /** The body of a request that adds an item. */
  body?: object
}

/** The public lists. Items are only added, so sizes grow. */
const lists = {
  clubs: {
    paths: ['/clubs', '/club-pages'],
    count: ({ clubs }) => clubs.length,
    insert: (sql, id = randomUUID()) => sql`
      INSERT INTO clubs (id, name, description) VALUES (${id}, ${id}, 'A club')
    `,
  },
  events: {
    paths: ['/events', '/events?limit=1&sort=asc', '/events?page=2&limit=2', '/feeds/events.ics'],
    count: body => typeof body === 'string' ? body.split('BEGIN:VEVENT').length - 1 : body.pagination.total,
    insert: sql => sql`
      INSERT INTO events (title, description, date, club_id) VALUES ('An event', 'Its description', now(), ${clubId})
    `,
  },
  mentors: {
    paths: ['/mentors'],
    count: ({ mentors }) => mentors.length,
    insert: sql => sql`
      INSERT INTO mentors (name, expertise, image_url, club_id) VALUES ('Grace', 'Chess', '', ${clubId})
    `,
    body: { name: 'Grace', expertise: 'Chess', imageUrl: 'https://example.org/grace.png', clubId },
  },
  testimonials: {
    paths: ['/testimonials', '/testimonials?limit=1', '/testimonials?page=2&limit=2'],
    count: ({ total }) => total,
    insert: (sql, name = 'Ada') => sql`
      INSERT INTO testimonials (name, batch_year, content) VALUES (${name}, 2020, 'It was fun.')
    `,
    body: { name: 'Ada', batchYear: 2020, content: 'It was fun.' },
  },
  blogs: {
    paths: ['/blogs', '/blogs/admin'],
    count: ({ blogs }) => blogs.length,
    insert: sql => sql`
      INSERT INTO blogs (title, content, status, author_id) VALUES ('A title', 'Content', 'PUBLISHED', ${admin.id})
    `,
    body: { title: 'A title', content: 'A content that is long enough', status: 'PUBLISHED' },
  },
} satisfies { [name: string]: List }
type Name = keyof typeof lists

const NAMES = Object.keys(lists) as Name[]

/** Public lists that are not counted here, because they contain a part of the rows. */
const ELSEWHERE = ['/agenda', '/feeds/blogs.atom']

t.test('All public lists are tested here', async t => {
  const { routes } = await buildWithRoutes(t)
  // A path with a parameter is a single item, or a part of the rows.
  const shared = routes.filter(({ config, url }) => config?.cache === 'public' && !url.includes(':'))
    .map(({ url }) => url)
  const paths = NAMES.flatMap(name => lists[name].paths).map(path => path.split('?')[0]!)
  // Also reads a private list.
  const known = [...paths, ...ELSEWHERE]
  assertComplete(t, known, [...shared, '/blogs/admin'], 'lists, or ELSEWHERE, in test/freshness.system.ts')
})

const perList = <T>(make: () => T) => Object.fromEntries(NAMES.map(name => [name, make()])) as Record<Name, T>
const added = perList(() => 0)
const bounds = perList(() => new Bounds())

/** Adds an item. If this fails, it may have been added. */
async function add (name: Name, insert: () => PromiseLike<unknown>) {
  bounds[name].next()
  await insert()
  bounds[name].acknowledge(++added[name])
}

async function request (service: FastifyInstance, path: string, init: RequestInit) {
  const response = await fetch(`${service.listeningOrigin}${path}`, init)
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const body: any = await (isJson ? response.json() : response.text())
  // The list of mentors hides its failure behind an empty list.
  if (response.ok && body.mentors?.length !== 0) return body
  throw new Error(`${path}: ${response.status} ${JSON.stringify(body)}`)
}

const read = (service: FastifyInstance, path: string) => request(service, path, { headers: bearer(admin.token) })

const post = (service: FastifyInstance, path: string, body: object) => request(service, path, {
  method: 'POST', headers: bearerOfJson(admin.token), body: JSON.stringify(body),
})

/** Throws unless the list has a size that is possible at this time. */
function check (name: Name, service: FastifyInstance, path: string) {
  const { count }: List = lists[name]
  return bounds[name].check(async () => count(await read(service, path)))
}

/** Asserts that all responses have all items. */
async function checkAll (t: Test, message: string) {
  for (const name of NAMES) {
    const [row] = await sql<[{ count: number }]>`SELECT count(*)::int FROM ${sql(name)}`
    const counts = await Promise.all(services.flatMap(service => lists[name].paths.map(async path =>
      lists[name].count(await read(service, path)))))
    t.strictSame(counts, counts.map(() => row.count), `${name}, ${message}`)
  }
}

/** A token of a member, once the sign-in is done, and whether its end has begun or was acknowledged. */
interface Session {
  token?: string
  end?: 'begun' | 'acknowledged'
}

/** A user who signs in and signs out everywhere, many times. */
class Member {
  readonly person: Person
  readonly sessions: Session[]
  /** The ends that have begun, and are not done. */
  #ends = 0

  constructor (person: Person) {
    this.person = person
    this.sessions = [{ token: person.token }]
  }

  /** A token like a sign-in token. */
  async createToken () {
    const { id, role } = this.person
    const [row] = await sql<{ epoch: string }[]>`SELECT epoch FROM revoked_tokens WHERE user_id = ${id}`
    return services[0]!.issueToken({ id, role, epoch: row?.epoch ?? null })
  }

  async signIn () {
    // An end that has begun may include it.
    const session: Session = this.#ends > 0 ? { end: 'begun' } : {}
    this.sessions.push(session)
    session.token = await this.createToken()
    return session
  }

  /**
   * Revokes all tokens. If this fails, the tokens may or may not be revoked, including the token of a running sign-in.
   */
  async signOut (end: (member: Member) => Promise<unknown>) {
    const sessions = [...this.sessions]
    const signedIn = sessions.filter(({ token }) => token)
    for (const session of sessions) session.end ??= 'begun'
    this.#ends++
    await end(this).finally(() => this.#ends--)
    for (const session of signedIn) session.end = 'acknowledged'
  }

  /** Sends a request with a token. Throws if a revoked token is accepted, or a valid token refused. */
  async check (service: FastifyInstance, { method, path }: GuardedOperation, session: Session) {
    const before = session.end
    const { status } = await fetch(`${service.listeningOrigin}${path}`, {
      method, headers: bearer(session.token!),
    })
    const isRight = status === 401 ? session.end : status < 300 ? before !== 'acknowledged' : status === 500
    if (!isRight) throw new Error(`${method} ${path}: ${status}, and the end was ${before}, then ${session.end}`)
    return status
  }
}

interface GuardedOperation {
  method: string
  path: string
}

/** Served from memory, or written. */
const guarded: GuardedOperation[] = [
  { method: 'GET', path: '/auth/me' },
  { method: 'GET', path: '/mentors/liked' },
  { method: 'POST', path: '/me/calendar' },
]

const members = (await Promise.all([1, 2, 3].map(() => person(services[0]!)))).map(person => new Member(person))

/** Signs a member out through the service. */
const signOutBy = (service: FastifyInstance) => async (member: Member) => {
  await request(service, '/me/tokens', { method: 'DELETE', headers: bearer(await member.createToken()) })
}

for (const name of NAMES) await add(name, () => lists[name].insert(sql, clubId))

t.test('no response is older than a commit before the request, for any writer', async t => {
  const ways: { [way: string]: (name: Name, service: FastifyInstance, pause: number) => Promise<unknown> } = {
    beside: name => add(name, () => lists[name].insert(sql)),
    through: (name, service) => add(name, () => {
      const { insert, body }: List = lists[name]
      return body ? post(service, `/${name}`, body) : insert(sql)
    }),
    slowly: (name, _service, pause) => add(name, () => sql.begin(async sql => {
      await lists[name].insert(sql)
      await turns(pause)
    })),
    undone: (name, _service, pause) => sql.begin(async sql => {
      await lists[name].insert(sql)
      await turns(pause)
      throw new Error('rolled back')
    }).catch(() => {}),
  }
  const pause = fc.nat(4)
  const name = fc.constantFrom(...NAMES)
  const service = fc.constantFrom(...services)
  const write = fc.record({ way: fc.constantFrom(...Object.values(ways)), name, service, pause })
  const ask = fc.record({ name, path: fc.nat(3), service, pause })
  const scripts = fc.record({
    writers: fc.array(fc.array(write, { maxLength: 5, size: 'max' }), { minLength: 1, maxLength: 3, size: 'max' }),
    readers: fc.array(fc.array(ask, { maxLength: 20, size: 'max' }), { minLength: 1, maxLength: 6, size: 'max' }),
  })
  await holds(t, 6, scripts, async ({ writers, readers }) => {
    await Promise.all([
      ...writers.map(async script => {
        for (const { way, name, service, pause } of script) {
          await way(name, service, pause)
          await Promise.all(services.map(service => check(name, service, lists[name].paths[0]!)))
        }
      }),
      ...readers.map(async script => {
        for (const { name, path, service, pause } of script) {
          const { paths } = lists[name]
          await check(name, service, paths[path % paths.length]!)
          await turns(pause)
        }
      }),
    ])
  })
  await checkAll(t, 'afterwards')
})

t.test('no revoked token is accepted, and every other token is', async t => {
  const ways: { [way: string]: (member: Member, service: FastifyInstance, pause: number) => Promise<unknown> } = {
    through: (member, service) => member.signOut(signOutBy(service)),
    beside: member => member.signOut(({ person }) => signOut(sql as Sql, person.email)),
    slowly: (member, _service, pause) => member.signOut(({ person }) => sql.begin(async sql => {
      await signOut(sql as unknown as Sql, person.email)
      await turns(pause)
    })),
    undone: ({ person }, _service, pause) => sql.begin(async sql => {
      await signOut(sql as unknown as Sql, person.email)
      await turns(pause)
      throw new Error('rolled back')
    }).catch(() => {}),
    elsewhere: () => add('clubs', () => lists.clubs.insert(sql)),
  }
  const pause = fc.nat(4)
  const member = fc.constantFrom(...members)
  const service = fc.constantFrom(...services)
  const operation = fc.constantFrom(...guarded)
  const end = fc.record({ way: fc.constantFrom(...Object.values(ways)), member, service, operation, pause })
  const ask = fc.record({ member, service, operation, nth: fc.nat(2), pause })
  const scripts = fc.record({
    enders: fc.array(fc.array(end, { maxLength: 5, size: 'max' }), { minLength: 1, maxLength: 3, size: 'max' }),
    readers: fc.array(fc.array(ask, { maxLength: 20, size: 'max' }), { minLength: 1, maxLength: 6, size: 'max' }),
  })
  const seen: { [status: number]: number } = {}
  const check = async (member: Member, service: FastifyInstance, operation: GuardedOperation, session: Session) => {
    const status = await member.check(service, operation, session)
    seen[status] = (seen[status] ?? 0) + 1
  }
  await holds(t, 6, scripts, async ({ enders, readers }) => {
    await Promise.all([
      ...enders.map(async script => {
        for (const { way, member, service, operation, pause } of script) {
          const session = await member.signIn()
          // A parallel revocation may be faster.
          await way(member, service, pause).catch(error => { if (!/: 401 /.test(String(error))) throw error })
          await Promise.all(services.map(service => check(member, service, operation, session)))
        }
      }),
      ...readers.map(async script => {
        for (const { member, service, operation, nth, pause } of script) {
          // The latest ones.
          const session = member.sessions.filter(({ token }) => token).at(-1 - nth) ?? await member.signIn()
          await check(member, service, operation, session)
          await turns(pause)
        }
      }),
    ])
  })
  t.ok(seen[200]! > 0 && seen[401]! > 0)
  t.strictSame(Object.keys(seen), ['200', '201', '401'])
})

t.test('no response is stale while connections are cut and the database restarts', async t => {
  const over = new AbortController()
  const unexpected: unknown[] = []
  const answers = services.map(() => 0)

  const readers = services.flatMap((service, index) => [0, 1].map(async () => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const name = NAMES[turn % NAMES.length]!
      try {
        await check(name, service, lists[name].paths[0]!)
        answers[index]!++
      } catch (error) {
        // A failure is not stale.
        if (!/: 500 |: \d+ {"mentors":\[\]}/.test(String(error))) unexpected.push(error)
      }
      await sleep(2)
    }
  }))
  const signedIn = members.flatMap(member => services.map(async (service, index) => {
    for (let turn = index; !over.signal.aborted; turn++) {
      const sessions = member.sessions.filter(({ token }) => token).slice(-3)
      await member.check(service, guarded[turn % guarded.length]!, sessions[turn % sessions.length]!)
        .catch(error => unexpected.push(error))
      await sleep(5)
    }
  }))
  const signingOut = (async () => {
    for (let turn = 0; !over.signal.aborted; turn++) {
      const member = members[turn % members.length]!
      await member.signOut(signOutBy(services[turn % services.length]!)).catch(() => {})
      await member.signIn().catch(() => {})
      await sleep(5)
    }
  })()
  const writing = (async () => {
    for (let turn = 0; !over.signal.aborted; turn++) {
      const name = NAMES[turn % NAMES.length]!
      await add(name, () => lists[name].insert(sql)).catch(() => {})
      await sleep(5)
    }
  })()

  const disasters: [name: string, disaster: () => Promise<unknown>][] = [
    ['connections cut on the way', async () => proxy.cut()],
    ['connections ended by the server', () => administration`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
    `],
    ['a restart', () => server.restart('fast')],
    ['a restart after a crash', () => server.restart('immediate')],
  ]
  for (const [name, disaster] of disasters) {
    await disaster()
    const before = [...answers]
    while (!answers.every((count, index) => count > before[index]! + 10)) await sleep(5)
    t.strictSame(unexpected, [], name)
  }
  over.abort()
  await Promise.all([...readers, ...signedIn, signingOut, writing])
  await checkAll(t, 'afterwards')
})

/** The names in the testimonials from each instance; retries failures. */
function testimonials (of = services) {
  return Promise.all(of.map(async service => {
    for (;;) {
      try {
        const { items } = await read(service, '/testimonials?limit=100')
        return items.map(({ name }: { name: string }) => name)
      } catch {
        await sleep(10)
      }
    }
  }))
}

const SNAPSHOT = 'pg_current_snapshot()'
const START = 'pg_postmaster_start_time()'
const STATISTICS = `
  CASE WHEN current_setting('server_version_num')::int >= 150000 THEN pg_stat_get_bgwriter_stat_reset_time() END
`

/** An id that consists of these parts only, as a less careful cache would use it. */
async function naiveState (sql: postgres.Sql, ...parts: string[]) {
  const [row] = await sql<[{ state: string }]>`SELECT ${sql.unsafe(`concat_ws(' ', ${parts.join(', ')})`)} AS state`
  return row.state
}

/** Uses up transaction ids until the naive id could match, then returns it. */
async function reach (sql: postgres.Sql, state: string, ...parts: string[]) {
  const next = async () => Number(await naiveState(sql, 'pg_snapshot_xmax(pg_current_snapshot())'))
  const [, xmax] = state.match(/^\d+:(\d+):/)!
  while (await next() < Number(xmax)) await sql`SELECT pg_current_xact_id()`
  return naiveState(sql, ...parts)
}

t.test('a crash that loses a commit and reuses its transaction id', async t => {
  // A background process of PostgreSQL may write the commit to disk before the crash. A job of the service may use up
  // transaction ids.
  let isReached = false
  for (let crashes = 0; !isReached && crashes < 5; crashes++) {
    const before = await crashAfterCommit(t)
    if ((await sql`SELECT FROM testimonials`).length > 0) continue
    await lists.testimonials.insert(sql, 'found')
    isReached = await reach(sql, before, SNAPSHOT, START) === before
  }
  t.ok(isReached, 'the naive id is the same')
  t.strictSame(await testimonials(), [['found'], ['found']])
})

/** Inserts a row that a crash loses, and waits until the server is up again. Returns the naive id with the row. */
async function crashAfterCommit (t: Test) {
  await sql`TRUNCATE testimonials`
  const [[walWriter], [victim]] = await Promise.all([
    sql<{ pid: number }[]>`SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'`,
    connect(t, server.url())<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`,
  ])
  const witness = connect(t, server.url())
  await witness`SELECT`
  const crash = witness`SELECT pg_sleep(600)`.then(() => {}, () => {})
  // On all connections of the pool: one that was lost may fail the next statement.
  const isUp = () => Promise.all(Array.from({ length: 4 }, () => sql`SELECT pg_sleep(0.01)`))
    .then(() => true, () => false)
  // Now only a synchronous commit writes the WAL to disk, and PostgreSQL cannot restart before the process is gone.
  process.kill(walWriter!.pid, 'SIGSTOP')
  await sql.begin(async sql => {
    await sql`SET LOCAL synchronous_commit = off`
    await lists.testimonials.insert(sql, 'lost')
  })
  const before = await naiveState(sql, SNAPSHOT, START)
  t.strictSame(await testimonials(), [['lost'], ['lost']])

  process.kill(victim!.pid, 'SIGKILL')
  // On a connection that is still being opened, requests would fail until the server is up again.
  await crash
  process.kill(walWriter!.pid, 'SIGCONT')
  while (!await isUp()) await sleep(5)
  return before
}

t.test('a standby, and a fail-over to it', async t => {
  await sql`TRUNCATE testimonials`
  await server.stop('fast')
  const standby = await server.standby(t)
  await Promise.all([server.start(), standby.start()])
  const onStandby = connect(t, standby.url('community'))
  const reader = [await serve(t, standby.port)]
  /** Waits until the standby has replayed all commits. */
  const replayed = async () => {
    const [row] = await sql`SELECT pg_current_wal_insert_lsn() AS end`
    const isBehind = () => onStandby`SELECT FROM pg_last_wal_replay_lsn() AS reached WHERE reached < ${row!.end}`
    while ((await isBehind()).length > 0) await sleep(5)
  }

  await t.test('target_session_attrs=primary takes no standby', async t => {
    const open = (url: string) =>
      openDatabase(testConfig({ DATABASE_URL: `${url}?target_session_attrs=primary` }), console)
    await t.rejects(open(standby.url('community')), new StartupError(`Cannot reach the database at 127.0.0.1:${
      standby.port}/community: the server does not match target_session_attrs`))
    await (await open(server.url('community'))).close()
  })

  await t.test('the snapshot of a standby does not change with each commit', async t => {
    const [oldest, open] = [await sql.reserve(), await sql.reserve()]
    await oldest`BEGIN`
    await oldest`SELECT pg_current_xact_id()`
    await open`BEGIN`
    await lists.testimonials.insert(open, 'one')
    await lists.testimonials.insert(sql, 'two')
    await replayed()
    const before = await naiveState(onStandby, SNAPSHOT, START, STATISTICS)
    for (let times = 0; times < 2; times++) t.strictSame(await testimonials(reader), [['two']])
    await open`COMMIT`
    await replayed()
    t.equal(await naiveState(onStandby, SNAPSHOT, START, STATISTICS), before, 'the naive id is the same')
    t.strictSame(await testimonials(reader), [['two', 'one']])
    await oldest`COMMIT`
    oldest.release()
    open.release()
  })

  const [member] = members as [Member, ...Member[]]
  const statusesOf = (session: Session) =>
    Promise.all([...services, ...reader].map(service => member.check(service, guarded[0]!, session)))
  const ended = await member.signIn()
  await member.signOut(signOutBy(services[0]!))
  const later = await member.signIn()
  await replayed()

  await t.test('a promoted standby reuses the ids of transactions that it did not receive', async t => {
    await onStandby`ALTER SYSTEM SET primary_conninfo = ''`
    await onStandby`SELECT pg_reload_conf()`
    while ((await onStandby`SELECT FROM pg_stat_wal_receiver`).length > 0) await sleep(5)
    await lists.testimonials.insert(sql, 'lost')
    const before = await naiveState(sql, SNAPSHOT, STATISTICS)
    t.strictSame(await testimonials(), [['lost', 'two', 'one'], ['lost', 'two', 'one']])

    await Promise.all([server.stop('immediate'), standby.promote()])
    proxy.switchTo(standby.port)
    await lists.testimonials.insert(onStandby, 'found')
    t.equal(await reach(onStandby, before, SNAPSHOT, STATISTICS), before, 'the naive id is the same')
    const expected = ['found', 'two', 'one']
    t.strictSame(await testimonials([...services, ...reader]), [expected, expected, expected])
  })

  await t.test('a promoted standby knows the revoked tokens', async t => {
    t.strictSame(await statusesOf(ended), [401, 401, 401])
    t.strictSame(await statusesOf(later), [200, 200, 200])
  })
})
