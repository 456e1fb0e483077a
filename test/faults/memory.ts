// Attacks on the memory of the service, in a control group of 512 MB, alongside a client in a different network.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdir, rmdir, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { hashPassword } from '#lib/auth/passwords.js'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, PASSWORD, signToken } from './fixture.ts'
import { openClient, type Outcome, type Request, send } from './http.ts'
import {
  ABANDONED, ATTACKS, type Author, BODIES, BODIES_OF_NETWORKS, EXPORTS_OF_NETWORKS, FEWER_BODIES, FILES, FOREIGN_TOKENS,
  HOST, photo, startAttacks, UNREAD_STREAMS, UPLOADS,
} from './memory-attacks.ts'
import { judge, type Row, rowOf, statusesOf } from './report.ts'
import { ROOT } from './programs.ts'
import type { Scope } from '../scope.ts'
import { type Service, startService } from './service.ts'
import { openStreams } from './streams.ts'
import { percentile } from '../statistics.ts'

/** Has glibc return memory, see docs/run/sizing.md, "Memory that stays". */
const RETURNED = { GLIBC_TUNABLES: 'glibc.malloc.mmap_threshold=16384:glibc.malloc.hugetlb=1' }

const METRICS_TOKEN = 'a-token-of-the-fault-tests'

/** Uploaded pictures are below PUBLIC_URL. */
const VARIABLES = { PUBLIC_URL: 'https://api.example.org', METRICS_TOKEN }

/** The limit of a pod in examples/kubernetes, and half of it, in MB. */
const MEMORY = 512
const LESS_MEMORY = 256

/** Why a fault is missing that limits memory. */
export const NO_GROUP = 'no control group of memory can be made here'

export const HONEST = '127.0.0.9'

/** How long an operation may wait, in milliseconds: the default of DATABASE_TIMEOUT. */
export const WAIT = 5000

/** Number of honest clients that watch lists. */
const LISTENERS = 100

/** How long the memory, streams and files may take to come back after an attack, in milliseconds. */
const RECOVERY = 30_000

/**
 * For how long the service may run until /livez is answered, in milliseconds. For how long it waits for a core is up to
 * the machine, which it shares with attackers, PostgreSQL and this client.
 */
const PAUSE = 50

/** The same with 2,144 reads of files, half of which are calls of the system and collections of garbage. */
const FILES_PAUSE = 100

/** The same with all attacks at once: half of the time after which Kubernetes gives up a probe. */
const LONG_PAUSE = 500

/** Maximum number of open files of the service after an attack, without sockets. */
const FILES_AT_REST = 50

/** How many seconds a soak takes. */
const SOAK = 600

/** How much more memory the second half of an attack may have than the first one. */
const GROWTH = 1.2

/** Attacks that also run with LESS_MEMORY in a short run. */
const SHORT_SMALL = /^(bodies|400|2,000|pipelined|copies|sixteen|drafts|pictures of millions)|one byte$/

/** Early refusals do not help, so that only measured memory does. */
const UNREFUSED = { MAX_HELD_BYTES: '10000000000' }

/** Numbers of honest readers and of imported people. */
const READERS = 64
const IMPORTED = 20_000

const IMPORT = 'memory: an import beside many readers'

interface Options {
  variables?: NodeJS.Dict<string>
  /** Memory of the control group, in MB. */
  memory?: number
  /** Duration of the attack. */
  seconds?: number
  /** Memory that the process keeps afterwards, in MB, because of a library that the attack makes it load. */
  kept?: number
  /** A table in which nobody can write during the attack. */
  locked?: string
  /** Whether the honest network is one of hundreds that want as much, so that its requests wait for theirs. */
  isCrowd?: boolean
  /** For how long the service may run until /livez is answered, in milliseconds. */
  pause?: number
  /** Whether only measured memory stops it, so that connections of its network must be closed. */
  closes?: boolean
}

export function memoryFaults ({ scope, directory, short }: Setting): Fault[] {
  const server = lazy(async () => {
    const { databaseUrl } = await startPrimary(scope, directory)
    const fixture = await createFixture(databaseUrl)
    return { fixture, DATABASE_URL: databaseUrl, author: await fill(fixture) }
  })

  const fault = (name: string, attacks: string[], options: Options = {}): Fault =>
    ({ name, run: () => run(name, attacks, options) })

  async function run (
    name: string, attacks: string[],
    { variables, memory = MEMORY, seconds = short ? 5 : 20, kept = 0, locked, pause = PAUSE, isCrowd, closes }: Options
  ) {
    const row: Row = rowOf(name, [], [])
    const own = scope.inner()
    const group = await createGroup(own, memory)
    if (!group) return { ...row, missing: NO_GROUP }
    const { fixture, DATABASE_URL, author } = await server()
    try {
      const service = await startService(own, directory, { ...VARIABLES, DATABASE_URL, ...variables }, group)
      const honest = openClient(service.url, 1, 2 * WAIT, HONEST)
      const probe = openClient(service.url, 1, 2 * WAIT, HONEST)
      own.teardown(() => [honest, probe].forEach(({ end }) => end()))
      const listeners = await openStreams(service.url, LISTENERS, HONEST)
      own.teardown(() => listeners.close())
      await visit(honest.send, fixture, short ? 1 : 2)
      const pid = service.child.pid!
      const before = short ? 1 : 3
      const [alone, usual] = await Promise.all([
        visit(honest.send, fixture, before), ping(probe.send, pid, until(before)),
      ])
      const rest = memoryOf(service) + kept

      if (locked) await lock(own, DATABASE_URL, locked)
      const port = Number(new URL(service.url).port)
      const attackers = startAttacks(attacks, { port, admin: fixture.admin, author })
      own.teardown(() => attackers.terminate())
      await once(attackers, 'message')
      await sleep(1000)
      const [outcomes, pauses, sizes] = await Promise.all([
        visit(honest.send, fixture, seconds), ping(probe.send, pid, until(seconds)), watchMemory(service, seconds),
      ])
      const [first, second] = [sizes.slice(0, sizes.length / 2), sizes.slice(sizes.length / 2)]
        .map(half => percentile(half, 100))
      // A slow machine holds less after the same time.
      const isClosedBy = performance.now() + (closes ? RECOVERY : 0)
      while (performance.now() < isClosedBy && !(await closedBy(service.url) > 0)) await sleep(100)
      await attackers.terminate()
      // Requests continue, because garbage is collected only on allocations.
      let after = memoryOf(service)
      const deadline = performance.now() + (short || variables !== RETURNED ? 0 : RECOVERY)
      while (after > rest * 4 / 3 && performance.now() < deadline) {
        await Promise.all(Array.from({ length: 500 }, () => probe.send({ method: 'GET', path: '/livez' })))
        await visit(honest.send, fixture, 1)
        after = memoryOf(service)
      }

      judge(row, alone, outcomes, !short && !isCrowd)
      const closed = await closedBy(service.url)
      const longest = (list: Pause[], time: keyof Pause) => Math.round(percentile(list.map(pause => pause[time]), 100))
      row.note = `${closed} connections were closed; /livez took up to ` +
        `${longest(pauses, 'took')} ms, for up to ${longest(pauses, 'ran')} ms of which the service ran, and ` +
        `${longest(usual, 'took')} and ${longest(usual, 'ran')} ms without it; memory ` +
        `${rest} MB, then up to ${first} and ${second} MB, afterwards ${after} MB`
      const { exitCode, signalCode } = service.child
      const end = signalCode ?? exitCode
      if (end !== null) row.problems.push(`the service has ended: ${end}`)
      // A stream ends after three to five minutes.
      const watching = seconds === SOAK ? await openStreams(service.url, LISTENERS, HONEST) : listeners
      own.teardown(() => watching.close())
      row.problems.push(...await watching.check(WAIT))
      if (closes && !(closed > 0)) row.problems.push('measured memory closed no connection')
      const ended = performance.now() + RECOVERY
      const open = watching.streams.filter(stream => !stream.ended).length
      const haveLeft = async () => end !== null || await metricOf(service.url, 'live_clients') === open
      while (!await haveLeft() && performance.now() < ended) await sleep(100)
      if (!await haveLeft()) row.problems.push('streams of the attackers are open afterwards')
      while (filesOf(pid) > FILES_AT_REST && performance.now() < ended) await sleep(100)
      if (filesOf(pid) > FILES_AT_REST) row.problems.push(`${filesOf(pid)} files are open afterwards`)
      // Other work on the machine delays the rest.
      if (short) return row
      if (row.slowest * 1000 > WAIT + 1000) row.problems.push(`a request took ${row.slowest.toFixed(1)} s`)
      if (longest(pauses, 'ran') > pause) row.problems.push(`it ran for ${longest(pauses, 'ran')} ms before /livez`)
      if (seconds === SOAK && second! > first! * GROWTH) row.problems.push('its memory grows')
      // By default, glibc keeps freed memory for the next allocation.
      if (variables === RETURNED && after > rest * 4 / 3) {
        row.problems.push(`it has ${after} MB afterwards, and ${rest} MB at rest`)
      }
      return row
    } finally {
      await own.end()
      // Otherwise, the lists of later attacks would have them.
      await fixture.look(sql => sql`DELETE FROM events WHERE date > now() AND length(description) > 200000`)
    }
  }

  /** Members upload photos with their phones at once. */
  async function uploadPhotos (name: string, count: number, side: number) {
    const row: Row = rowOf(name, [], [])
    const own = scope.inner()
    const group = await createGroup(own)
    if (!group) return { ...row, missing: NO_GROUP }
    const { fixture, DATABASE_URL } = await server()
    const body = await photo(side).jpeg({ quality: 50 }).toBuffer()
    try {
      const { url, child } = await startService(own, directory, { ...VARIABLES, DATABASE_URL }, group)
      const probe = openClient(url, 1, 2 * WAIT, HONEST)
      own.teardown(() => probe.end())
      const start = performance.now()
      const times: number[] = []
      const uploads = fixture.students.slice(0, count).map(async ({ token }) => {
        const status = await uploadByPhone(url, token, body)
        times.push(performance.now() - start)
        return status
      })
      let isDone = false
      const [statuses, pauses] = await Promise.all([
        Promise.all(uploads).finally(() => { isDone = true }), ping(probe.send, child.pid!, () => isDone),
      ])
      row.sent = count
      row.answered = statuses.filter(status => status === 201).length
      row.failed = count - row.answered
      row.slowest = Math.max(...times) / 1000
      const ran = Math.round(percentile(pauses.map(pause => pause.ran), 100))
      const took = Math.round(percentile(pauses.map(pause => pause.took), 100))
      row.note = `photos of ${Math.round(body.length / 1000)} KB; /livez up to ${took} ms, for up to ${ran} ms of ` +
        'which the service ran'
      if (row.failed > 0) row.problems.push(`the uploads were ${statuses}`)
      const closed = await closedBy(url)
      if (closed !== 0) row.problems.push(`${closed} connections were closed`)
      if (!short && ran > PAUSE) row.problems.push(`it ran for ${ran} ms before /livez`)
      return row
    } finally {
      await own.end()
    }
  }
  const photos = (name: string, count: number, side: number): Fault =>
    ({ name, run: () => uploadPhotos(name, count, side) })

  /** Ordinary work of one network that takes as much as it may: an import beside many readers. */
  async function work (name: string): Promise<Row> {
    const row: Row = rowOf(name, [], [])
    const own = scope.inner()
    const group = await createGroup(own)
    if (!group) return { ...row, missing: NO_GROUP }
    const { fixture, DATABASE_URL } = await server()
    try {
      const { url } = await startService(own, directory, { ...VARIABLES, DATABASE_URL }, group)
      const client = openClient(url, READERS, 2 * WAIT, HONEST)
      own.teardown(client.end)
      const lists = ['/events', '/clubs', '/mentors', '/blogs', '/testimonials', '/agenda']
      const isOver = until(short ? 2 : 10)
      const reading = Promise.all(Array.from({ length: READERS }, async (_, n) => {
        const outcomes: Outcome[] = []
        for (let turn = n; !isOver(); turn++) {
          const path = lists[turn % lists.length]!
          outcomes.push({ ...await client.send({ method: 'GET', path }), body: undefined })
        }
        return outcomes
      }))
      const file = join(directory, `${randomUUID()}.csv`)
      const rows = Array.from({ length: IMPORTED }, () => `${randomUUID()}@example.org,Ada,Lovelace`)
      await writeFile(file, ['email,firstName,lastName', ...rows].join('\n'))
      // It runs in the container of the service, so it shares the memory.
      const command = 'echo $$ > "$0" && exec "$@"'
      const args = ['-c', command, group, process.execPath, join(ROOT, 'dist/lib/cli.js'), 'user', 'import', file]
      await promisify(execFile)('sh', args, { env: { ...process.env, DATABASE_URL } })
      const outcomes = (await reading).flat()
      judge(row, outcomes, outcomes, false)
      const failures = outcomes.filter(({ status }) => status !== 200)
      if (failures.length > 0) row.problems.push(`requests failed: ${statusesOf(failures)}`)
      const closed = await closedBy(url)
      if (closed !== 0) row.problems.push(`${closed} connections were closed`)
      row.note = `${IMPORTED} people were imported beside ${READERS} readers`
      delete row.medians
      return row
    } finally {
      await own.end()
      await fixture.look(sql => sql`DELETE FROM users WHERE first_name = 'Ada' AND last_name = 'Lovelace'`)
    }
  }

  const optionsOf = (name: string): Options => ({
    // It is the same from the second on in which the last stream opens.
    ...name === UNREAD_STREAMS && short && { seconds: 4 },
    ...name === EXPORTS_OF_NETWORKS && { isCrowd: true },
    ...name === FILES && { pause: FILES_PAUSE },
    ...name === ABANDONED && { locked: 'pictures' },
    // In production, the service then does not know its own URL.
    ...name === HOST && { variables: { PUBLIC_URL: undefined } },
  })

  const all = Object.keys(ATTACKS)
  // Each network of a crowd has the same share as the honest one: its requests took 9 seconds beside all attacks.
  const together = all.filter(name => name !== EXPORTS_OF_NETWORKS)
  const small = all.filter(name => !short || SHORT_SMALL.test(name))
  return [
    photos('memory: twenty members upload photos of 12 megapixels', 20, 3464),
    photos('memory: sixteen members upload photos of 36 megapixels', 16, 6000),
    { name: IMPORT, run: () => work(IMPORT) },
    ...all.map(name => fault(`memory: ${name}`, [name], optionsOf(name))),
    ...small.map(name => fault(`memory: ${name}, 256 MB`, [name], { ...optionsOf(name), memory: LESS_MEMORY })),
    fault(`memory: ${BODIES}, none refused`, [BODIES], { variables: UNREFUSED, closes: true }),
    fault(`memory: ${FEWER_BODIES}, none refused, 256 MB`, [FEWER_BODIES], {
      variables: UNREFUSED, closes: true, memory: LESS_MEMORY,
    }),
    fault(`memory: ${BODIES_OF_NETWORKS}, none refused, 256 MB`, [BODIES_OF_NETWORKS], {
      variables: UNREFUSED, closes: true, memory: LESS_MEMORY,
    }),
    fault('memory: returned by glibc', ['everything of an author of 300 MB'], { variables: RETURNED }),
    fault(`memory: ${UPLOADS}, returned by glibc`, [UPLOADS], { variables: RETURNED, kept: 40 }),
    fault('memory: all at once', together, { pause: LONG_PAUSE }),
    // A short run does not wait for the memory.
    ...short ? [] : [fault(`memory: ${FOREIGN_TOKENS}, returned by glibc`, [FOREIGN_TOKENS], { variables: RETURNED })],
    ...short ? [] : [fault('memory: all at once, ten minutes', together, { seconds: SOAK, pause: LONG_PAUSE })],
  ]
}

type Send = (request: Request) => Promise<Outcome>

/** Uploads a photo at 3 MB per second. Returns the status. */
async function uploadByPhone (url: string, token: string, body: Buffer) {
  const headers = {
    authorization: `Bearer ${token}`, 'content-type': 'image/jpeg', 'content-length': body.length,
  }
  const outgoing = request(`${url}/me/pictures`, { method: 'POST', headers })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  for (let start = 0; start < body.length; start += 60_000) {
    outgoing.write(body.subarray(start, start + 60_000))
    await sleep(20)
  }
  outgoing.end()
  const [response] = await answered
  response.resume()
  return response.statusCode
}

/** Reads lists, likes and signs in, one after the other. */
export async function visit (send: Send, { likes }: Fixture, seconds: number) {
  const outcomes: Outcome[] = []
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const [{ token }, mentor] = likes.next().value!
    for (const request of [
      { method: 'GET', path: '/clubs' },
      { method: 'POST', path: `/mentors/${mentor}/like`, token },
      { method: 'GET', path: '/testimonials' },
      { method: 'POST', path: '/auth/login', body: { email: 'honest@example.org', password: PASSWORD } },
    ] satisfies Request[]) {
      const outcome = await send(request)
      // Ten minutes of bodies would fill the heap of this process.
      outcomes.push({ ...outcome, body: undefined })
      // A service that has ended refuses connections at once, so the pairs would be used up.
      if (outcome.error) await sleep(100)
    }
  }
  return outcomes
}

interface Pause {
  /** Duration of a request for /livez, and the processor time of the service during it, in milliseconds. */
  took: number
  ran: number
}

/** Returns a function that tells whether so many seconds have passed since now. */
function until (seconds: number) {
  const end = performance.now() + seconds * 1000
  return () => performance.now() >= end
}

/** Asks for /livez every ten milliseconds. */
async function ping (send: Send, pid: number, isOver: () => boolean) {
  const pauses: Pause[] = []
  while (!isOver()) {
    const before = timeOf(pid)
    const { took } = await send({ method: 'GET', path: '/livez' })
    pauses.push({ took, ran: timeOf(pid) - before })
    await sleep(10)
  }
  return pauses
}

/** Inserts long texts, as people could have sent them before. Returns an author of drafts, by the id of a draft. */
export async function fill ({ look }: Fixture): Promise<Author> {
  const password = await hashPassword(PASSWORD)
  const { id, author, event, others } = await look(async sql => {
    await sql`
      INSERT INTO users (email, password, first_name, last_name) VALUES ('honest@example.org', ${password}, 'Eva', 'Lu')
    `
    await sql`
      INSERT INTO users (email, password, first_name, last_name)
      SELECT 'long-' || n || '@example.org', '!', repeat('x', 16000), 'Long' FROM generate_series(1, 5000) AS n
    `
    const [club] = await sql`SELECT id FROM clubs LIMIT 1`
    await sql`
      INSERT INTO events (title, description, date, club_id)
      SELECT 'Event', CASE WHEN n <= 50 THEN repeat('long ', 50000) ELSE repeat('short ', 50) END, now(), ${club!.id}
      FROM generate_series(1, 10000) AS n
    `
    const others = await sql<{ id: string }[]>`
      WITH others AS (
        INSERT INTO users (email, password, first_name, last_name)
        SELECT 'author-' || n || '@example.org', '!', 'A', 'B' FROM generate_series(1, 6) AS n RETURNING id
      ), drafts AS (
        INSERT INTO blogs (title, content, author_id)
        SELECT 'Draft', repeat(md5(n::text), 32000), id FROM others, generate_series(1, 48) AS n
      )
      SELECT id FROM others
    `
    const [draft] = await sql<[{ id: string, author: string, event: string }]>`
      WITH author AS (
        INSERT INTO users (email, password, first_name, last_name) VALUES ('author@example.org', '!', 'A', 'B')
        RETURNING id
      )
      INSERT INTO blogs (title, content, author_id)
      SELECT 'Draft', repeat(md5(n::text), 32000), id FROM author, generate_series(1, 300) AS n
      RETURNING
        id, author_id AS author,
        (SELECT id FROM events WHERE length(description) > 200000 ORDER BY id LIMIT 1) AS event
    `
    return { ...draft, others }
  })
  const tokens = await Promise.all(others.map(({ id }) => signToken(id, 'STUDENT')))
  return { id, token: await signToken(author, 'STUDENT'), event, others: tokens }
}

/** Blocks writes to a table until the scope ends. */
async function lock (scope: Scope, databaseUrl: string, table: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  scope.teardown(() => sql.end({ timeout: 0 }))
  await new Promise<void>((resolve, reject) => {
    sql.begin(async transaction => {
      await transaction`LOCK TABLE ${transaction(table)} IN SHARE MODE`
      resolve()
      return new Promise(() => {})
    }).catch(reject)
  })
}

/** For how long the main thread of a process has run, in milliseconds. */
const timeOf = (pid: number) => Number(readProcess(`${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e6

/** The resident memory of a service, in MB. */
export function memoryOf ({ child }: Service) {
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(readProcess(`${child.pid}/status`))?.[1] ?? 0) / 1024)
}

/** How many connections a service has closed because its memory was short. NaN if it does not answer. */
const closedBy = (url: string) => metricOf(url, 'memory_connections_closed_total')

/** A metric without labels. NaN if the service does not answer. */
async function metricOf (url: string, name: string) {
  const { body } = await send(url, { method: 'GET', path: '/metrics', token: METRICS_TOKEN })
  return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(body)?.[1])
}

/** Number of open files of a process, without sockets. */
function filesOf (pid: number) {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter(fd => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('/')).length
  } catch {
    return 0
  }
}

/** A file of /proc; empty if the process has ended. */
function readProcess (path: string) {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch {
    return ''
  }
}

/** The memory of a service, in MB, once a second. */
async function watchMemory (service: Service, seconds: number) {
  const sizes: number[] = []
  for (let n = 0; n < seconds; n++) {
    sizes.push(memoryOf(service))
    await sleep(1000)
  }
  return sizes
}

/** Does work that may fail at first, for some seconds. */
async function retry<T> (work: () => Promise<T>) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === 50) throw error
      await sleep(100)
    }
  }
}

/**
 * Creates a control group with so many megabytes. Returns its file of processes; `undefined` if control groups are
 * unavailable.
 */
export async function createGroup (scope: Scope, megabytes = MEMORY) {
  const versions = [['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'], ['/sys/fs/cgroup', 'memory.max']] as const
  for (const [root, file] of versions) {
    const path = join(root, `community-faults-${process.pid}-${Date.now()}`)
    try {
      await mkdir(path)
      // A process that has just ended may still be in it.
      scope.teardown(() => retry(() => rmdir(path)))
      await writeFile(join(path, file), String(megabytes * 2 ** 20))
      return join(path, 'cgroup.procs')
    } catch {}
  }
}
