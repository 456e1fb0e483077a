// Faults of a standby that is read from, of the system's PostgreSQL: no request fails, and none shows less
// than what was acknowledged.
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import type { PostgresServer } from '../postgres-server.ts'
import { type Fault, lazy, type Setting, startPrimary, strike, type Target } from './database.ts'
import { createFixture } from './fixture.ts'
import { newestBin } from './programs.ts'
import { rowOf } from './report.ts'
import { startService } from './service.ts'

/** How long a replica may take to be in use again, in milliseconds. */
const PATIENCE = 60_000

interface Pair extends Target {
  primary: PostgresServer
  standby: PostgresServer
}

export function replicaFaults (setting: Setting): Fault[] {
  const seconds = setting.short ? 3 : 20
  const pair = lazy(() => openPair(setting))
  const onStandby = <T>({ standby }: Pair, work: (sql: postgres.Sql) => Promise<T>) => look(standby, work)
  const set = (pair: Pair, delay: string) => onStandby(pair, async sql => {
    await sql`ALTER SYSTEM SET recovery_min_apply_delay = ${sql.unsafe(`'${delay}'`)}`
    await sql`SELECT pg_reload_conf()`
  })

  const fault = (name: string, inflict: (pair: Pair) => Promise<unknown>, judge: Judge = isBack): Fault => ({
    name,
    async run () {
      const target = await pair()
      if (!target) return { ...rowOf(name, [], []), missing: 'postgresql must be installed' }
      const { length } = await target.service.log()
      const before = await countReads(target)
      const row = await strike(name, target, { fails: false, isAway: false, inflict: () => inflict(target) })
      const after = await countReads(target)
      if (row.failed > 0) row.problems.push(`${row.failed} requests failed`)
      // A killed standby starts again.
      const reads = (of: 'primary' | 'standby') => after[of] - (after[of] < before[of] ? 0 : before[of])
      const [standby, primary] = [reads('standby'), reads('primary')]
      row.note = `reads: ${standby} on the standby, ${primary} on the primary`
      row.problems.push(...await judge(() => linesSince(target, length), standby, primary))
      return row
    },
  })

  return [
    fault('standby keeps up', () => sleep(seconds * 1000), async (_lines, standby, primary) =>
      standby > primary ? [] : ['reads do not run on the standby']),
    fault(`standby's replay paused for ${seconds} s`, async pair => {
      await onStandby(pair, sql => sql`SELECT pg_wal_replay_pause()`)
      await sleep(seconds * 1000)
      await onStandby(pair, sql => sql`SELECT pg_wal_replay_resume()`)
    }),
    fault(`standby's replay delayed by 1 s for ${seconds} s`, async pair => {
      await set(pair, '1s')
      await sleep(seconds * 1000)
      await set(pair, '0')
    }),
    fault(`standby silent for ${seconds} s`, async ({ standby }) => {
      await standby.signal('SIGSTOP')
      await sleep(seconds * 1000)
      await standby.signal('SIGCONT')
    }),
    fault('standby killed, and started again', async ({ standby }) => {
      await standby.signal('SIGKILL')
      for (let tries = 0; !await standby.start().then(() => true, () => tries > 20); tries++) await sleep(500)
    }),
    // The last one: there is no way back.
    fault('standby promoted while its primary goes on', async ({ standby }) => {
      await standby.promote()
      await sleep(seconds * 1000)
    }, async lines => (await lines()).at(-1)?.includes('is left out') ? [] : ['it is still in use']),
  ]
}

/** The log's lines about the standby since the fault began. */
type Lines = () => Promise<string[]>

/** Returns what is wrong, by the lines and by how often each server was read from. */
type Judge = (lines: Lines, standby: number, primary: number) => Promise<string[]>

/** Names the problems, unless the replica was left out and is in use again, with a few lines in the log. */
async function isBack (lines: Lines) {
  for (const end = performance.now() + PATIENCE; !(await lines()).at(-1)?.endsWith('is in use'); await sleep(100)) {
    if (performance.now() > end) return [`not in use again: ${(await lines()).join('; ')}`]
  }
  const count = (await lines()).length
  return count > 10 ? [`${count} lines in the log`] : []
}

async function linesSince ({ service }: Pair, length: number) {
  const log = (await service.log()).slice(length)
  return [...log.matchAll(/"msg":"(Replica [^"]+)"/g)].map(([, line]) => line!)
}

/** How many lists and profiles each server was asked for. */
async function countReads ({ primary, standby }: Pair) {
  const count = (server: PostgresServer) => look(server, async sql => {
    const [row] = await sql<[{ calls: number }]>`
      SELECT coalesce(sum(calls), 0)::int AS calls FROM pg_stat_statements WHERE query LIKE '%row_to_json(fields)%'
    `
    return row.calls
  })
  return { primary: await count(primary), standby: await count(standby) }
}

async function look<T> (server: PostgresServer, work: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(server.url('community'), { max: 1, onnotice () {} })
  try {
    return await work(sql)
  } finally {
    await sql.end()
  }
}

/** A primary and its standby, and a service that reads from it. */
async function openPair ({ scope, directory, short }: Setting): Promise<Pair | undefined> {
  const bin = await newestBin()
  if (!bin) return
  const { primary, databaseUrl } = await startPrimary(scope, directory, bin)
  await look(primary, async sql => {
    await sql`ALTER SYSTEM SET shared_preload_libraries = pg_stat_statements`
    await sql`CREATE EXTENSION pg_stat_statements`
  })
  await primary.stop('fast')
  const standby = await primary.standby(scope, directory)
  await Promise.all([primary.start(), standby.start()])
  const fixture = await createFixture(databaseUrl)
  const timeout = short ? 2 : 5
  const service = await startService(scope, directory, {
    DATABASE_URL: databaseUrl,
    DATABASE_REPLICA_URL: standby.url('community'),
    DATABASE_TIMEOUT: String(timeout),
    // Servers, service and load share a machine, on which a standby that keeps up may not run for 100 ms.
    REPLICA_WAIT: '500',
  })
  const pair = { primary, standby, fixture, service, timeout }
  for (const end = performance.now() + PATIENCE; !(await linesSince(pair, 0)).at(-1)?.endsWith('is in use');) {
    if (performance.now() > end) throw new Error(await service.log())
    await sleep(50)
  }
  return pair
}
