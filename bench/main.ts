import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import { join } from 'node:path'

import { runMain } from '#lib/main.js'
import { LISTS_WHILE_WRITING, LOGIN, POLLS, READS, WRITES } from './cases.ts'
import { atEnd, cleanUp, interrupted } from './cleanup.ts'
import { fill, MAIN, times } from './data.ts'
import { type DatabaseServer, startDatabaseServer } from './database.ts'
import { startHttpFloor } from './floors.ts'
import { judgeGoals } from './goals.ts'
import { describeMachine, idleShare, machineLine } from './machine.ts'
import { Findings } from './measure.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { source } from './paths.ts'
import { compareAnswers, installPeer, PEERS, startPeer } from './peers.ts'
import { assertRequirements } from './programs.ts'
import { verdict, writeReport } from './report.ts'
import { measureBigAnswers } from './sections/big-answers.ts'
import { measureGrowth } from './sections/growth.ts'
import { measureLogins } from './sections/logins.ts'
import { measureRest, soak, type Soak } from './sections/memory.ts'
import { measurePolls } from './sections/polls.ts'
import { measureListsWhileWriting, measureReads } from './sections/reads.ts'
import { measureWrites } from './sections/writes.ts'
import { startService } from './service.ts'
import { showHeader } from './tables.ts'
import { openWorld } from './world.ts'

/** What the last complete soak found. */
const SOAK_FILE = source('soak.json')

await runMain(async () => {
  const options = readOptions(process.argv.slice(2))
  if (options.help) return console.log(USAGE)
  await assertRequirements()
  try {
    await benchmark(options)
  } catch (error) {
    // What fails after an interruption fails because of it.
    if (!interrupted.aborted) throw error
  } finally {
    await cleanUp()
  }
})

async function benchmark (options: Options) {
  const start = performance.now()
  const findings = new Findings(options)
  const directory = await mkdtemp(join(os.tmpdir(), 'community-bench-'))
  atEnd(() => rm(directory, { recursive: true, force: true }))
  // PostgreSQL, which does not run as root, must be able to enter it.
  await chmod(directory, 0o755)
  const databases = await startDatabaseServer(directory)
  const machine = await describeMachine(databases.version)
  console.log(machineLine(machine))
  const idle = await idleShare()
  if (idle < 0.95) console.log(`${Math.round((1 - idle) * 100)} % of the machine is busy with something else`)

  if (options.soak !== undefined) return soakOnly(findings, databases, directory, options.soak)
  await measureMain(findings, databases, directory)
  await measureGrowth(findings, databases, directory)
  await measureBigAnswers(findings, databases, directory)

  const goals = judgeGoals(findings, await readSoak())
  console.log()
  for (const { goal, measured, needed, reached } of goals) {
    if (reached === undefined && !options.complete) continue
    console.log(`${goal.padEnd(58)}  ${measured.padEnd(42)}  ${needed.padEnd(14)}  ${verdict(reached)}`)
  }
  for (const problem of findings.problems) console.log(`! ${problem}`)
  const minutes = (performance.now() - start) / 60_000
  const date = new Date().toISOString().slice(0, 10)
  console.log(`\n${minutes.toFixed(1)} minutes; see ${await writeReport(findings, goals, { date, minutes, machine })}`)

  const missed = goals.some(({ reached }) => options.complete ? !reached : reached === false)
  if (missed || findings.problems.length > 0) process.exitCode = 1
}

/** Everything on the main data: the service with its floors and peers, in one process each from beginning to end. */
async function measureMain (findings: Findings, databases: DatabaseServer, directory: string) {
  const wanted = [...READS, ...POLLS, ...LISTS_WHILE_WRITING, ...WRITES, LOGIN]
    .filter(({ name }) => findings.wants(name))
  if (wanted.length === 0) return
  const peerNames = wanted.some(({ peers }) => peers) ? PEERS : []
  console.log(`Filling the database${peerNames.length > 0 ? ' and installing the peers' : ''}`)
  const [world] = await Promise.all([
    openMain(findings.options, databases, directory), ...peerNames.map(name => installPeer(name)),
  ])
  const service = await startService(world)
  const floor = await startHttpFloor(world, service)
  const peers = await Promise.all(peerNames.map(name => startPeer(name, world)))
  for (const peer of peers) {
    for (const difference of await compareAnswers(world, service, peer)) findings.fail(difference)
  }

  showHeader()
  await measureReads(findings, world, { service, floor, peers })
  await measurePolls(findings, world, service)
  await measureListsWhileWriting(findings, world, { service, floor, peers })
  await floor.stop()
  await measureWrites(findings, world, service, peers)
  await measureLogins(findings, world, service)
  if (findings.wants('memory at rest')) findings.facts['at rest, MB'] = await measureRest(world, service)
  await service.stop()
  await world.close()
  await databases.drop(world.name)
}

async function openMain ({ quick }: Options, databases: DatabaseServer, directory: string) {
  const databaseUrl = await databases.create('main')
  await fill(databaseUrl, quick ? { ...times(0.1, MAIN), users: MAIN.users } : MAIN, directory)
  return openWorld('main', databaseUrl, directory)
}

async function soakOnly (findings: Findings, databases: DatabaseServer, directory: string, minutes: number) {
  const world = await openMain(findings.options, databases, directory)
  const result = await soak(findings, world, await startService(world), minutes)
  console.log(result)
  if (findings.options.complete) await writeFile(SOAK_FILE, JSON.stringify(result, null, 2) + '\n')
  if (findings.problems.length > 0) process.exitCode = 1
}

async function readSoak () {
  const text = await readFile(SOAK_FILE, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text) as Soak
}
