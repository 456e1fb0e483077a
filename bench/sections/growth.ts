import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'

import { LOGIN, READS, USERS, WRITES } from '../cases.ts'
import { fill, ONCE, times } from '../data.ts'
import type { DatabaseServer } from '../database.ts'
import type { Findings } from '../measure.ts'
import { cpuSeconds, forgetPeak, residentMemory } from '../proc.ts'
import type { Server } from '../programs.ts'
import { startService } from '../service.ts'
import { percentile } from '../statistics.ts'
import { openWorld, type World } from '../world.ts'
import { type Commit, prepareCommits } from '../writer.ts'

export const AFTER_COMMIT = 'GET /events after every commit'

/** So many seconds at most for each measurement, for there are many. */
const LONGEST = 2

/** The names of the data in the tables. */
export const growthName = (factor: number) => `${factor}x`

/** Every operation on ever more data, over 64 connections. */
export async function measureGrowth (findings: Findings, databases: DatabaseServer, directory: string) {
  const wants = (name: string) => findings.wants(`growth: ${name}`)
  const operations = [...READS, ...WRITES, LOGIN].filter(({ name }) => wants(name))
  if (operations.length === 0 && !wants(AFTER_COMMIT)) return
  for (const factor of findings.options.quick ? [1, 10] : [1, 10, 100]) {
    const name = growthName(factor)
    const databaseUrl = await databases.create(name)
    await fill(databaseUrl, times(factor, ONCE), directory)
    const world = await openWorld(name, databaseUrl, directory)
    const service = await startService(world)
    if (wants(AFTER_COMMIT)) await measureAfterCommits(findings, world, service, await prepareCommits(world))
    for (const operation of operations) {
      // All users at once are many megabytes, which nobody needs 64 times a second.
      const connections = operation === USERS ? 1 : 64
      await findings.measure(world, service, operation, connections, Math.min(findings.options.seconds, LONGEST))
    }
    await service.stop()
    await world.close()
    await databases.drop(name)
  }
}

interface Answer {
  events: { registrationCount: number }[]
}

/** One connection asks; after every answer somebody else commits, which the next answer must show. */
async function measureAfterCommits (findings: Findings, world: World, service: Server, commit: Commit) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const url = `${service.url}/events`
  const latencies: number[] = []

  async function ask () {
    const start = performance.now()
    const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
      get(url, { agent }, resolve).on('error', reject)
    })
    const body = await text(response)
    latencies.push(performance.now() - start)
    const { events } = JSON.parse(body) as Answer
    return events.reduce((sum, { registrationCount }) => sum + registrationCount, 0)
  }

  async function run (seconds: number) {
    const end = performance.now() + seconds * 1000
    let stale = 0
    for (let count = await ask(), next; performance.now() < end; count = next) {
      await commit()
      next = await ask()
      if (next !== count + 1) stale++
    }
    return stale
  }

  const staleAtFirst = await run(1)
  latencies.length = 0
  await forgetPeak(service.pid)
  const before = await cpuSeconds(service.pid)
  const start = performance.now()
  const stale = staleAtFirst + await run(findings.options.seconds)
  const seconds = (performance.now() - start) / 1000
  const cpu = await cpuSeconds(service.pid) - before
  agent.destroy()
  findings.add({
    case: AFTER_COMMIT,
    target: service.name,
    world: world.name,
    connections: 1,
    rate: latencies.length / seconds,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    cpu: cpu / latencies.length * 1000,
    peak: (await residentMemory(service.pid)).peak,
  })
  if (stale > 0) findings.fail(`${AFTER_COMMIT}, ${world.name}: ${stale} answers were older than the last commit`)
}
