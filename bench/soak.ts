import { readFile, truncate, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { BLOG, LIKE, LISTS, LOGIN, ME, REGISTER } from './cases.ts'
import { amountsOf, createFixture, prepareCommits, startService } from './fixture.ts'
import { problemOf, residentMemory, startRepeating, wrk } from './measure.ts'
import { source } from './programs.ts'
import { atMost, type Results } from './results.ts'
import { type Context, memoryAtRest } from './scenarios.ts'

/** Memory samples per minute. */
const SAMPLES = 12

const FILE = source('soak.json')

/** Runs all operations concurrently for some minutes, and samples the memory of the service. */
export async function soak ({ results, postgres, directory, quick }: Context, minutes: number) {
  const fixture = await createFixture(postgres, 'soak', amountsOf(quick).main, directory)
  const service = await startService(fixture)
  const writer = startRepeating(20, await prepareCommits(fixture))
  const loads = [
    ...[...LISTS, BLOG, ME].map(operation => ({ ...operation, connections: 8 })),
    ...[REGISTER, LIKE, LOGIN].map(operation => ({ ...operation, connections: 1 })),
  ]
  const ended = Promise.all(loads.map(async ({ name, prepare, connections }) => {
    const { load, check } = await prepare(fixture, service.url)
    const outcome = await wrk(service.url, load, connections, minutes * 60)
    const problem = problemOf(outcome) ?? await check?.(outcome, connections)
    if (problem) results.fail(`${name}: ${problem}`)
    console.log(`${name}: ${outcome.requests.toLocaleString('en')} responses`)
  })).then(() => true)

  const samples: number[] = []
  while (!await Promise.race([ended, sleep(60_000 / SAMPLES, false)])) {
    samples.push((await residentMemory(service)).now)
    console.log(`${(samples.length / SAMPLES).toFixed(2)} min  ${samples.at(-1)!.toFixed(0)} MB`)
    await truncate(service.log)
  }
  await writer.stop()

  const mean = (from: number, to: number) => {
    const part = samples.slice(samples.length * from, samples.length * to)
    return part.reduce((sum, value) => sum + value, 0) / part.length
  }
  const result = {
    date: new Date().toISOString().slice(0, 10),
    minutes,
    megabytes: samples.map(Math.round),
    // The last fifth of the time, by the second fifth.
    growth: mean(0.8, 1) / mean(0.2, 0.4),
    atRest: await memoryAtRest(fixture, service),
  }
  console.log(result)
  if (minutes === 10 && !quick) await writeFile(FILE, JSON.stringify(result, null, 2) + '\n')
}

/** Judges the result of the last complete soak. */
export async function judgeSoak ({ goals }: Results) {
  const { date, growth } = JSON.parse(await readFile(FILE, 'utf8'))
  goals[`memory over ten minutes of load (${date}), by that of the beginning`] = [atMost(growth, 1.1)]
}
