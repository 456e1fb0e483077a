import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { PostgresServer } from '../test/postgres-server.ts'
import { postgresOf } from '../test/process.ts'
import { amountsOf, createFixture, type Fixture, prepareCommits, SERVICE, startService } from './fixture.ts'
import { get } from './http.ts'
import { cpuSeconds } from './measure.ts'
import { atEnd, interrupted, type Server } from './programs.ts'
import { atMost } from './results.ts'
import type { Context } from './scenarios.ts'

const CASE = 'GET /events, misses on a replica'

/** How often the list is read, with a commit before each time. */
const MISSES = 1000

/**
 * Measures the processor time of a primary for misses: with commits alone, with a service that reads there, and with
 * one that reads on a replica.
 */
export async function measureReplica ({ results, postgres: { version }, directory, quick, only }: Context) {
  if (!only.test(CASE)) return
  const scope = { teardown: atEnd }
  const primary = await PostgresServer.create(scope, directory)
  await primary.start()
  const fixture = await createFixture({ url: primary.url(), version }, 'replica', amountsOf(quick).main, directory)
  // A copy of the data of a server that was stopped is a standby at the same place.
  await primary.stop('fast')
  const standby = await primary.standby(scope, directory)
  await Promise.all([primary, standby].map(server => server.start()))

  const measure = async (of: string, service?: Server) => {
    const { rate, cpu } = await runMisses(fixture, primary, service)
    results.add({ case: CASE, of, rate, cpu })
    await service?.stop()
    return cpu
  }
  const commits = await measure('commits alone')
  const alone = await measure(SERVICE, await startService(fixture))
  const service = await startService(fixture, SERVICE, { DATABASE_REPLICA_URL: standby.url('replica') })
  const isInUse = async () => (await readFile(service.log, 'utf8')).includes('is in use')
  while (!await isInUse()) await sleep(50, undefined, { signal: interrupted })
  const relieved = await measure('service with a replica', service)

  results.goals[`${CASE}: CPU of the primary without its commits, by that without a replica`] = [
    atMost((relieved - commits) / (alone - commits), 1),
  ]
  await fixture.drop()
}

/** The rate, and the seconds of processor time of the primary for 1,000 commits, each followed by a read. */
async function runMisses (fixture: Fixture, { home }: PostgresServer, service: Server | undefined) {
  const commit = await prepareCommits(fixture)
  const run = async (times: number) => {
    for (let time = 0; time < times; time++) {
      await commit()
      if (service) await get(`${service.url}/events`)
    }
  }
  // Opens the connections: the processes of the primary are the same afterwards.
  await run(MISSES / 10)
  const pids = await postgresOf(home)
  const [start, before] = [performance.now(), await cpuSeconds({ pids })]
  await run(MISSES)
  const cpu = await cpuSeconds({ pids }) - before
  return { rate: MISSES / (performance.now() - start) * 1000, cpu: cpu * 1000 / MISSES }
}
