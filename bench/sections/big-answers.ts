import { BIG, fill, times } from '../data.ts'
import type { DatabaseServer } from '../database.ts'
import type { Case } from '../cases.ts'
import { type Findings, settle } from '../measure.ts'
import { startProber } from '../prober.ts'
import { residentMemory } from '../proc.ts'
import { startService } from '../service.ts'
import { openWorld } from '../world.ts'

/** Milliseconds between the requests that see whether the service still answers. */
const INTERVAL = 5

/** What has no pages. */
export const BIG_ANSWERS = ['/users', '/clubs', '/blogs'].map(path => ({ name: `GET ${path}, 100,000 rows`, path }))

/** Answers of 100,000 rows, one at a time, and how everybody else fares meanwhile. */
export async function measureBigAnswers (findings: Findings, databases: DatabaseServer, directory: string) {
  const operations = BIG_ANSWERS.filter(({ name }) => findings.wants(name))
  if (operations.length === 0) return
  const databaseUrl = await databases.create('big')
  await fill(databaseUrl, findings.options.quick ? times(0.1, BIG) : BIG, directory)
  const world = await openWorld('big', databaseUrl, directory)
  await world.sql`UPDATE blogs SET status = 'PUBLISHED' WHERE status <> 'PUBLISHED'`
  await world.sql`VACUUM ANALYZE blogs`
  const service = await startService(world)

  const idle = startProber(`${service.url}/livez`, INTERVAL)
  await new Promise(resolve => setTimeout(resolve, 1000))
  findings.facts['longest pause when idle, ms'] = Math.max(...await idle.stop())
  const { now: atFirst } = await residentMemory(service.pid)

  for (const { name, path } of operations) {
    const operation: Case = {
      name,
      prepare: ({ admin }) => ({ load: { path, mode: 'plain', headers: { authorization: `Bearer ${admin}` } } }),
    }
    await settle(world, service)
    const prober = startProber(`${service.url}/livez`, INTERVAL)
    const { bytes, requests } = await findings.measure(world, service, operation, 1)
    const latencies = await prober.stop()
    const peak = findings.find(name, service.name, 1, 'big')!.peak!
    findings.facts[`${name}: megabytes`] = bytes / requests / 1e6
    findings.facts[`${name}: longest pause, ms`] = Math.max(...latencies)
    findings.facts[`${name}: memory more, MB`] = peak - atFirst
  }
  await service.stop()
  await world.close()
  await databases.drop('big')
}
