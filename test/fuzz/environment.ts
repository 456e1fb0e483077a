// The environment of the random requests: a database, and the service as a child process.
import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rm, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { driverOptions } from '#lib/database/client.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import type { Program } from '../faults/programs.ts'
import { startService } from '../faults/service.ts'
import { withDatabase } from '../run.ts'
import type { Scope } from '../scope.ts'

/** Working directory of the embedded server and the service; removed at the end. */
const DIRECTORY = '.data/fuzz'

/** How long to wait for the exit of a process that has closed its connections, in milliseconds. */
const LAST_MOMENTS = 2000

/** How many lines of the log are reported when the process has ended. */
const LOG_LINES = 20

/** Creates a migrated database, on the server at DATABASE_URL or an embedded one. Returns its URL. */
export async function makeDatabase (scope: Scope) {
  await mkdir(DIRECTORY, { recursive: true })
  scope.teardown(() => rm(DIRECTORY, { recursive: true }))
  const server = process.env.DATABASE_URL || await startServer(scope)
  const name = `fuzz_${randomUUID()}`
  const sql = postgres({ ...driverOptions(server), max: 1, fetch_types: false, onnotice () {} })
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
  readonly #scope: Scope
  readonly #environment: NodeJS.Dict<string>
  #program!: Program
  #ended!: Promise<unknown>
  /** How its process ended, with its last log lines; `undefined` while it runs. */
  #end: string | undefined
  #isEndKnown = false
  /** The size of its log at the last `prepare`. */
  #logged = 0

  private constructor (scope: Scope, environment: NodeJS.Dict<string>) {
    this.#scope = scope
    this.#environment = environment
  }

  static async start (scope: Scope, environment: NodeJS.Dict<string>) {
    const service = new Service(scope, environment)
    await service.#start()
    return service
  }

  get port () {
    return Number(this.#environment.PORT)
  }

  /** Its last log line since `prepare`. */
  async lastLogLine () {
    const log = (await readFile(this.#program.logFile)).subarray(this.#logged)
    return log.toString().trimEnd().split('\n').at(-1)!.slice(0, 500)
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
    if (this.#end) await this.#start()
    this.#logged = (await stat(this.#program.logFile)).size
    if (unnoticed) throw new Error(`Earlier, the service ${unnoticed}`)
  }

  async #start () {
    this.#end = undefined
    this.#isEndKnown = false
    this.#program = await startService(this.#scope, DIRECTORY, this.#environment)
    this.#ended = this.#program.ended.then(async ({ code, signal }) => {
      const lines = (await this.#program.log()).trimEnd().split('\n').slice(-LOG_LINES)
      this.#end = `ended with ${signal ?? `exit code ${code}`}:\n${lines.join('\n')}`
    })
  }
}
