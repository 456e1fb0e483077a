// What is fuzzed, and what it needs: a database, an identity provider, and the service in a process of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import { withDatabase } from '../run.ts'
import type { Scope } from '../scope.ts'

/** Where the embedded server and the service work; nobody else does, and it is removed at the end. */
const DIRECTORY = '.data/fuzz'

/** How long the service may take to start and to stop, in milliseconds. */
const TIMEOUT = 30_000

/** How long after its connections a process that crashes may end, in milliseconds. */
const LAST_MOMENTS = 2000

/** How many lines of the service's log are kept to be shown. */
const LOG_LINES = 20

/** Makes a migrated database, on the server at DATABASE_URL or an embedded one. Returns its address. */
export async function makeDatabase (scope: Scope) {
  await mkdir(DIRECTORY, { recursive: true })
  scope.teardown(() => rm(DIRECTORY, { recursive: true }))
  const server = process.env.DATABASE_URL || await startServer(scope)
  const name = `fuzz_${randomUUID()}`
  const sql = postgres(server, { max: 1, fetch_types: false, onnotice () {} })
  scope.teardown(async () => {
    await sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`
    await sql.end()
  })
  await sql`CREATE DATABASE ${sql(name)}`
  const url = withDatabase(server, name)
  await migrate(url)
  return url
}

async function startServer (scope: Scope) {
  const server = await startEmbeddedPostgres(DIRECTORY, { info () {}, warn: console.error })
  scope.teardown(() => server.release())
  const sql = postgres(server.url, { max: 1 })
  // Nothing here has to survive a power cut.
  await sql`ALTER SYSTEM SET fsync = off`
  await sql`SELECT pg_reload_conf()`
  await sql.end()
  return server.url
}

/** The service as its operators run it, but for what the environment says. */
export class Service {
  readonly #environment: NodeJS.Dict<string>
  #child!: ChildProcess
  #ended!: Promise<unknown>
  /** How its process ended, and what it wrote before; `undefined` while it runs. */
  #end: string | undefined
  #isEndKnown = false
  #log: string[] = []
  #lastWords = ''

  private constructor (environment: NodeJS.Dict<string>) {
    this.#environment = environment
  }

  static async start (scope: Scope, environment: NodeJS.Dict<string>) {
    const service = new Service(environment)
    scope.teardown(() => service.#stop())
    await service.#start()
    return service
  }

  get port () {
    return Number(this.#environment.PORT)
  }

  /** The last line that it wrote since `prepare`, as far as it tells what went wrong. */
  get lastWords () {
    return this.#lastWords.slice(0, 500)
  }

  /** What has become of its process, for one that may be about to end. */
  async fate () {
    await Promise.race([this.#ended, sleep(LAST_MOMENTS)])
    this.#isEndKnown = this.#end !== undefined
    return this.#end ?? 'still runs'
  }

  /** Has it ready for what comes next, started again if its process has ended. Throws when nobody has noticed that. */
  async prepare () {
    const unnoticed = this.#isEndKnown ? undefined : this.#end
    this.#lastWords = ''
    if (this.#end) await this.#start()
    if (unnoticed) throw new Error(`Some time before, the service ${unnoticed}`)
  }

  async #start () {
    const { PATH, HOME, LANG, TZ } = process.env
    this.#end = undefined
    this.#isEndKnown = false
    this.#child = spawn(join(process.cwd(), 'bin/start'), {
      cwd: DIRECTORY,
      env: { PATH, HOME, LANG, TZ, NODE_OPTIONS: '--enable-source-maps', ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#log = [...this.#log, ...text.trimEnd().split('\n')].slice(-LOG_LINES)
        this.#lastWords = this.#log.at(-1)!
      })
    }
    this.#ended = once(this.#child, 'close').then(([code, signal]) => {
      this.#end = `ended with ${signal ?? `exit code ${code}`}:\n${this.#log.join('\n')}`
    })
    const deadline = Date.now() + TIMEOUT
    while (!await this.#isReady()) {
      if (this.#end || Date.now() > deadline) {
        throw new Error(`The service does not start: ${this.#end ?? this.lastWords}`)
      }
      await sleep(20)
    }
  }

  #isReady () {
    return fetch(`http://127.0.0.1:${this.port}/readyz`).then(({ ok }) => ok, () => false)
  }

  async #stop () {
    this.#child.kill('SIGTERM')
    await Promise.race([this.#ended, sleep(TIMEOUT, undefined, { ref: false })])
    this.#child.kill('SIGKILL')
    await this.#ended
  }
}
