// A fail-over between the hosts in DATABASE_URL: a primary and its synchronous standby, of the system's PostgreSQL.
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { type Fault, type Setting, startPrimary, strike } from './database.ts'
import { createFixture } from './fixture.ts'
import { newestBin } from './programs.ts'
import { type Row, rowOf } from './report.ts'
import { startService } from './service.ts'

/** How soon the service must recover from the loss of the primary, in seconds. */
const BOUND = 10

export function failOverFaults (setting: Setting): Fault[] {
  return ([
    ['fail-over to the first host, primary killed', true, 'SIGKILL'],
    ['fail-over to the second host, primary killed', false, 'SIGKILL'],
    ['fail-over to the first host, primary silent', true, 'SIGSTOP'],
    ['fail-over to the second host, primary silent', false, 'SIGSTOP'],
  ] as const).map(([name, isFirst, signal]) => ({ name, run: () => failOver(setting, name, isFirst, signal) }))
}

async function failOver (
  setting: Setting, name: string, isFirst: boolean, signal: 'SIGKILL' | 'SIGSTOP'
): Promise<Row> {
  const { scope, directory, short } = setting
  const bin = await newestBin()
  if (!bin) return { ...rowOf(name, [], []), missing: 'postgresql must be installed' }
  const { primary, databaseUrl } = await startPrimary(scope, directory, bin)
  await primary.stop('fast')
  const standby = await primary.standby(scope, directory)
  await Promise.all([primary.start(), standby.start()])
  await makeSynchronous(databaseUrl)

  const timeout = short ? 2 : 5
  const hosts = [`127.0.0.1:${standby.port}`, `127.0.0.1:${primary.port}`]
  const DATABASE_URL = `postgres://postgres@${(isFirst ? hosts : hosts.reverse()).join()}/community`
  const fixture = await createFixture(`${DATABASE_URL}?target_session_attrs=primary&connect_timeout=1`)
  const service = await startService(scope, directory, { DATABASE_URL, DATABASE_TIMEOUT: String(timeout) })
  let took = 0
  const row = await strike(name, { service, fixture, timeout }, {
    // Without a primary for 0.2 s only: requests and readiness checks may miss it.
    fails: signal === 'SIGSTOP',
    isAway: false,
    async inflict () {
      const start = performance.now()
      await primary.signal(signal)
      await standby.promote()
      took = (performance.now() - start) / 1000
    },
  })
  // A stopped process ignores other signals.
  if (signal === 'SIGSTOP') await primary.signal('SIGKILL')
  // Includes the time of requests that wait for the lost primary.
  const gap = took + Math.max(row.recovery!, row.slowest)
  row.note = `promoted after ${took.toFixed(1)} s, recovered after ${gap.toFixed(1)} s at most`
  if (gap > BOUND) row.problems.push(`not recovered within ${BOUND} s`)
  return row
}

/** Enables synchronous replication, so that a fail-over loses no commit. */
async function makeSynchronous (databaseUrl: string) {
  const sql = postgres(databaseUrl, { max: 1 })
  await sql`ALTER SYSTEM SET synchronous_standby_names = '*'`
  await sql`SELECT pg_reload_conf()`
  while ((await sql`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`).length === 0) await sleep(50)
  await sql.end()
}
