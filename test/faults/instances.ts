// Several instances, as docs/run/deploy.md describes them: behind HAProxy, with PgBouncer between them and PostgreSQL.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { PLANNING } from '#lib/database/pools.js'
import { PostgresServer } from '../postgres-server.ts'
import { freePort } from '../process.ts'
import { type Fault, lazy, type Setting } from './database.ts'
import { createFixture, type Fixture } from './fixture.ts'
import { send } from './http.ts'
import { findContradictions } from './ledger.ts'
import { Load } from './load.ts'
import { fillExample, missingPrograms, NOBODY, ROOT, startProgram, writeFor } from './programs.ts'
import { rowOf } from './report.ts'
import { type Service, startService } from './service.ts'

const run = promisify(execFile)

/** How long the service may let an operation wait, in milliseconds: the default of DATABASE_TIMEOUT. */
const WAIT = 5000

/** The role that PgBouncer authenticates. */
const ROLE = { user: 'community', password: 'correct-horse' }

interface Group {
  fixture: Fixture
  /** The URL of HAProxy. */
  url: string
  instances: Service[]
  /** Restarts an instance as operators do. */
  restart (n: number): Promise<{ code: number | null }>
  /** The URL of PgBouncer. */
  poolerUrl: string
}

interface Found {
  loads: Load[]
  problems: string[]
  note?: string
}

export function instanceFaults (setting: Setting): Fault[] {
  const { short } = setting
  const group = lazy(() => openGroup(setting))

  const named = (name: string, work: (group: Group) => Promise<Found>) => ({
    name,
    async run () {
      const missing = await missingPrograms('haproxy', 'pgbouncer')
      if (missing) return { ...rowOf(name, [], []), missing }
      const opened = await group()
      const { loads, problems, note } = await work(opened)
      const lost = (await Promise.all(loads.map(load => load.ledger.findLost(opened.fixture)))).flat()
      const row = rowOf(name, loads, lost)
      row.note = note
      row.problems.push(...problems, ...await findContradictions(opened.fixture))
      return row
    },
  })

  const faults: Fault[] = [
    named('two instances: all see at once what is written', async ({ fixture, url, instances, poolerUrl }) => {
      const load = new Load(fixture, url, { wait: WAIT, readers: 8, writers: 8 })
      await load.start()
      await sleep(short ? 1000 : 10_000)
      const problems = await crossWrites(fixture, instances, short ? 50 : 500)
      await load.stop()
      if (load.failed > 0) problems.push(`${load.failed} requests failed`)
      problems.push(...await compareSettings(poolerUrl))
      return { loads: [load], problems }
    }),
    named('two instances: rolling restart under load', async ({ fixture, url, restart }) => {
      const load = new Load(fixture, url, { wait: WAIT, readers: 10, writers: 10 })
      await load.start()
      const problems: string[] = []
      const start = performance.now()
      for (const n of short ? [0, 1] : [0, 1, 0, 1]) {
        const { code } = await restart(n)
        if (code !== 0) problems.push(`instance ${n} ended with ${code}`)
        // Waits until HAProxy considers it up again.
        await sleep(2000)
      }
      const seconds = (performance.now() - start) / 1000
      await load.stop()
      if (load.failed > 0) problems.push(`${load.failed} requests failed`)
      return { loads: [load], problems, note: `${short ? 2 : 4} restarts in ${seconds.toFixed(1)} s` }
    }),
  ]
  if (short) return faults
  return [...faults, named('the tests of all routes through PgBouncer', async ({ poolerUrl }) => {
    const { problems, note } = await testRoutes(poolerUrl)
    return { loads: [], problems, note }
  })]
}

async function openGroup ({ scope, directory }: Setting): Promise<Group> {
  const primary = await PostgresServer.create(scope, directory)
  await primary.start()
  const sql = postgres(primary.url(), { max: 1 })
  await sql.unsafe(`CREATE ROLE ${ROLE.user} LOGIN CREATEDB PASSWORD '${ROLE.password}'`)
  await sql.unsafe(`CREATE DATABASE community OWNER ${ROLE.user}`)
  await sql.end()

  const pooler = await freePort()
  const users = await writeFor(NOBODY, directory, 'userlist.txt', `"${ROLE.user}" "${ROLE.password}"\n`)
  const settings = await fillExample(directory, 'several-instances/pgbouncer.ini', {
    '10.0.0.20': '127.0.0.1',
    5432: String(primary.port),
    '10.0.0.15': '127.0.0.1',
    6432: String(pooler),
    '/etc/pgbouncer/userlist.txt': users,
    // The tests of the routes copy a database, which must have no connections.
    '[pgbouncer]': '[pgbouncer]\nserver_idle_timeout = 1',
  })
  await startProgram(scope, directory, 'pgbouncer', pooler, [settings])
  const poolerUrl = `postgres://${ROLE.user}:${ROLE.password}@127.0.0.1:${pooler}/community`

  // Concurrently, so that both try to migrate.
  const variables = {
    DATABASE_URL: poolerUrl,
    DATABASE_PREPARE: 'false',
    MIGRATE_ON_START: 'true',
    TRUST_PROXY: '127.0.0.1',
    STOP_DELAY: '3',
  }
  const start = (port: number) => startService(scope, directory, { ...variables, PORT: String(port) })
  const ports = [await freePort(), await freePort()]
  const instances = await Promise.all(ports.map(start))
  const fixture = await createFixture(primary.url('community'))
  const front = await freePort()
  const proxy = await fillExample(directory, 'several-instances/haproxy.cfg', {
    '0.0.0.0:80': `127.0.0.1:${front}`,
    '10.0.0.11:3000': `127.0.0.1:${ports[0]}`,
    '10.0.0.12:3000': `127.0.0.1:${ports[1]}`,
  })
  await startProgram(scope, directory, 'haproxy', front, ['-db', '-f', proxy])
  return {
    fixture,
    url: `http://127.0.0.1:${front}`,
    instances,
    poolerUrl,
    async restart (n) {
      instances[n]!.child.kill('SIGTERM')
      const { code } = await instances[n]!.ended
      instances[n] = await start(ports[n]!)
      return { code }
    },
  }
}

/** Writes through one instance and reads through the other, in turns. */
async function crossWrites ({ students }: Fixture, instances: Service[], times: number) {
  const problems: string[] = []
  for (let n = 0; n < times; n++) {
    const [one, other] = n % 2 === 0 ? instances : instances.toReversed()
    const { token } = students[n % students.length]!
    const title = `Blog ${randomUUID()}`
    const body = { title, content: 'What is said in it, at some length' }
    const written = await send(one!.url, { method: 'POST', path: '/blogs/submit', token, body })
    const seen = await send(other!.url, { method: 'GET', path: '/blogs/me', token })
    if (written.status !== 201) problems.push(`one instance returned ${written.status}`)
    if (!JSON.stringify(seen.body).includes(title)) problems.push('the other instance did not show it')
  }
  return [...new Set(problems)]
}

/** Compares the settings that the service requests when it connects: PgBouncer does not pass them on. */
async function compareSettings (poolerUrl: string) {
  const expected: Record<string, string> = { statement_timeout: '5000', ...PLANNING }
  const sql = postgres(poolerUrl, { max: 1, prepare: false })
  const rows = await sql<{ name: string, setting: string }[]>`
    SELECT name, setting FROM pg_settings WHERE name IN ${sql(Object.keys(expected))}
  `
  await sql.end()
  return rows.filter(({ name, setting }) => setting !== expected[name])
    .map(({ name, setting }) => `behind PgBouncer ${name} is ${setting}`)
}

/** Runs the tests of the routes behind the pooler, except the tests of plans, which need a superuser. */
async function testRoutes (poolerUrl: string) {
  try {
    const args = ['tap', '--reporter=tap', 'dist/test/routes/**/!(plans).test.js']
    const { stdout } = await run('npx', args, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: poolerUrl, DATABASE_PREPARE: 'false' },
      maxBuffer: 2 ** 28,
    })
    return { problems: [], note: /^# \{ (.*) \}$/m.exec(stdout)?.[1] }
  } catch (error) {
    const { stdout = '', message } = error as Error & { stdout?: string }
    const failed = stdout.split('\n').filter(line => /^ *not ok/.test(line)).slice(0, 10)
    return { problems: failed.length > 0 ? failed : [message] }
  }
}
