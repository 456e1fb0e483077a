import { setTimeout as sleep } from 'node:timers/promises'

import { BLOG, type Case, COMMITS, LIKE, LISTS, LOGIN, ME, REGISTER_ONE } from '../cases.ts'
import { interrupted } from '../cleanup.ts'
import { type Findings, judge, settle } from '../measure.ts'
import { residentMemory } from '../proc.ts'
import type { Server } from '../programs.ts'
import { mean } from '../statistics.ts'
import { figure } from '../tables.ts'
import type { World } from '../world.ts'
import { prepareCommits, startWriter } from '../writer.ts'
import { wrk } from '../wrk.ts'

/** How long nobody asks for anything before a service counts as at rest, in milliseconds. */
const REST = 20_000

/** Milliseconds between two looks at the memory. */
const INTERVAL = 5_000

/** What ten minutes of load did to the memory, in megabytes. */
export interface Soak {
  date: string
  minutes: number
  /** Mean of every minute. */
  memory: number[]
  /** The last fifth of the time against the second fifth. */
  growth: number
  atRest: number
}

/** The resident memory of the service when it has had nothing to do for a while, in megabytes. */
export async function measureRest (world: World, service: Server) {
  await settle(world, service)
  await sleep(REST, undefined, { signal: interrupted })
  return (await residentMemory(service.pid)).now
}

/** Everything at the same time, for so many minutes: all lists, a blog, accounts, registrations, likes, sign-ins. */
export async function soak (findings: Findings, world: World, service: Server, minutes: number): Promise<Soak> {
  const writer = startWriter(await prepareCommits(world), COMMITS)
  const loads: { operation: Case, connections: number }[] = [
    ...[...LISTS, BLOG, ME].map(operation => ({ operation, connections: 8 })),
    ...[REGISTER_ONE, LIKE, LOGIN].map(operation => ({ operation, connections: 1 })),
  ]
  const answered = loads.map(async ({ operation, connections }) => {
    const { load, check } = await operation.prepare(world, service)
    const outcome = await wrk(service.url, load, connections, minutes * 60)
    const problem = judge(outcome, operation.statuses) ?? await check?.(outcome, connections)
    if (problem) findings.fail(`${operation.name}: ${problem}`)
    console.log(`${operation.name}: ${outcome.requests.toLocaleString('en')} requests`)
  })

  const samples: number[] = []
  const ended = Promise.all(answered).then(() => true)
  while (!await Promise.race([ended, sleep(INTERVAL, false)])) {
    samples.push((await residentMemory(service.pid)).now)
    console.log(`${(samples.length * INTERVAL / 60_000).toFixed(2)} min  ${figure(samples.at(-1))} MB`)
  }
  await writer.stop()

  const part = (from: number, to: number) => mean(samples.slice(samples.length * from, samples.length * to))
  return {
    date: new Date().toISOString().slice(0, 10),
    minutes,
    memory: Array.from({ length: minutes }, (_, minute) => Math.round(part(minute / minutes, (minute + 1) / minutes))),
    growth: part(0.8, 1) / part(0.2, 0.4),
    atRest: await measureRest(world, service),
  }
}
