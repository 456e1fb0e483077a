// Lets other programs read CSV files and pictures: `npm run test:judges -- --help`.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { runMain } from '#lib/startup.js'
import { readOptions } from '../options.ts'
import { isInstalled } from '../process.ts'
import { Scope } from '../scope.ts'
import { csv } from './csv.ts'
import type { Judge, Setting } from './judge.ts'
import { live } from './live.ts'
import { pictures } from './pictures.ts'

const JUDGES = { csv, live, pictures }

const USAGE = `Usage: npm run test:judges [-- --only PATTERN]

Lets programs read what the service writes: ${Object.keys(JUDGES).join(', ')}.
A judge that is not installed is skipped.

  --only PATTERN   only the judges whose name matches this regular expression

The exit code is 1 when one of them finds something, or there is none.`

/** Stops the programs of the current judge. */
let scope = new Scope()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, async () => {
    await scope.end()
    process.exit(130)
  })
}

await runMain(async () => {
  const { help, only } = readOptions(
    { options: { only: { type: 'string', default: '' }, help: { type: 'boolean' } } },
    ({ values: { help, only } }) => ({ help, only: new RegExp(only) }))
  if (help) return console.log(USAGE)
  let judged = 0
  let faults = 0
  for (const [name, judge] of Object.entries(JUDGES)) {
    if (!only.test(name)) continue
    if (!await isInstalled(judge.program)) {
      console.log(`${name}: skipped, ${judge.program} is not installed (${judge.install})`)
      continue
    }
    scope = new Scope()
    try {
      faults += await hear(name, judge, { scope, directory: await makeDirectory() })
      judged++
    } finally {
      await scope.end()
    }
  }
  if (faults > 0 || judged === 0) process.exitCode = 1
})
process.exit()

/** A directory that the embedded PostgreSQL, which does not run as root, can enter. */
async function makeDirectory () {
  const directory = await mkdtemp(join(tmpdir(), 'community-judges-'))
  scope.teardown(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o755)
  return directory
}

/** Runs a judge. Returns the number of flaws. */
async function hear (name: string, { version, run }: Judge, setting: Setting) {
  const start = performance.now()
  const title = `${name} ${await version(setting)}`
  console.log(`${title} …`)
  const { subject, findings } = await run(setting)
  for (const finding of findings) console.error(`! ${finding}`)
  const seconds = Math.round((performance.now() - start) / 1000)
  console.log(`${title}: ${subject}; ${findings.length || 'nothing'} found, ${seconds} s`)
  return findings.length
}
