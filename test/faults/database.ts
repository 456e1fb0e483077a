// Faults of PostgreSQL, and of the network to it.
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { migrate } from '#lib/database/migrations.js'
import { makeProxy, PostgresServer } from '../postgres-server.ts'
import { postgresOf, remaining } from '../process.ts'
import { createFixture, type Fixture } from './fixture.ts'
import { findContradictions } from './ledger.ts'
import { Load, type LoadOptions } from './load.ts'
import { type Row, rowOf } from './report.ts'
import type { Scope } from '../scope.ts'
import { type Service, startService, watchReadiness } from './service.ts'

const run = promisify(execFile)

/** How long the service may take to recover, in milliseconds. */
const PATIENCE = 15_000

/** Where the faults run, and whether they are shortened. */
export interface Setting {
  scope: Scope
  directory: string
  short: boolean
  /** The first recipe of the random hostile clients. */
  seed: number
  /** Memory of a service in the faults of networks, streams and emails, in MB. */
  memory: number
}

/** A service, and the rows in its database. */
export interface Target {
  service: Service
  fixture: Fixture
  /** The DATABASE_TIMEOUT of the service, in seconds. */
  timeout: number
  /** The load on the service, with defaults for missing options. */
  load?: Partial<LoadOptions>
}

/** A fault that can be run. */
export interface Fault {
  name: string
  run (): Promise<Row>
}

interface Strike {
  /** Injects the fault. Resolves when it is over and its causes are removed. */
  inflict (load: Load): Promise<unknown>
  /** Whether requests must fail, and whether the database is away long enough for /readyz to notice. */
  fails: boolean
  isAway: boolean
}

/** Injects a fault during a load, and waits until the service has recovered. */
export async function strike (
  fault: string, { service, fixture, timeout, load: options }: Target, { inflict, fails, isAway }: Strike
): Promise<Row> {
  const load = new Load(fixture, service.url, { wait: timeout * 1000, ...options })
  const watch = watchReadiness(service.url)
  await load.start()
  const { failed } = load
  const start = performance.now()
  await inflict(load).catch(error => load.problems.push(String(error.message)))
  const over = performance.now()

  // Recovered when no request of the last half second has failed.
  const isWell = () => watch.ready && performance.now() - Math.max(over, load.lastFailure.start) > 500
  while (!isWell() && performance.now() < over + PATIENCE) await sleep(20)
  const recovered = isWell()
  await sleep(200)
  await load.stop()
  await watch.stop()

  const row = rowOf(fault, [load], await load.ledger.findLost(fixture))
  const problem = (holds: boolean, what: string) => { if (!holds) row.problems.push(what) }
  const latest = Math.max(load.lastFailure.start > over ? load.lastFailure.end : 0, watch.found)
  row.recovery = Math.max(0, latest - over) / 1000
  problem(recovered, `not recovered within ${PATIENCE / 1000} s`)
  problem(failed === 0, `${failed} requests failed before the fault`)
  problem(!isAway || watch.lost > start, '/readyz did not fail')
  problem(!fails || load.failed > failed, 'nothing failed: there was no fault')
  problem(service.child.exitCode === null && service.child.signalCode === null, 'the service has ended')
  row.problems.push(...await findContradictions(fixture))
  return row
}

/** All faults of PostgreSQL. */
export function databaseFaults (setting: Setting): Fault[] {
  const timeout = setting.short ? 2 : 5
  const seconds = setting.short ? 4 : 30
  const outside = lazy(() => openOutside(setting, timeout))
  const embedded = lazy(() => openEmbedded(setting, timeout))

  const onOutside = (name: string, isAway: boolean, inflict: (target: Outside) => Promise<unknown>): Fault => ({
    name,
    run: async () => {
      const target = await outside()
      return strike(name, target, { fails: isAway, isAway, inflict: () => inflict(target) })
    },
  })

  return [
    onOutside('PostgreSQL killed, and started again', true, async ({ primary }) => {
      await primary.signal('SIGKILL')
      await primary.start()
    }),
    onOutside('PostgreSQL restarted', false, ({ primary }) => primary.restart('fast')),
    onOutside('all connections terminated', false, ({ fixture }) => fixture.look(sql => sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    `)),
    onOutside('all connections reset', false, async ({ proxy }) => proxy.cut()),
    onOutside(`network silent for ${seconds} s, then as before`, true, async ({ proxy }) => {
      const { release } = proxy.hold()
      await sleep(seconds * 1000)
      release()
    }),
    onOutside(`network silent for ${seconds} s, connections forgotten`, true, async ({ proxy }) => {
      const end = proxy.swallow()
      await sleep(seconds * 1000)
      end()
    }),
    onOutside(`PostgreSQL paused for ${seconds} s`, true, async ({ primary }) => {
      await primary.signal('SIGSTOP')
      await sleep(seconds * 1000)
      await primary.signal('SIGCONT')
    }),
    {
      name: 'embedded PostgreSQL killed',
      run: async () => {
        const target = await embedded()
        const inflict = async () => {
          const pids = await postgresOf(target.dataDir)
          for (const pid of pids) process.kill(pid, 'SIGKILL')
          await remaining(pids)
        }
        // The service restarts it, possibly before a readiness check fails.
        return strike('embedded PostgreSQL killed', target, { fails: true, isAway: false, inflict })
      },
    },
    { name: 'disk full', run: () => runDiskFull(setting, timeout) },
  ]
}

export function lazy<T> (make: () => Promise<T>) {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

interface Outside extends Target {
  primary: PostgresServer
  proxy: Awaited<ReturnType<typeof makeProxy>>
}

/** The service on a server of its own, behind a proxy. */
async function openOutside ({ scope, directory }: Setting, timeout: number): Promise<Outside> {
  const { primary, databaseUrl } = await startPrimary(scope, directory)
  const fixture = await createFixture(databaseUrl)
  const proxy = await makeProxy(scope, primary.port)
  const service = await startService(scope, directory, {
    DATABASE_URL: primary.url('community', proxy.port), DATABASE_TIMEOUT: String(timeout),
  })
  return { primary, proxy, fixture, service, timeout }
}

/** A server with a migrated database. */
export async function startPrimary (scope: Scope, directory: string) {
  const primary = await PostgresServer.create(scope, directory)
  await primary.start()
  const sql = postgres(primary.url(), { max: 1 })
  await sql`CREATE DATABASE community`
  await sql.end()
  const databaseUrl = primary.url('community')
  await migrate(databaseUrl)
  return { primary, databaseUrl }
}

interface Embedded extends Target {
  dataDir: string
}

/** The service on its embedded server. */
async function openEmbedded (
  { scope, directory }: Setting, timeout: number, dataDir = join(directory, 'embedded')
): Promise<Embedded> {
  const environment = { DATABASE_TIMEOUT: String(timeout) }
  const { service, databaseUrl } = await startEmbedded(scope, directory, dataDir, environment)
  return { dataDir, service, timeout, fixture: await createFixture(databaseUrl) }
}

/** Starts the service with its embedded server, both stopped when the scope ends. */
async function startEmbedded (
  scope: Scope, directory: string, dataDir: string, environment: NodeJS.Dict<string>
) {
  scope.teardown(async () => {
    const pids = await postgresOf(dataDir)
    for (const pid of pids.slice(0, 1)) process.kill(pid, 'SIGQUIT')
    await remaining(pids)
  })
  const service = await startService(scope, directory, { DATA_DIR: dataDir, ...environment })
  return { service, databaseUrl: await embeddedUrl(dataDir) }
}

/** The URL of the embedded server, with its password. */
async function embeddedUrl (dataDir: string) {
  const [, , , port] = (await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')
  const password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim()
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
}

/** The size of the disk of the embedded server, in megabytes. */
const DISK = 160

/** The embedded server on a small file system, which is filled and emptied again. */
async function runDiskFull (setting: Setting, timeout: number): Promise<Row> {
  const { scope, directory, short } = setting
  const name = 'disk full'
  const disk = join(directory, 'disk')
  await mkdir(disk)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK}m,mode=755`, 'tmpfs', disk])
  } catch (error) {
    const [missing] = (error as Error & { stderr: string }).stderr.trim().split('\n')
    return { ...rowOf(name, [], []), missing: `a file system of its own cannot be mounted (${missing})` }
  }
  scope.teardown(() => run('umount', ['--lazy', disk]))
  const target = await openEmbedded(setting, timeout, join(disk, 'data'))
  const ballast = join(disk, 'ballast')
  return strike(name, target, {
    fails: true,
    // Reads still work.
    isAway: false,
    async inflict () {
      await run('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=1M']).catch(() => {})
      await sleep(short ? 3000 : 10_000)
      await rm(ballast)
    },
  })
}
