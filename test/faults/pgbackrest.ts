// Point-in-time recovery with pgBackRest, as docs/run/operate.md describes it.
import { chown, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import type { PostgresServer } from '../postgres-server.ts'
import { type Fault, type Setting, startPrimary } from './database.ts'
import { createFixture, shareOf } from './fixture.ts'
import { findContradictions } from './ledger.ts'
import { Load } from './load.ts'
import { missingPrograms, newestBin, readExample } from './programs.ts'
import { type Row, rowOf } from './report.ts'
import { isReady, startService } from './service.ts'

const NAME = 'pgbackrest: destroyed, restored to a second'

/** How long the service may let an operation wait, in milliseconds: the default of DATABASE_TIMEOUT. */
const WAIT = 5000

/** How long archiving, replay and the service may take, in milliseconds. */
const PATIENCE = 60_000

export function pgbackrestFaults (setting: Setting): Fault[] {
  return [{ name: NAME, run: () => restoreToSecond(setting) }]
}

async function restoreToSecond ({ scope, directory, short }: Setting): Promise<Row> {
  const bin = await newestBin()
  const missing = bin ? await missingPrograms('pgbackrest') : 'postgresql'
  if (missing) return { ...rowOf(NAME, [], []), missing: 'apt-get install pgbackrest postgresql installs it' }
  const { primary, databaseUrl } = await startPrimary(scope, directory, bin)
  const pgbackrest = await configure(primary)
  await pgbackrest('stanza-create')
  await pgbackrest('check')

  const fixture = await createFixture(databaseUrl)
  const service = await startService(scope, directory, { DATABASE_URL: databaseUrl })
  const load = new Load(shareOf(fixture, 0, 2), service.url, { wait: WAIT })
  await load.start()
  const backup = await measure(() => pgbackrest('backup', '--type=full'))
  await sleep(short ? 2000 : 10_000)
  const increment = await measure(() => pgbackrest('backup', '--type=incr'))
  await sleep(short ? 1000 : 5000)

  // Writes that are under way at that moment may be there or not.
  const before = load.ledger.copy()
  const [{ target }] = await fixture.look(sql => sql<[{ target: string }]>`SELECT clock_timestamp()::text AS target`)
  const later = new Load(shareOf(fixture, 1, 2), service.url, { wait: WAIT })
  await later.start()
  await sleep(short ? 1000 : 5000)
  await Promise.all([load.stop(), later.stop()])
  await fixture.look(archiveAll)

  await primary.signal('SIGKILL')
  for (const name of await readdir(primary.data)) await rm(join(primary.data, name), { recursive: true })
  const restore = await measure(() => pgbackrest('restore', '--type=time', `--target=${target}`,
    '--target-action=promote'))
  const replay = await measure(async () => {
    await primary.start()
    await waitUntil('a primary', () => fixture.look(async sql => {
      const [row] = await sql`SELECT pg_is_in_recovery() AS "isStandby"`
      return !row!.isStandby
    }))
  })
  await waitUntil('ready', () => isReady(service.url))

  const row = rowOf(NAME, [load, later], await before.findLost(fixture))
  if (load.failed + later.failed > 0) row.problems.push(`${load.failed + later.failed} requests failed`)
  const found = await later.ledger.countFound(fixture)
  if (found > 0) row.problems.push(`${found} writes of later are there`)
  if (before.size === 0 || later.ledger.size === 0) row.problems.push('nothing was written')
  // The service, which saw another future, goes on with this one.
  const last = new Load(fixture, service.url, { wait: WAIT })
  await last.start()
  await last.stop()
  row.problems.push(...last.problems, ...await last.ledger.findLost(fixture), ...await findContradictions(fixture))
  if (last.failed > 0) row.problems.push(`${last.failed} requests failed after the restore`)
  await pgbackrest('check')
  row.note = `all ${before.size} writes from before, none of ${later.ledger.size} from after; seconds: full backup ` +
    `${backup}, incremental ${increment}, restore ${restore}, replay ${replay}`
  return row
}

/** Configures PostgreSQL and pgBackRest as in examples/pgbackrest. Returns what runs a command of pgBackRest. */
async function configure (primary: PostgresServer) {
  const { home, data, port } = primary
  const folder = join(home, 'pgbackrest')
  const file = join(home, 'pgbackrest.conf')
  const { uid, gid } = await stat(data)
  await mkdir(folder)
  await chown(folder, uid, gid)
  await writeFile(file, await readExample('pgbackrest/pgbackrest.conf', {
    '[global]': `[global]\nlog-path=${folder}\nlock-path=${folder}\nspool-path=${folder}`,
    '/var/lib/pgbackrest': join(folder, 'repository'),
    '/var/lib/postgresql/15/main': data,
    '/var/run/postgresql': home,
    5432: String(port),
  }))
  const settings = await readExample('pgbackrest/postgresql.conf', { 'pgbackrest -': `pgbackrest --config=${file} -` })
  await primary.configure(`${settings}\nunix_socket_directories = '${home}'\n`)
  await primary.restart('fast')
  return (command: string, ...args: string[]) =>
    primary.run('pgbackrest', `--config=${file}`, '--stanza=community', ...args, command)
}

/** Has everything archived that was written so far. */
async function archiveAll (sql: postgres.Sql) {
  const [{ segment }] = await sql<[{ segment: string }]>`SELECT pg_walfile_name(pg_switch_wal()) AS segment`
  await waitUntil('archived', async () => {
    const [row] = await sql`SELECT last_archived_wal >= ${segment} AS "isDone" FROM pg_stat_archiver`
    return row!.isDone
  })
}

async function measure (work: () => Promise<unknown>) {
  const start = performance.now()
  await work()
  return ((performance.now() - start) / 1000).toFixed(1)
}

async function waitUntil (what: string, holds: () => Promise<boolean>) {
  const deadline = performance.now() + PATIENCE
  while (!await holds().catch(() => false)) {
    if (performance.now() > deadline) throw new Error(`not ${what} within ${PATIENCE / 1000} s`)
    await sleep(50)
  }
}
