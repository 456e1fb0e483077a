import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import { join } from 'node:path'

import { StartupError } from '#lib/config/startup-error.js'
import { runMain } from '#lib/startup.js'
import { readOptions } from '../test/options.ts'
import { startPostgres } from './fixture.ts'
import { measureLive } from './live.ts'
import { atEnd, cleanUp, compiled, interrupted, ROOT, run, source } from './programs.ts'
import { writeReport } from './report.ts'
import { Results } from './results.ts'
import {
  measureCases, measureDraws, measureEmails, measureGrowth, measureLarge, measureTracing,
} from './scenarios.ts'
import { judgeSoak, soak } from './soak.ts'

const USAGE = `Usage: npm run bench [-- OPTION …]

  --only PATTERN   measure only cases whose name matches this regular expression
  --quick          a rough result: few turns, on a tenth of the data
  --soak [MINUTES] instead: ten minutes of load, to check that the memory stays flat

A complete run writes results.json, results.md and chart.svg into bench/, any other into dist/bench/; a soak of ten
minutes writes bench/soak.json.`

await runMain(async () => {
  const options = readBenchOptions()
  if (options.help) return console.log(USAGE)
  await assertRequirements()
  try {
    await benchmark(options)
  } catch (error) {
    // Errors after an interruption are caused by it.
    if (!interrupted.aborted) throw error
  } finally {
    await cleanUp()
    // An interrupted npm takes a minute to clean up.
    if (interrupted.aborted) process.exit(130)
  }
})

function readBenchOptions () {
  return readOptions({
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      quick: { type: 'boolean', default: false },
      soak: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }, ({ values: { only, ...values }, positionals: [minutes = '10'] }) => {
    if (!/^[1-9]\d*$/.test(minutes)) throw new Error('MINUTES must be a whole number from 1')
    return { ...values, only: new RegExp(only), minutes: Number(minutes) }
  })
}

/** Throws a StartupError unless the prerequisites are installed. */
async function assertRequirements () {
  if (process.platform !== 'linux') throw new StartupError('The benchmark runs only on Linux, because it reads /proc')
  // Without the server package, Debian's pgbench exists but does not run.
  await run('sh', ['-c', 'command -v wrk && pgbench --version']).catch(() => {
    throw new StartupError('The benchmark needs wrk and pgbench. Run apt-get install wrk postgresql.')
  })
  if (existsSync(`${ROOT}.env`)) throw new StartupError('npm start would read .env. Move it away for the benchmark.')
}

async function benchmark ({ only, quick, soak: isSoak, minutes }: ReturnType<typeof readBenchOptions>) {
  const start = performance.now()
  const directory = await mkdtemp(join(os.tmpdir(), 'community-bench-'))
  atEnd(() => rm(directory, { recursive: true, force: true }))
  // PostgreSQL does not run as root, and must be able to enter it.
  await chmod(directory, 0o755)
  const load = os.loadavg()[0]!
  if (load > 1) console.log(`The machine is busy: its load is ${load.toFixed(1)}`)

  const postgres = await startPostgres(directory)
  const results = new Results()
  const context = { results, postgres, directory, quick, only }
  if (isSoak) {
    await soak(context, minutes)
  } else {
    await measureCases(context)
    await measureDraws(context)
    await measureTracing(context)
    await measureEmails(context)
    await measureLive(context)
    await measureGrowth(context)
    await measureLarge(context)
    const isComplete = !quick && only.test('')
    if (isComplete) await judgeSoak(results)
    await writeReport(results, isComplete ? source('') : compiled(''), performance.now() - start, postgres.version)
  }
  for (const problem of results.problems) console.log(`! ${problem}`)
  const missed = Object.values(results.goals).flat().some(({ met }) => met === 'no')
  if (missed || results.problems.length > 0) process.exitCode = 1
}
