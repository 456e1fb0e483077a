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
import { type Fault, lazy, type Setting, strike, type Target } from './database.ts'
import { createFixture, shareOf } from './fixture.ts'
import type { Load } from './load.ts'
import {
  type Account, fillExample, missingPrograms, newestBin, NOBODY, postgresAccount, readExample, startProgram, writeFor,
} from './programs.ts'
import { type Row, rowOf } from './report.ts'
import type { Scope } from '../scope.ts'
import { startService } from './service.ts'

const run = promisify(execFile)

/** How to get what must be there, on Debian and Ubuntu. */
const INSTALL = 'apt-get install patroni etcd-server haproxy pgbouncer postgresql'

/** The names of the members in examples/patroni, and the ends of their addresses. */
const NAMES = { one: 21, two: 22, three: 23 }

/** The role of the service. */
const ROLE = { user: 'community', password: 'correct-horse' }

/** The password of the superuser in examples/patroni. */
const SUPERUSER = 'postgres:change-me-2'

/** Within how many seconds a cluster is there, or is whole again, on a slow machine. */
const PATIENCE = 120

/** The default of DATABASE_TIMEOUT, in seconds. */
const TIMEOUT = 5

/** A member, as GET /cluster of Patroni has it. */
interface MemberState {
  name: string
  role: string
  state: string
  timeline: number
}

/** A service for each way to the database, and the cluster that they share. */
interface Group {
  cluster: PatroniCluster
  targets: Map<string, Target>
}

interface Fate {
  /** Whether requests must fail, and the database is away for so long that /readyz must tell. */
  fails: boolean
  isAway: boolean
  /** Does it. Resolves when the cluster is whole again; what it returns is noted. */
  inflict (cluster: PatroniCluster): Promise<string>
  /** Within how many seconds writes must go on. */
  bound (cluster: PatroniCluster): number
}

export function patroniFaults (setting: Setting): Fault[] {
  const group = lazy(() => openGroup(setting))
  const named = (name: string, fate: Fate): Fault => ({ name, run: () => runFault(name, group, fate) })

  const faults = [
    named('patroni: switchover', {
      fails: false,
      isAway: false,
      bound: ({ loopWait }) => 2 * loopWait + TIMEOUT,
      async inflict (cluster) {
        const leader = await cluster.leader()
        await cluster.control('switchover', '--force')
        return `${leader} -> ${await cluster.otherLeader(leader)}`
      },
    }),
    named('patroni: primary killed', {
      fails: true,
      isAway: true,
      bound: leaseBound,
      async inflict (cluster) {
        const leader = await cluster.leader()
        await cluster.member(leader).kill()
        const other = await cluster.otherLeader(leader)
        await cluster.member(leader).start()
        return `${leader} -> ${other}`
      },
    }),
    named('patroni: primary paused beyond its lease', {
      fails: true,
      isAway: true,
      bound: leaseBound,
      async inflict (cluster) {
        const leader = await cluster.leader()
        const start = performance.now()
        await cluster.member(leader).pause()
        const other = await cluster.otherLeader(leader)
        await sleep(start + (cluster.ttl + 2 * cluster.loopWait) * 1000 - performance.now())
        const woken = await cluster.member(leader).wake()
        return `${leader} -> ${other}; the old one took itself for the primary for ${woken.toFixed(1)} s more`
      },
    }),
    named('patroni: synchronous standby paused', {
      fails: true,
      // Reads go on.
      isAway: false,
      bound: ({ walSenderTimeout, loopWait }) => walSenderTimeout + 2 * loopWait,
      async inflict (cluster) {
        const standby = await cluster.synchronous()
        await cluster.member(standby).pause()
        await sleep(leaseBound(cluster) * 1000)
        const other = await cluster.synchronous(standby)
        await cluster.member(standby).wake()
        return `${standby} -> ${other}`
      },
    }),
    named('patroni: etcd away', {
      fails: false,
      isAway: false,
      // By its failsafe_mode, the primary goes on.
      bound: () => TIMEOUT,
      async inflict (cluster) {
        const leader = await cluster.leader()
        await cluster.withoutEtcd(cluster.ttl + 2 * cluster.loopWait)
        const now = await cluster.leader()
        if (now !== leader) throw new Error(`${leader} was the primary, ${now} is it now`)
        return `${leader} stays`
      },
    }),
    named('patroni: etcd away without failsafe_mode', {
      fails: true,
      isAway: true,
      // etcd is away for so long; the primary has demoted itself after its lease at the latest.
      bound: cluster => 2 * leaseBound(cluster),
      async inflict (cluster) {
        await cluster.control('edit-config', '--force', '--set', 'failsafe_mode=false')
        await sleep(2 * cluster.loopWait * 1000)
        const leader = await cluster.leader()
        await cluster.withoutEtcd(leaseBound(cluster))
        await cluster.whole()
        await cluster.control('edit-config', '--force', '--set', 'failsafe_mode=true')
        return `${leader} -> ${await cluster.leader()}`
      },
    }),
  ]
  return setting.short ? faults.filter(({ name }) => name === 'patroni: primary killed') : faults
}

/** The lease runs out, another member takes it, and all clients find that one. */
function leaseBound ({ ttl, loopWait }: PatroniCluster) {
  return ttl + 2 * loopWait
}

/** Has the fault strike the services of all ways at the same time. */
async function runFault (name: string, group: () => Promise<Group>, fate: Fate): Promise<Row> {
  const missing = await newestBin() ? await missingPrograms('patroni', 'etcd', 'haproxy', 'pgbouncer') : 'postgresql'
  if (missing) return { ...rowOf(name, [], []), missing: `${INSTALL} installs it` }
  const { cluster, targets } = await group()
  const bound = fate.bound(cluster)
  let note = ''
  const inflict = lazy(async () => {
    note = await fate.inflict(cluster)
    await cluster.whole()
  })
  const start = performance.now()
  const rows = await Promise.all([...targets].map(async ([way, target]) => {
    let pause = 0
    const row = await strike(name, target, {
      ...fate,
      async inflict (load) {
        const stop = watchWrites(load)
        await inflict()
        pause = stop()
      },
    })
    if (pause > bound) row.problems.push(`no write for ${pause.toFixed(1)} s, ${bound} s are allowed`)
    return { way, pause, row }
  }))
  const pauses = rows.map(({ way, pause }) => `${pause.toFixed(1)} s by ${way}`).join(', ')
  return {
    ...sumOf(name, rows.map(({ way, row }) => ({ ...row, problems: row.problems.map(what => `${way}: ${what}`) }))),
    note: `${note}; no write for ${pauses}; ${Math.round((performance.now() - start) / 1000)} s in all`,
  }
}

function sumOf (fault: string, rows: Row[]): Row {
  const sum = (value: (row: Row) => number) => rows.reduce((total, row) => total + value(row), 0)
  return {
    fault,
    sent: sum(row => row.sent),
    answered: sum(row => row.answered),
    failed: sum(row => row.failed),
    acknowledged: sum(row => row.acknowledged),
    lost: sum(row => row.lost),
    slowest: Math.max(...rows.map(row => row.slowest)),
    recovery: Math.max(...rows.map(row => row.recovery!)),
    problems: rows.flatMap(row => row.problems),
  }
}

/** Measures the longest time without an acknowledged write; the function that it returns ends that, in seconds. */
function watchWrites ({ ledger }: Load) {
  let { size } = ledger
  let last = performance.now()
  let longest = 0
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    if (ledger.size === size) return
    size = ledger.size
    last = now
  }
  const timer = setInterval(look, 10)
  return () => {
    clearInterval(timer)
    look()
    return longest / 1000
  }
}

async function openGroup ({ scope, directory }: Setting): Promise<Group> {
  const cluster = await PatroniCluster.start(scope, directory)
  const { network } = cluster
  const { host } = cluster.member(await cluster.leader())
  const sql = postgres(`postgres://${SUPERUSER}@${host}:5432/postgres`, { max: 1 })
  await sql.unsafe(`CREATE ROLE ${ROLE.user} LOGIN PASSWORD '${ROLE.password}'`)
  await sql.unsafe(`CREATE DATABASE community OWNER ${ROLE.user}`)
  await sql.end()

  const urlOf = (address: string) => `postgres://${ROLE.user}:${ROLE.password}@${network}${address}/community`
  const haproxy = `${urlOf('20:5432')}?target_session_attrs=primary`
  await migrate(haproxy)
  const fixture = await createFixture(haproxy)
  const ways: [string, NodeJS.Dict<string>][] = [
    ['HAProxy', { DATABASE_URL: haproxy }],
    ['PgBouncer', { DATABASE_URL: urlOf('15:6432'), DATABASE_PREPARE: 'false' }],
  ]
  const targets = await Promise.all(ways.map(async ([way, environment], n) => [way, {
    service: await startService(scope, directory, environment),
    fixture: shareOf(fixture, n, ways.length),
    timeout: TIMEOUT,
    // As much as two cores carry beside three servers.
    load: { readers: 3, writers: 3, pause: 20 },
  }] as const))
  return { cluster, targets: new Map(targets) }
}

/** Where a member runs, and as which user. */
interface Place {
  scope: Scope
  home: string
  /** The address of the member. */
  host: string
  account: Account
}

/** The cluster of examples/patroni: the files as they stand there, on addresses of this machine. */
class PatroniCluster {
  readonly members = new Map<string, Member>()
  /** The prefix of all addresses, in the place of "10.0.0.": all of 127.0.0.0/8 is this machine. */
  readonly network = `127.${randomInt(1, 255)}.${randomInt(255)}.`
  /** Settings of Patroni, in seconds. */
  readonly ttl: number
  readonly loopWait: number
  readonly walSenderTimeout: number
  readonly #account: Account
  readonly #etcd: Etcd[] = []

  private constructor (settings: string, account: Account) {
    const setting = (name: string) => Number(new RegExp(`^ +${name}: (\\d+)s?$`, 'm').exec(settings)![1])
    this.ttl = setting('ttl')
    this.loopWait = setting('loop_wait')
    this.walSenderTimeout = setting('wal_sender_timeout')
    this.#account = account
  }

  static async start (scope: Scope, parent: string) {
    const account = await postgresAccount()
    const cluster = new PatroniCluster(await readExample('patroni/patroni.yml', {}), account)
    const directory = await makeFolder(join(parent, 'patroni'), account)
    for (const [name, end] of Object.entries(NAMES)) {
      await cluster.#add(name, end, { scope, home: await makeFolder(join(directory, name), account), account })
    }
    await Promise.all(cluster.#etcd.map(member => member.start()))
    // HAProxy takes a member for what it should be until it has asked it, so it begins before there is anything to ask.
    await cluster.#startProxies(scope, directory)
    for (const member of cluster.members.values()) await member.start()
    await cluster.whole()
    return cluster
  }

  async #add (name: string, end: number, { home, ...rest }: Omit<Place, 'host'>) {
    const place = { ...rest, home, host: this.network + end }
    const readEnvironment = async (path: string) => {
      const lines = (await readExample(path, {})).matchAll(/^(\w+)=(.*)$/gm)
      return Object.fromEntries([...lines].map(([, variable = '', value = '']) => {
        const own = variable.endsWith('_NAME') ? name : value.replace('10.0.0.21', `10.0.0.${end}`)
        return [variable, (variable === 'ETCD_INITIAL_CLUSTER' ? value : own).replaceAll('10.0.0.', this.network)]
      }))
    }
    const etcd = await readEnvironment('patroni/etcd.env')
    this.#etcd.push(new Etcd(place, { ...etcd, ETCD_DATA_DIR: join(home, 'etcd') }))
    const config = await fillExample(home, 'patroni/patroni.yml', {
      '10.0.0.0/24': '127.0.0.0/8',
      '10.0.0.': this.network,
      '/usr/lib/postgresql/15/bin': (await newestBin())!,
      '/var/lib/postgresql/15/community': join(home, 'postgres'),
      '/var/lib/postgresql/community.pgpass': join(home, 'pgpass'),
      '/var/run/postgresql': home,
      // A test must not reset the machine.
      'mode: automatic': 'mode: "off"',
    }, place.account)
    this.members.set(name, new Member(place, config, await readEnvironment('patroni/patroni.env')))
  }

  async #startProxies (scope: Scope, directory: string) {
    const addresses = { '10.0.0.': this.network }
    const haproxy = await fillExample(directory, 'patroni/haproxy.cfg', addresses)
    await run('haproxy', ['-c', '-f', haproxy])
    await startProgram(scope, directory, 'haproxy', 5432, ['-db', '-f', haproxy], { host: `${this.network}20` })
    const users = await writeFor(NOBODY, directory, 'userlist.txt', `"${ROLE.user}" "${ROLE.password}"\n`)
    const pgbouncer = await fillExample(directory, 'several-instances/pgbouncer.ini', {
      ...addresses, '/etc/pgbouncer/userlist.txt': users,
    })
    await startProgram(scope, directory, 'pgbouncer', 6432, [pgbouncer], { host: `${this.network}15` })
  }

  member (name: string) {
    return this.members.get(name)!
  }

  /** The members, as any of them reports; empty when none responds. */
  async states (): Promise<MemberState[]> {
    for (const { host } of this.members.values()) {
      try {
        const response = await fetch(`http://${host}:8008/cluster`, { signal: AbortSignal.timeout(3000) })
        const { members } = await response.json() as { members: MemberState[] }
        return members
      } catch {}
    }
    return []
  }

  /** The name of the primary. */
  async leader () {
    return (await this.#until('a primary', states => states.find(isLeader))).name
  }

  /** The name of the standby that commits wait for, as soon as it is another one than this. */
  async synchronous (former = '') {
    return (await this.#until('a synchronous standby', states => {
      return states.find(({ role, name }) => role === 'sync_standby' && name !== former)
    })).name
  }

  /** The name of the primary, as soon as it is another one. */
  async otherLeader (leader: string) {
    return (await this.#until('another primary', states => {
      return states.find(state => isLeader(state) && state.name !== leader)
    })).name
  }

  /** Waits until all members run, on one timeline, with a primary and a synchronous standby. */
  async whole () {
    await this.#until('a whole cluster', states => {
      const [first] = states
      return states.length === this.members.size && states.some(isLeader) &&
        states.some(({ role }) => role === 'sync_standby') &&
        states.every(({ state, timeline }) => /^(running|streaming)$/.test(state) && timeline === first!.timeline)
    })
  }

  async #until<T> (what: string, look: (states: MemberState[]) => T): Promise<NonNullable<T>> {
    const deadline = performance.now() + PATIENCE * 1000
    for (;;) {
      const states = await this.states()
      const found = look(states)
      if (found) return found
      if (performance.now() > deadline) {
        throw new Error(`not ${what} within ${PATIENCE} s: ${JSON.stringify(states)}`)
      }
      await sleep(100)
    }
  }

  /** Runs a command of patronictl, as an operator does. */
  async control (command: string, ...args: string[]) {
    const [{ config }] = [...this.members.values()] as [Member]
    await run('patronictl', ['-c', config, command, 'community', ...args], this.#account)
  }

  /** Kills etcd on all members, and starts it again after so many seconds. */
  async withoutEtcd (seconds: number) {
    await Promise.all(this.#etcd.map(member => member.kill()))
    await sleep(seconds * 1000)
    await Promise.all(this.#etcd.map(member => member.start()))
  }
}

function isLeader ({ role, state }: MemberState) {
  return role === 'leader' && state === 'running'
}

/** Makes a folder that belongs to this account. */
async function makeFolder (path: string, { uid, gid }: Account) {
  await mkdir(path)
  await chown(path, uid, gid)
  return path
}

class Etcd {
  readonly #place: Place
  readonly #environment: NodeJS.Dict<string>
  #child: ChildProcess | undefined

  constructor (place: Place, environment: NodeJS.Dict<string>) {
    this.#place = place
    this.#environment = environment
  }

  async start () {
    const { scope, home, ...place } = this.#place
    this.#child = await startProgram(scope, home, 'etcd', 2379, [], { ...place, environment: this.#environment })
  }

  async kill () {
    this.#child!.kill('SIGKILL')
    await once(this.#child!, 'close')
  }
}

/** Patroni and PostgreSQL of one member. */
class Member {
  readonly host: string
  readonly config: string
  readonly #place: Place
  readonly #environment: NodeJS.Dict<string>
  #child: ChildProcess | undefined

  constructor (place: Place, config: string, environment: NodeJS.Dict<string>) {
    this.host = place.host
    this.config = config
    this.#place = place
    this.#environment = environment
    // PostgreSQL goes on when its Patroni is killed.
    place.scope.teardown(async () => {
      const pids = await postgresOf(place.home)
      for (const pid of pids.slice(0, 1)) process.kill(pid, 'SIGQUIT')
      await remaining(pids)
    })
  }

  async start () {
    const { scope, home, ...place } = this.#place
    const { host, config } = this
    const environment = { ...this.#environment, LANG: 'C.UTF-8' }
    // This needs a folder without data.
    if (!this.#child) {
      const env = { PATH: process.env.PATH, ...environment }
      await run('patroni', ['--validate-config', config], { ...place.account, env })
    }
    this.#child = await startProgram(scope, home, 'patroni', 8008, [config], { ...place, host, environment })
  }

  /** Kills Patroni and PostgreSQL, as when the machine loses its power. */
  async kill () {
    this.#child!.kill('SIGKILL')
    await once(this.#child!, 'close')
    await this.#signalPostgres('SIGKILL')
  }

  /** Stops Patroni and PostgreSQL, as when the machine is moved or suspended. */
  async pause () {
    this.#child!.kill('SIGSTOP')
    await this.#signalPostgres('SIGSTOP')
  }

  /** Lets them go on. Returns for how many seconds PostgreSQL still took itself for the primary. */
  async wake () {
    const start = performance.now()
    let last = start
    await this.#signalPostgres('SIGCONT')
    this.#child!.kill('SIGCONT')
    while (performance.now() < start + PATIENCE * 1000) {
      const sql = postgres(`postgres://${SUPERUSER}@${this.host}:5432/postgres`, {
        max: 1,
        connect_timeout: 1,
        // The driver would ask for them by itself, and nothing would handle its failure.
        fetch_types: false,
        onnotice () {},
      })
      try {
        const [row] = await sql`SELECT pg_is_in_recovery() AS "isStandby"`
        if (row!.isStandby) break
        last = performance.now()
      } catch {
        // It is being restarted.
        await sleep(50)
      } finally {
        await sql.end({ timeout: 0 })
      }
    }
    return (last - start) / 1000
  }

  async #signalPostgres (signal: NodeJS.Signals) {
    const [server] = await postgresOf(this.#place.home)
    // So that it starts no more children meanwhile.
    if (signal !== 'SIGCONT') process.kill(server!, 'SIGSTOP')
    const pids = await postgresOf(this.#place.home)
    // Some may have ended by themselves.
    await run('kill', ['-s', signal.slice('SIG'.length), ...pids.map(String)]).catch(() => {})
    if (signal === 'SIGKILL') await remaining(pids)
  }
}
