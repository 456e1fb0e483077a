// Injects real faults into the service and its environment: `npm run test:faults -- --help`.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { runMain } from '#lib/startup.js'
import { databaseFaults, type Fault, type Setting } from './database.ts'
import { instanceFaults } from './instances.ts'
import { emailFaults } from './email.ts'
import { emailFloods } from './emails.ts'
import { hostileFaults } from './hostile.ts'
import { liveFaults } from './live.ts'
import { type Options, readFaultOptions, USAGE } from './options.ts'
import { memoryFaults } from './memory.ts'
import { overloadFaults } from './overload.ts'
import { networkFaults } from './networks.ts'
import { patroniFaults } from './patroni.ts'
import { processFaults } from './process.ts'
import { type Row, showAttacks, showHeader, showRow } from './report.ts'
import { Scope } from '../scope.ts'

const scope = new Scope()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, async () => {
    await scope.end()
    process.exit(130)
  })
}
process.once('uncaughtException', async error => {
  console.error(error)
  await scope.end()
  process.exit(1)
})

await runMain(async () => {
  const options = readFaultOptions()
  if (options.help) return console.log(USAGE)
  try {
    await runFaults(options)
  } finally {
    await scope.end()
  }
})
// Exits even if the load of a failed run is still active.
process.exit()

async function runFaults ({ short, only, seed, memory, allowMissing }: Options) {
  const start = performance.now()
  const directory = await mkdtemp(join(tmpdir(), 'community-faults-'))
  scope.teardown(() => rm(directory, { recursive: true, force: true }))
  // PgBouncer and HAProxy do not run as root, and must be able to enter it.
  await chmod(directory, 0o755)
  const setting: Setting = { scope, directory, short, seed, memory }
  const faults = [
    databaseFaults, processFaults, overloadFaults, networkFaults, memoryFaults, instanceFaults, patroniFaults,
    emailFaults, emailFloods,
    liveFaults, hostileFaults,
  ].flatMap<Fault>(list => list(setting)).filter(({ name }) => only.test(name))

  showHeader()
  const rows: Row[] = []
  for (const fault of faults) {
    const row = await fault.run()
    showRow(row)
    rows.push(row)
  }
  showAttacks(rows)
  const broken = rows.filter(({ problems, missing }) => problems.length > 0 || (missing && !allowMissing))
  console.log(`${rows.length} faults, ${broken.length} broken promises, ` +
    `${Math.round((performance.now() - start) / 1000)} seconds`)
  if (broken.length > 0 || rows.length === 0) process.exitCode = 1
}
