// Overload, and clients that keep connections open.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { hashPassword } from '#lib/auth/passwords.js'
import { type Fault, lazy, type Setting, startPrimary } from './database.ts'
import { createFixture, type Fixture, PASSWORD } from './fixture.ts'
import { openClient, type Outcome, type Request } from './http.ts'
import { RESPONSE_TIME, Load } from './load.ts'
import { type Row, rowOf } from './report.ts'
import { type Service, startService } from './service.ts'
import { openStreams } from './streams.ts'
import { allowance, percentile } from '../statistics.ts'

/** How long the service may let an operation wait, in milliseconds: the default of DATABASE_TIMEOUT. */
const WAIT = 5000

/** The limit for the p99 of the load during the overload: a multiple of the p99 without it. */
const BESIDE = { times: 8, least: 1000 }

/** The limit for the p99 of 503s: a multiple of the p99 of as many clients that request /livez. */
const REFUSAL = { times: 5, least: 1000 }

/** For how long a password may wait for its hash, in milliseconds, and how many wait for a core. */
const HASH_WAIT = 5000
const HASHES = 150

/** Number of clients that watch lists. */
const LISTENERS = 100

/** Timeout of the wait for connections, in milliseconds. */
const TIMEOUT = 20_000

export function overloadFaults ({ scope, directory, short }: Setting): Fault[] {
  const seconds = short ? 4 : 15
  const server = lazy(async () => {
    const { databaseUrl } = await startPrimary(scope, directory)
    return { fixture: await createFixture(databaseUrl), DATABASE_URL: databaseUrl }
  })

  /** Runs the work during a load, on a separate service. */
  async function beside (
    name: string, variables: NodeJS.Dict<string>,
    work: (service: Service, fixture: Fixture, load: Load) => Promise<Found>
  ): Promise<Row> {
    const { fixture, DATABASE_URL } = await server()
    const own = scope.inner()
    try {
      const service = await startService(own, directory, { DATABASE_URL, ...variables })
      const load = new Load(fixture, service.url, {
        wait: WAIT, readers: 4, writers: 4, allows: isRefusal, isOverload: true,
      })
      const listeners = await openStreams(service.url, LISTENERS)
      own.teardown(() => listeners.close())
      await load.start()
      const { note, problems } = await work(service, fixture, load)
      const p99 = percentile(load.latencies, 99)
      const { refused } = load
      const over = performance.now()
      await sleep(1000)
      await load.stop()

      const row = rowOf(name, [load], await load.ledger.findLost(fixture))
      row.recovery = Math.max(0, load.lastFailure.end - over) / 1000
      row.note = `${note}; beside it 99 % of the load took up to ${Math.round(p99)} ms, and ` +
        `${Math.round(load.usual)} ms without it` + (refused > 0 ? `, and ${refused} requests of it were refused` : '')
      row.problems.push(...problems, ...await listeners.check(WAIT))
      if (!(p99 < allowance(load.usual, BESIDE))) row.problems.push(`99 % of the load took up to ${Math.round(p99)} ms`)
      if (load.failed > 0) row.problems.push(`${load.failed} requests failed`)
      if (load.refused > refused) row.problems.push('requests were rejected after it was over')
      const { exitCode, signalCode } = service.child
      if (exitCode !== null || signalCode !== null) row.problems.push('the service has ended')
      return row
    } finally {
      await own.end()
    }
  }

  return [
    {
      name: 'clients that register and sign in',
      async run () {
        const { fixture, DATABASE_URL } = await server()
        const own = scope.inner()
        try {
          const { url } = await startService(own, directory, { DATABASE_URL })
          const accounts = { wait: WAIT, readers: 0, pause: 0, onlyAccounts: true }
          const single = new Load(fixture, url, { ...accounts, writers: 1 })
          await single.start(2000)
          await single.stop()
          // So many that on one core the last password waits for half of its limit.
          const writers = Math.max(2, Math.min(64, Math.floor(HASH_WAIT / 2 / single.usual) * availableParallelism()))
          const load = new Load(fixture, url, { ...accounts, writers })
          await load.start()
          await sleep(short ? 5000 : 60_000)
          await load.stop()

          const row = rowOf(this.name, [single, load], await load.ledger.findLost(fixture))
          row.note = `${writers} clients`
          if (load.failed > 0) row.problems.push(`${load.failed} requests failed`)
          if (load.ledger.size < writers) row.problems.push(`only ${load.ledger.size} have registered`)
          return row
        } finally {
          await own.end()
        }
      },
    },
    {
      name: 'flood of sign-ins',
      run () {
        return beside(this.name, {}, async (service, fixture, load) => {
          const clients = 100 + HASHES * availableParallelism()
          const emails = await addAccounts(fixture, clients)
          return flood(service, load, seconds, clients, WAIT + HASH_WAIT, n => ({
            method: 'POST', path: '/auth/login', body: { email: emails[n], password: PASSWORD },
          }))
        })
      },
    },
    {
      name: 'flood of requests past MAX_REQUESTS',
      run () {
        return beside(this.name, { MAX_REQUESTS: '40' }, async (service, { students }, load) => {
          return flood(service, load, seconds, 300, WAIT, n => ({
            method: 'GET', path: '/events/registered', token: students[n % students.length]!.token,
          }))
        })
      },
    },
    {
      name: `${short ? '2,000' : '10,000'} idle connections`,
      async run () {
        const count = short ? 2000 : 10_000
        const idle = short ? 5 : 15
        try {
          await allowFiles(count + 1000)
        } catch (error) {
          return { ...rowOf(this.name, [], []), missing: `no more files may be opened (${(error as Error).message})` }
        }
        const variables = { IDLE_TIMEOUT: String(idle), REQUEST_TIMEOUT: String(idle) }
        return beside(this.name, variables, async (service, _fixture, { usual }) => {
          const before = await residentMemory(service)
          const sockets = await openIdle(service.url, count)
          const opened = performance.now()
          const grown = await residentMemory(service) - before
          await Promise.race([Promise.all(sockets.map(({ gone }) => gone)), sleep(TIMEOUT)])
          const seconds = (performance.now() - opened) / 1000
          const problems: string[] = []
          // Any load makes the heap grow by the constant part.
          if (grown > 100 + count * 0.03) problems.push(`they took ${Math.round(grown)} MB of memory`)
          const limit = idle + 2 + allowance(usual, RESPONSE_TIME) / 1000
          if (seconds > limit) problems.push(`the last one was closed after ${seconds.toFixed(1)} s`)
          const early = sockets.filter(({ responded }) => !responded).length
          if (early > 0) problems.push(`${early} got no response`)
          return { note: `they took ${Math.round(grown)} MB, and were closed after ${seconds.toFixed(1)} s`, problems }
        })
      },
    },
  ]
}

interface Found {
  note: string
  problems: string[]
}

/** A 503 with Retry-After. */
function isRefusal ({ status, headers }: Outcome) {
  return status === 503 && Number(headers['retry-after']) > 0
}

/** How long the clients are measured without an overload, in seconds. */
const MEASURED = 1

/**
 * Sends requests concurrently, each client one after the other, with a pause after outcomes for which `pauses` returns
 * true: without it, rejecting would take all of the CPU.
 */
async function sendAll (
  { send }: ReturnType<typeof openClient>, seconds: number, clients: number, request: (n: number) => Request,
  pauses: (outcome: Outcome) => boolean
) {
  const end = performance.now() + seconds * 1000
  await Promise.all(Array.from({ length: clients }, async (_, n) => {
    while (performance.now() < end) if (pauses(await send(request(n)))) await sleep(50)
  }))
}

/**
 * Sends requests over so many connections, and compares their durations with the durations of /livez. A request may
 * wait for so many milliseconds.
 */
async function flood (
  { url }: Service, load: Load, seconds: number, connections: number, wait: number, request: (n: number) => Request
): Promise<Found> {
  const client = openClient(url, connections, 2 * wait)
  const times: number[] = []
  const livez = (): Request => ({ method: 'GET', path: '/livez' })
  const unburdened = () => sendAll(client, MEASURED, connections, livez, ({ took }) => {
    times.push(took)
    return true
  })
  // The first run opens the connections.
  await unburdened()
  times.length = 0
  await load.measure(unburdened)
  const usual = percentile(times, 99)
  const served: number[] = []
  const refused: number[] = []
  const others = new Map<string, number>()
  await sendAll(client, seconds, connections, request, outcome => {
    if (outcome.status === 200) served.push(outcome.took)
    else if (isRefusal(outcome)) refused.push(outcome.took)
    else {
      const what = outcome.error ?? `${outcome.status} ${JSON.stringify(outcome.body)}`
      others.set(what, (others.get(what) ?? 0) + 1)
    }
    return outcome.status !== 200
  })
  client.end()
  const problems = [...others].map(([what, count]) => `${count} times ${what}`)
  const [p99, worst] = [percentile(refused, 99), percentile(served, 100)]
  if (served.length === 0) problems.push('nothing was served')
  if (refused.length === 0) problems.push('nothing was rejected: there was no overload')
  if (p99 > allowance(usual, REFUSAL)) problems.push(`99 % of the rejections took up to ${Math.round(p99)} ms`)
  if (worst > wait + allowance(usual, REFUSAL)) problems.push(`it took up to ${Math.round(worst)} ms to be served`)
  return {
    note: `${served.length} were served, in up to ${Math.round(worst)} ms; ${refused.length} were rejected, ` +
      `99 % of them in up to ${Math.round(p99)} ms (/livez took as many clients up to ${Math.round(usual)} ms)`,
    problems,
  }
}

/** Opens connections that send one request and stay idle. */
async function openIdle (url: string, count: number) {
  const { port } = new URL(url)
  const sockets: { responded: boolean, gone: Promise<unknown> }[] = []
  for (let n = 0; n < count; n++) {
    // A source address has some 28,000 ports.
    const localAddress = `127.0.0.${2 + Math.floor(n / 5000)}`
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress }).on('error', () => {})
    const idle = { responded: false, gone: new Promise(resolve => socket.on('close', resolve)) }
    socket.on('data', () => { idle.responded = true })
    socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
    sockets.push(idle)
    if (n % 100 === 0) await sleep(10)
  }
  const end = performance.now() + TIMEOUT
  while (performance.now() < end && sockets.some(({ responded }) => !responded)) await sleep(50)
  return sockets
}

/** Raises the limit of open files for this process and its children. */
async function allowFiles (count: number) {
  const limits = await readFile('/proc/self/limits', 'utf8')
  const [, soft] = /^Max open files +(\d+)/m.exec(limits)!
  if (Number(soft) >= count) return
  await promisify(execFile)('prlimit', ['--pid', String(process.pid), `--nofile=${count}:${count}`])
}

/** The resident memory of a service, in megabytes. */
async function residentMemory ({ child }: Service) {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) / 1024
}

/** Inserts accounts with the common password. */
async function addAccounts ({ look }: Fixture, count: number) {
  const password = await hashPassword(PASSWORD)
  const rows = await look(sql => sql<{ email: string }[]>`
    INSERT INTO users (email, password, first_name, last_name)
    SELECT new_id() || '@example.org', ${password}, 'Mary', 'Jackson' FROM generate_series(1, ${count}::int)
    RETURNING email
  `)
  return rows.map(({ email }) => email)
}
