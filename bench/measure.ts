import { readFile, truncate, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Case, Load, Outcome } from './cases.ts'
import type { Fixture } from './fixture.ts'
import { get } from './http.ts'
import { interrupted, run, type Server, source } from './programs.ts'
import { type Figures, type Measure, median, type Results } from './results.ts'

/** Sends requests over connections at a rate or, without a rate, each time after a response. */
export async function wrk (
  url: string, { path = '', headers = {}, args = [] }: Load, connections: number, seconds: number, rate = 0
): Promise<Outcome> {
  const stdout = await run('wrk', [
    '--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`, '--timeout', '120s',
    ...Object.entries(headers).flatMap(([name, value]) => ['--header', `${name}: ${value}`]),
    '--script', source('wrk.lua'), url + path, '--', String(rate), ...args,
  ])
  return JSON.parse(stdout.trim().split('\n').at(-1)!)
}

/** Returns the problem of an outcome; `undefined` if the outcome is fine. */
export function problemOf ({ requests, refused, broken, late }: Outcome) {
  if (requests === 0) return 'no response'
  if (refused + broken + late > 0) return `${refused} responses from 400 on, ${broken} failed connections, ${late} late`
}

/** The rate at warm-up, by URL and case. */
const warm = new Map<string, number>()

/** Measures a case on a server, after a warm-up of a second the first time. */
export async function measure (
  results: Results, fixture: Fixture, server: Server, operation: Case, connections = 64
): Promise<Measure & { outcome: Outcome }> {
  const { name, rate: fixed, prepare } = operation
  const key = `${server.url} ${name}`
  if (!warm.has(key)) {
    const { load } = await prepare(fixture, server.url)
    const { requests, seconds } = await wrk(server.url, load, Math.min(16, connections), 1)
    warm.set(key, requests / seconds)
    await settle(fixture, server)
  }
  // A second; with slow responses up to five, for three on each connection.
  const enough = Math.min(Math.max(1, Math.ceil(3 * connections / warm.get(key)!)), 5)
  const { load, check } = await prepare(fixture, server.url)
  // Resets the peak of the resident memory.
  for (const pid of server.pids) await writeFile(`/proc/${pid}/clear_refs`, '5')
  const before = await cpuSeconds(server)
  const outcome = await wrk(server.url, load, connections, fixed ? 3 : enough, fixed)
  const cpu = await cpuSeconds(server) - before
  const { peak } = await residentMemory(server)
  await settle(fixture, server)
  // The log would fill the disk: it has a line for each request.
  await truncate(server.log)

  const { seconds, p50, p99 } = outcome
  const responses = outcome.requests - outcome.refused
  const problem = problemOf(outcome) ?? await check?.(outcome, connections)
  if (problem) results.fail(`${name} of ${server.name}: ${problem}`)
  const rate = responses / seconds
  return { case: name, of: server.name, rate, p50, p99, cpu: cpu / responses * 1000, peak, outcome }
}

/** Waits until the server and its database have finished earlier requests. Throws after a minute. */
export async function settle ({ sql }: Fixture, server: Server) {
  const end = Date.now() + 60_000
  while (Date.now() < end) {
    interrupted.throwIfAborted()
    const before = await cpuSeconds(server)
    await sleep(50)
    const [busy] = await sql`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle' AND
        pid <> pg_backend_pid()
    `
    if (!busy && await cpuSeconds(server) - before < 0.02) return
  }
  throw new Error(`${server.name} is still busy a minute after the last request`)
}

/** Runs one turn of the service, a baseline or the alternative. */
export interface Contender {
  run (): Promise<Measure>
  /** Runs in every second turn only. */
  seldom?: boolean
}

/**
 * Measures contenders in turns, and adds the median of each. The speed of a machine varies, but little within a turn:
 * goals compare the ratios of the turns.
 */
export async function compare (results: Results, contenders: Contender[], turns: number) {
  const found: (Measure | undefined)[][] = contenders.map(() => [])
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, { run, seldom }] of contenders.entries()) {
      found[index]!.push(seldom && turn % 2 === 1 ? undefined : await run())
    }
  }
  for (const measures of found) {
    const { case: name, of } = measures[0]!
    const middle = (field: keyof Figures) => median(measures.map(measure => measure?.[field] ?? NaN))
    const [rate, p50, p99, cpu, peak] = (['rate', 'p50', 'p99', 'cpu', 'peak'] as const).map(middle)
    results.add({ case: name, of, rate: rate!, p50, p99, cpu, peak, rates: measures.map(measure => measure?.rate) })
  }
}

/**
 * Runs a task at an interval, without waiting for earlier runs, until it is stopped. `stop` returns all results, or
 * throws the first error.
 */
export function startRepeating<T> (interval: number, task: () => Promise<T>) {
  const started: Promise<T>[] = []
  const timer = setInterval(() => {
    const result = task()
    // `stop` reports it.
    result.catch(() => {})
    started.push(result)
  }, interval)
  return {
    stop () {
      clearInterval(timer)
      return Promise.all(started)
    },
  }
}

/** Returns the milliseconds until a GET request has its complete response. Throws unless the status is 200. */
export async function latency (url: string) {
  const start = performance.now()
  const { status } = await get(url)
  if (status !== 200) throw new Error(`${url} responded with status ${status}`)
  return performance.now() - start
}

/**
 * Milliseconds for which the main thread of a server runs until a GET request has its complete response. Excludes time
 * in which it waits for a core: on two cores, it competes with clients that read 30 MB, and with PostgreSQL.
 */
export async function runningTime ({ pids: [pid], url }: Server, path: string) {
  const now = async () => {
    const [nanoseconds] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ')
    return Number(nanoseconds) / 1e6
  }
  const start = await now()
  await latency(url + path)
  return await now() - start
}

/** The CPU time of all threads of these processes, in seconds. */
export function cpuSeconds ({ pids }: Pick<Server, 'pids'>) {
  return sumOf(pids, async pid => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name of the program is in parentheses; utime and stime, in hundredths of a second, are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  })
}

/** The current and the peak resident memory of a server, in megabytes of 10^6 bytes. */
export async function residentMemory ({ pids }: Server) {
  const megabytes = (field: string) => sumOf(pids, async pid => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)![1]) * 1024 / 1e6
  })
  return { now: await megabytes('VmRSS'), peak: await megabytes('VmHWM') }
}

async function sumOf (pids: number[], read: (pid: number) => Promise<number>) {
  return (await Promise.all(pids.map(read))).reduce((sum, value) => sum + value, 0)
}
