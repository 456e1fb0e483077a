import { setTimeout as sleep } from 'node:timers/promises'

import type { Case } from './cases.ts'
import { interrupted } from './cleanup.ts'
import type { Options } from './options.ts'
import { cpuSeconds, forgetPeak, residentMemory } from './proc.ts'
import type { Server } from './programs.ts'
import { percentile } from './statistics.ts'
import { showMeasure } from './tables.ts'
import type { World } from './world.ts'
import { type Outcome, wrk } from './wrk.ts'

/** What was measured of one case. */
export interface Measure {
  case: string
  /** The service, a floor or a peer. */
  target: string
  /** The data. */
  world: string
  connections: number
  /** Answers a second. */
  rate: number
  /** Milliseconds. What follows is missing where it was not looked at. */
  p50?: number
  p99?: number
  /** Seconds of processor time of the server for 1,000 answers. */
  cpu?: number
  /** The highest resident memory of the server, in megabytes. */
  peak?: number
  /** Answers a second in each turn, where others had theirs in between. */
  rates?: number[]
}

/** How often it is each one's turn, unless told: often, for a shared machine has its moments. */
const TURNS = 5

/** Slow answers are measured longer, up to so many times, until every connection was answered so often. */
const LONGEST = 5
const TIMES = 3

/** The connections at most that warm a server up for an operation, and for how many seconds. */
const WARM = 16
const WARM_SECONDS = 1

/** Everything that a run of the benchmark finds out. */
export class Findings {
  readonly options: Options
  readonly measures: Measure[] = []
  /** What failed; any of it fails the run. */
  readonly problems: string[] = []
  /** Facts besides rates, by name. */
  readonly facts: Record<string, number | string | boolean> = {}
  /** Answers a second while it warmed up, by server and case. */
  readonly #warm = new Map<string, number>()

  constructor (options: Options) {
    this.options = options
  }

  wants (name: string) {
    return this.options.only.test(name)
  }

  add (measure: Measure) {
    this.measures.push(measure)
    showMeasure(measure)
  }

  /** Notes what is not as it must be. */
  fail (problem: string) {
    this.problems.push(problem)
    console.log(`! ${problem}`)
  }

  find (name: string, target: string, connections = 64, world = 'main') {
    return this.measures.find(measure => measure.case === name && measure.target === target &&
      measure.connections === connections && measure.world === world)
  }

  /** Measures a case for so many seconds, and adds what was found. */
  async measure (...run: Parameters<Findings['run']>): Promise<Outcome> {
    const { outcome, ...measure } = await this.run(...run)
    this.add(measure)
    return outcome
  }

  /**
   * Makes several measurements in turns, and adds the middle one of each: what else the machine does meanwhile is then
   * the same for all, and what counts is how they compare.
   */
  async compare (runs: (() => Promise<Measure>)[], turns = TURNS) {
    const found: Measure[][] = runs.map(() => [])
    for (let turn = 0; turn < turns; turn++) {
      for (const [index, run] of runs.entries()) found[index]!.push(await run())
    }
    for (const measures of found) {
      const { case: name, target, world, connections } = measures[0]!
      const rates = measures.map(({ rate }) => rate)
      const middle = (name: 'p50' | 'p99' | 'cpu' | 'peak') => percentile(measures.map(measure => measure[name]!), 50)
      this.add({
        case: name,
        target,
        world,
        connections,
        rate: percentile(rates, 50),
        p50: middle('p50'),
        p99: middle('p99'),
        cpu: middle('cpu'),
        peak: middle('peak'),
        rates,
      })
    }
  }

  /** Measures a case for so many seconds, after warming up when it is the first time of this server. */
  async run (
    world: World, server: Server, operation: Case, connections: number, seconds = this.options.seconds
  ): Promise<Measure & { outcome: Outcome }> {
    const { name } = operation
    const key = `${server.url} ${name}`
    if (!this.#warm.has(key)) {
      const { load } = await operation.prepare(world, server)
      const { requests, seconds } = await wrk(server.url, load, Math.min(WARM, connections), WARM_SECONDS)
      this.#warm.set(key, requests / seconds)
    }
    const enough = Math.ceil(TIMES * connections / this.#warm.get(key)!)

    const { load, check } = await operation.prepare(world, server)
    await settle(world, server)
    await forgetPeak(server.pid)
    const before = await cpuSeconds(server.pid)
    const outcome = await wrk(
      server.url, load, connections, Math.min(Math.max(seconds, enough), seconds * LONGEST)
    )
    const cpu = await cpuSeconds(server.pid) - before
    const { peak } = await residentMemory(server.pid)
    const answers = operation.statuses ? outcome.statuses[200] ?? 0 : outcome.requests
    const settled = await settle(world, server)
    if (!settled) this.fail(`${server.name} still works on ${name} a minute after the last request`)
    const problem = judge(outcome, operation.statuses) ?? await check?.(outcome, connections)
    if (problem) this.fail(`${name} of ${server.name}, ${world.name}, ${connections} connections: ${problem}`)
    return {
      case: name,
      target: server.name,
      world: world.name,
      connections,
      rate: answers / outcome.seconds,
      p50: outcome.p50,
      p99: outcome.p99,
      cpu: answers > 0 ? cpu / answers * 1000 : undefined,
      peak,
      outcome,
    }
  }
}

/** Says what is wrong with the answers; `undefined` when nothing is. */
export function judge ({ requests, refused, broken, timeouts, statuses }: Outcome, expected?: number[]) {
  const unexpected = Object.keys(statuses).filter(status => !expected?.includes(Number(status)))
  if (requests === 0) return 'no answer'
  if (broken > 0) return `${broken} connections failed`
  if (timeouts > 0) return `${timeouts} answers took too long`
  if (expected && unexpected.length > 0) return `answers with status ${unexpected.join(', ')}`
  if (!expected && refused > 0) return `${refused} of ${requests} answers had a status from 400 on`
}

/** How long a server may go on with what nobody waits for any more, in milliseconds. */
const PATIENCE = 60_000

/** Waits until neither the server nor its database works on requests of before; tells whether that came to pass. */
export async function settle ({ sql }: World, { pid }: Server) {
  const deadline = Date.now() + PATIENCE
  while (Date.now() < deadline) {
    interrupted.throwIfAborted()
    const before = await cpuSeconds(pid)
    await sleep(50)
    const idle = await cpuSeconds(pid) - before < 0.02
    const [busy] = await sql`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend' AND state <> 'idle' AND
        pid <> pg_backend_pid()
      LIMIT 1
    `
    if (idle && !busy) return true
  }
  return false
}
