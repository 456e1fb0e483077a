import cluster, { type Worker } from 'node:cluster'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import type { DestinationStream } from 'pino'

import type { Config } from '../config.ts'
import { openDatabase } from '../database/client.ts'
import { startEmbeddedPostgres } from '../database/embedded-postgres.ts'
import { prepareDatabase } from '../database/prepare.ts'
import { StartupError } from '../errors.ts'
import { standardOutput } from '../http/log-output.ts'
import type { Logger } from '../http/logger.ts'
import { createTotals, type Values } from '../metrics.ts'
import type { Service } from '../shutdown.ts'
import { Channel } from './channel.ts'

/** A worker that was started. */
interface Running {
  worker: Worker
  channel: Channel
  isServing: boolean
  /** Resolves when it serves; rejects with a StartupError when it ends before. */
  started: Promise<void>
  /** Resolves at its end, with the reason, and the milliseconds for which it has served. */
  ended: Promise<{ by: string, served: number }>
  /** Its metrics when it was last asked. */
  metrics: Values
}

/** How long a worker has to serve, in milliseconds, for the next one to start without a pause. */
const PROVEN_MS = 60_000

/** The first backoff, and the longest, in milliseconds. */
const BACKOFF_MS = { first: 500, longest: 30_000 }

/** Seconds that a worker may take to say what it has counted. */
const METRICS_SECONDS = 2

/** Backoff before a worker is restarted, in milliseconds: none after a minute of service, else doubled. */
export function nextBackoff (backoff: number, served: number) {
  if (served >= PROVEN_MS) return 0
  return backoff === 0 ? BACKOFF_MS.first : Math.min(backoff * 2, BACKOFF_MS.longest)
}

/**
 * The supervisor of several workers. It opens and migrates the database, starts the workers, which serve on one port,
 * and restarts those that end. It serves nothing itself.
 */
export class Supervisor implements Service {
  readonly #config: Config
  readonly #log: Logger
  readonly #output: DestinationStream
  readonly #totals: ReturnType<typeof createTotals> | undefined
  /** By their index. */
  readonly #running: Running[] = []
  readonly #stopping = new AbortController()
  #started: Promise<void> | undefined
  #releaseDatabase = async () => {}
  /** The variable that leads workers to the embedded database. */
  #embedded: { DATABASE_URL?: string } = {}

  /** The lines of the workers' logs go to `output`, as those of `log` do. */
  constructor (config: Config, log: Logger, output: DestinationStream) {
    this.#config = config
    this.#log = log
    this.#output = output
    this.#totals = config.METRICS_TOKEN ? createTotals(standardOutput) : undefined
    // Workers accept connections themselves. The other policy passes each one to a worker: if that is killed before it
    // takes the connection, the supervisor keeps it open, and the client waits for ever.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    // The output of workers is relayed. If they shared ours, each fork would let it block for a moment, in all of them:
    // a worker that wrote to a full pipe then would wait for ever.
    cluster.setupPrimary({ silent: true })
  }

  /** Rejects with a StartupError when the database cannot be opened, or a worker cannot start. */
  start () {
    this.#started = this.#start()
    return this.#started
  }

  /** Drains the workers. Rejects if one that served failed to stop cleanly. */
  async stop () {
    const serving = this.#running.filter(({ isServing }) => isServing)
    await this.close()
    for (const { worker: { process }, ended } of serving) {
      if (process.exitCode !== 0) throw new Error(`Worker ${process.pid} ended by ${(await ended).by}`)
    }
  }

  async close () {
    this.#stopping.abort()
    for (const { worker } of this.#running) worker.process.kill('SIGTERM')
    // The start finishes first, so that all it opens is closed.
    await Promise.allSettled([this.#started])
    await Promise.all(this.#running.map(({ ended }) => ended))
    await this.#releaseDatabase()
  }

  /** Ends workers that cannot even give up by themselves. */
  kill () {
    for (const { worker } of this.#running) worker.process.kill('SIGKILL')
  }

  async #start () {
    await this.#prepare()
    const { WORKERS } = this.#config
    const [first, ...others] = Array.from({ length: WORKERS }, (_worker, index) => index)
    // The first one starts alone: an error that stops all of them is printed once.
    for (const group of [[first!], others]) {
      if (this.#stopping.signal.aborted) return
      await Promise.all(group.map(index => this.#fork(index).started))
    }
    this.#log.info(`All ${WORKERS} workers are ready`)
    for (const index of this.#running.keys()) this.#keep(index)
  }

  /** Opens and migrates the database. */
  async #prepare () {
    if (!this.#config.DATABASE_URL) {
      const server = await startEmbeddedPostgres(this.#config.DATA_DIR, this.#log)
      this.#releaseDatabase = server.release
      this.#embedded = { DATABASE_URL: server.url }
    }
    const database = await openDatabase({ ...this.#config, ...this.#embedded }, this.#log)
    try {
      await prepareDatabase(database, this.#config, this.#log)
    } finally {
      await database.close()
    }
  }

  /** Starts the worker with this index. It loads its configuration itself, and prints why it cannot start. */
  #fork (index: number) {
    const { WORKERS } = this.#config
    const worker = cluster.fork({ ...this.#embedded, WORKERS, WORKER_INDEX: index })
    createInterface(worker.process.stdout!).on('line', line => this.#output.write(`${line}\n`))
    worker.process.stderr!.on('data', text => process.stderr.write(text))
    let servesSince: number | undefined
    const listens = new Promise<void>(resolve => worker.once('listening', () => {
      servesSince = performance.now()
      running.isServing = true
      resolve()
    }))
    const ended = new Promise<string>(resolve => {
      // When its output was read, too.
      worker.process.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`))
      worker.on('error', error => {
        this.#log.error({ err: error }, 'Worker failed')
        // A worker that could not be spawned has no exit.
        if (!worker.process.pid) resolve(error.message)
      })
    }).then(async by => {
      running.isServing = false
      await (await this.#totals)?.keep(running.metrics)
      return { by, served: servesSince === undefined ? 0 : performance.now() - servesSince }
    })
    const running: Running = {
      worker,
      channel: new Channel(worker, {
        ready: () => this.#assertReady(),
        metrics: () => this.#readMetrics(),
      }),
      isServing: false,
      started: Promise.race([listens, ended.then(({ by }) => {
        throw new StartupError(`Worker ${index + 1} of ${WORKERS} ended by ${by} before it served`)
      })]),
      ended,
      metrics: [],
    }
    // Once it serves, its end is no failed start.
    running.started.catch(() => {})
    this.#running[index] = running
    return running
  }

  /** Restarts the worker with this index whenever it ends, until the service stops. */
  async #keep (index: number) {
    const { signal } = this.#stopping
    for (let backoff = 0; ;) {
      const { worker: { process: { pid } }, started, ended } = this.#running[index]!
      const { by, served } = await ended
      if (signal.aborted) return
      backoff = nextBackoff(backoff, served)
      const err = served > 0 ? undefined : await started.catch(error => error)
      this.#log.error({ worker: pid, err }, `Worker ended by ${by}, the next one starts in ${backoff / 1000} s`)
      await sleep(backoff, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      this.#fork(index)
    }
  }

  /** Rejects unless all workers serve, and each of them reaches the database. */
  async #assertReady () {
    const serving = this.#running.filter(({ isServing }) => isServing)
    const { WORKERS, DATABASE_TIMEOUT } = this.#config
    if (serving.length < WORKERS) throw new Error(`${serving.length} of ${WORKERS} workers serve`)
    await Promise.all(serving.map(({ channel }) => channel.request('ready', undefined, DATABASE_TIMEOUT)))
  }

  /** The metrics of all processes, in the text format of Prometheus. */
  async #readMetrics () {
    const serving = this.#running.filter(({ isServing }) => isServing)
    // A worker that is too busy keeps its last metrics.
    await Promise.allSettled(serving.map(async running => {
      running.metrics = await running.channel.request<Values>('metrics', undefined, METRICS_SECONDS)
    }))
    const totals = await this.#totals!
    return totals.read(serving.filter(({ isServing }) => isServing).map(({ metrics }) => metrics))
  }
}
