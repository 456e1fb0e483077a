// The environment of the random requests: a database, and the service as a child process.
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

/** Working directory of the embedded server and the service; removed at the end. */
const DIRECTORY = '.data/fuzz'

/** Timeout of start and stop, in milliseconds. */
const TIMEOUT = 30_000

/** How long to wait for the exit of a process that has closed its connections, in milliseconds. */
const LAST_MOMENTS = 2000

/** How many lines of the log are kept for the report. */
const LOG_LINES = 20

/** Creates a migrated database, on the server at DATABASE_URL or an embedded one. Returns its URL. */
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
  // The data need not survive a power failure.
  await sql`ALTER SYSTEM SET fsync = off`
  await sql`SELECT pg_reload_conf()`
  await sql.end()
  return server.url
}

/** The service as operators run it, configured by `environment` only. */
export class Service {
  readonly #environment: NodeJS.Dict<string>
  #child!: ChildProcess
  #ended!: Promise<unknown>
  /** How its process ended, with its last log lines; `undefined` while it runs. */
  #end: string | undefined
  #isEndKnown = false
  #log: string[] = []
  #lastLogLine = ''

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

  /** Its last log line since `prepare`. */
  get lastLogLine () {
    return this.#lastLogLine.slice(0, 500)
  }

  /** Whether its process runs or how it ended, after a moment in which it may exit. */
  async fate () {
    await Promise.race([this.#ended, sleep(LAST_MOMENTS)])
    this.#isEndKnown = this.#end !== undefined
    return this.#end ?? 'still runs'
  }

  /** Restarts the service if its process has ended. Throws if no earlier check has noticed that. */
  async prepare () {
    const unnoticed = this.#isEndKnown ? undefined : this.#end
    this.#lastLogLine = ''
    if (this.#end) await this.#start()
    if (unnoticed) throw new Error(`Earlier, the service ${unnoticed}`)
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
        this.#lastLogLine = this.#log.at(-1)!
      })
    }
    this.#ended = once(this.#child, 'close').then(([code, signal]) => {
      this.#end = `ended with ${signal ?? `exit code ${code}`}:\n${this.#log.join('\n')}`
    })
    const deadline = Date.now() + TIMEOUT
    while (!await this.#isReady()) {
      if (this.#end || Date.now() > deadline) {
        throw new Error(`The service does not start: ${this.#end ?? this.lastLogLine}`)
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
