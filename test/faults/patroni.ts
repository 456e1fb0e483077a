// A primary that fails, as docs/run/deploy.md describes it: three members with Patroni and etcd, behind HAProxy.
import { type ChildProcess, execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { migrate } from '#lib/database/migrations.js'
import { postgresOf, remaining } from '../process.ts'
import { type Fault, lazy, type Setting, strike } from './database.ts'
import { createFixture } from './fixture.ts'
import type { Load } from './load.ts'
import {
  fillExample, missingPrograms, newestBin, NOBODY, postgresAccount, readExample, startProgram, writeFor,
} from './programs.ts'
import { rowOf } from './report.ts'
import { startService } from './service.ts'

const run = promisify(execFile)

/** The names of the members in examples/patroni, and the ends of their addresses. */
const NAMES = { one: 21, two: 22, three: 23 }

/** The role of the service. */
const ROLE = { user: 'community', password: 'correct-horse' }

/** The password of the superuser in examples/patroni. */
const SUPERUSER = 'postgres:change-me-2'

/** The longest time until a cluster is whole, on a slow machine, in seconds. */
const PATIENCE = 120

/** The default of DATABASE_TIMEOUT, in seconds. */
const TIMEOUT = 5

/** Settings of examples/patroni/patroni.yml, in seconds. */
const TTL = 20
const LOOP_WAIT = 5

/** After this time, the lease has expired, a different member holds it, and all clients find this member. */
const LEASE = TTL + 2 * LOOP_WAIT

/** A member, as GET /cluster of Patroni shows it. */
interface MemberState {
  name: string
  role: string
  state: string
  timeline: number
}

/** The longest time without a write after each fault, in seconds. */
const BOUNDS = {
  'patroni: switchover': 2 * LOOP_WAIT + TIMEOUT,
  // The service uses PgBouncer, as in docs/run/deploy.md.
  'patroni: primary killed': LEASE,
}

export function patroniFaults (setting: Setting): Fault[] {
  const shared = lazy(() => startCluster(setting))
  return Object.entries(BOUNDS).map(([name, bound]) => {
    const isKilled = name.endsWith('killed')
    return {
      name,
      async run () {
        if (!await newestBin() || await missingPrograms('patroni', 'etcd', 'haproxy', 'pgbouncer')) {
          const missing = 'apt-get install patroni etcd-server haproxy pgbouncer postgresql installs it'
          return { ...rowOf(name, [], []), missing }
        }
        const { fixture, haproxy, pooler, leader, whole, switchOver, kill, start } = await shared()
        const { scope, directory } = setting
        const service = await startService(scope, directory, isKilled
          ? { DATABASE_URL: pooler, DATABASE_PREPARE: 'false' }
          : { DATABASE_URL: haproxy })
        let [former, next, pause] = ['', '', 0]
        // As much load as two cores carry alongside three servers.
        const load = { readers: 4, writers: 4, pause: 20 }
        const row = await strike(name, { service, fixture, timeout: TIMEOUT, load }, {
          fails: isKilled,
          isAway: isKilled,
          async inflict (load) {
            const stop = watchWrites(load)
            former = await leader()
            await (isKilled ? kill(former) : switchOver())
            next = await leader(former)
            if (isKilled) await start(former)
            await whole()
            pause = stop()
          },
        })
        service.child.kill('SIGTERM')
        await service.ended
        if (pause > bound) row.problems.push(`no write for ${pause.toFixed(1)} s, ${bound} s are allowed`)
        row.note = `${former} -> ${next}; no write for ${pause.toFixed(1)} s`
        return row
      },
    }
  }).filter(({ name }) => !setting.short || name.endsWith('killed'))
}

/** Measures the longest time without an acknowledged write. Returns a function that ends this, in seconds. */
function watchWrites ({ ledger }: Load) {
  let { size } = ledger
  let last = performance.now()
  let longest = 0
  const look = () => {
    longest = Math.max(longest, performance.now() - last)
    if (ledger.size === size) return
    size = ledger.size
    last = performance.now()
  }
  const timer = setInterval(look, 10)
  return () => {
    clearInterval(timer)
    look()
    return longest / 1000
  }
}

/** Starts the cluster of examples/patroni: the files as they are there, on addresses of this machine. */
async function startCluster ({ scope, directory: parent }: Setting) {
  const account = await postgresAccount()
  // Replaces "10.0.0.": all of 127.0.0.0/8 is this machine.
  const network = `127.${randomInt(1, 255)}.${randomInt(255)}.`
  const makeFolder = async (path: string) => {
    await mkdir(path)
    await chown(path, account.uid, account.gid)
    return path
  }
  const directory = await makeFolder(join(parent, 'patroni'))
  const members = new Map(await Promise.all(Object.entries(NAMES).map(async ([name, end]) => {
    const home = await makeFolder(join(directory, name))
    const place = { account, host: network + end }
    const readEnvironment = async (path: string) => {
      const lines = (await readExample(path, {})).matchAll(/^(\w+)=(.*)$/gm)
      return Object.fromEntries([...lines].map(([, variable = '', value = '']) => {
        const own = variable.endsWith('_NAME') ? name : value.replace('10.0.0.21', `10.0.0.${end}`)
        return [variable, (variable === 'ETCD_INITIAL_CLUSTER' ? value : own).replaceAll('10.0.0.', network)]
      }))
    }
    const config = await fillExample(home, 'patroni/patroni.yml', {
      '10.0.0.0/24': '127.0.0.0/8',
      '10.0.0.': network,
      '/usr/lib/postgresql/15/bin': (await newestBin())!,
      '/var/lib/postgresql/15/community': join(home, 'postgres'),
      '/var/lib/postgresql/community.pgpass': join(home, 'pgpass'),
      '/var/run/postgresql': home,
      // A test must not reset the machine.
      'mode: automatic': 'mode: "off"',
    }, account)
    const programs = {
      etcd: [2379, [], { ...await readEnvironment('patroni/etcd.env'), ETCD_DATA_DIR: join(home, 'etcd') }],
      patroni: [8008, [config], { ...await readEnvironment('patroni/patroni.env'), LANG: 'C.UTF-8' }],
    } as const
    const start = async (program: keyof typeof programs) => {
      const [port, args, environment] = programs[program]
      return startProgram(scope, home, program, port, [...args], { ...place, environment })
    }
    // PostgreSQL continues when its Patroni is killed.
    scope.teardown(async () => {
      const pids = await postgresOf(home)
      for (const pid of pids.slice(0, 1)) process.kill(pid, 'SIGQUIT')
      await remaining(pids)
    })
    return [name, { home, config, start }] as const
  })))
  const children = new Map<string, ChildProcess>()
  /** Starts Patroni of a member. */
  const start = async (name: string) => { children.set(name, await members.get(name)!.start('patroni')) }
  const names = Object.keys(NAMES)

  /** The members, as any of them reports them. */
  async function states (): Promise<MemberState[]> {
    const requests = Object.values(NAMES).map(async end => {
      const response = await fetch(`http://${network}${end}:8008/cluster`, { signal: AbortSignal.timeout(3000) })
      return (await response.json() as { members: MemberState[] }).members
    })
    return Promise.any(requests).catch(() => [])
  }

  async function until<T> (what: string, look: (states: MemberState[]) => T): Promise<NonNullable<T>> {
    const deadline = performance.now() + PATIENCE * 1000
    for (;;) {
      const members = await states()
      const found = look(members)
      if (found) return found
      if (performance.now() > deadline) throw new Error(`not ${what} in ${PATIENCE} s: ${JSON.stringify(members)}`)
      await sleep(100)
    }
  }
  const isLeader = ({ role, state }: MemberState) => role === 'leader' && state === 'running'

  /** The name of the primary, as soon as it is not the former one. */
  const leader = async (former = '') =>
    (await until('a primary', states => states.find(state => isLeader(state) && state.name !== former))).name

  /** Waits until all members run, on one timeline, with a primary and a synchronous standby. */
  const whole = () => until('a whole cluster', states => states.length === names.length && states.some(isLeader) &&
    states.some(({ role }) => role === 'sync_standby') && states.every(({ state, timeline }) =>
    /^(running|streaming)$/.test(state) && timeline === states[0]!.timeline))

  await Promise.all([...members.values()].map(({ start }) => start('etcd')))
  // HAProxy trusts a member until its first check, so it starts before the members.
  const haproxy = await fillExample(directory, 'patroni/haproxy.cfg', { '10.0.0.': network })
  await startProgram(scope, directory, 'haproxy', 5432, ['-db', '-f', haproxy], { host: `${network}20` })
  const users = await writeFor(NOBODY, directory, 'userlist.txt', `"${ROLE.user}" "${ROLE.password}"\n`)
  const pgbouncer = await fillExample(directory, 'several-instances/pgbouncer.ini', {
    '10.0.0.': network, '/etc/pgbouncer/userlist.txt': users,
  })
  await startProgram(scope, directory, 'pgbouncer', 6432, [pgbouncer], { host: `${network}15` })
  for (const name of names) await start(name)
  await whole()

  const urlOf = (credentials: string, address: string, database = 'community') =>
    `postgres://${credentials}@${network}${address}/${database}`
  const sql = postgres(urlOf(SUPERUSER, '20:5432', 'postgres'), { max: 1 })
  await sql.unsafe(`CREATE ROLE ${ROLE.user} LOGIN PASSWORD '${ROLE.password}'`)
  await sql.unsafe(`CREATE DATABASE community OWNER ${ROLE.user}`)
  await sql.end()
  const role = `${ROLE.user}:${ROLE.password}`
  const url = urlOf(role, '20:5432')
  await migrate(url)
  return {
    fixture: await createFixture(url),
    haproxy: url,
    pooler: urlOf(role, '15:6432'),
    leader,
    whole,
    start,
    switchOver: () =>
      run('patronictl', ['-c', members.get('one')!.config, 'switchover', 'community', '--force'], account),
    /** Kills Patroni and PostgreSQL of a member, as if the machine lost its power. */
    async kill (name: string) {
      const patroni = children.get(name)!
      patroni.kill('SIGKILL')
      await once(patroni, 'close')
      const { home } = members.get(name)!
      // A stopped server starts no more children.
      process.kill((await postgresOf(home))[0]!, 'SIGSTOP')
      const pids = await postgresOf(home)
      // Some processes may already have ended.
      await run('kill', ['-s', 'KILL', ...pids.map(String)]).catch(() => {})
      await remaining(pids)
    },
  }
}
