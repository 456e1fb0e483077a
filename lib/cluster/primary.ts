import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Config } from '../config.ts'
import { openDatabase } from '../database/client.ts'
import { startEmbeddedPostgres } from '../database/embedded-postgres.ts'
import { prepareDatabase } from '../database/prepare.ts'
import { StartupError } from '../errors.ts'
import type { Logger } from '../http/logger.ts'
import type { Service } from '../lifecycle.ts'
import { createTotals, type Values } from '../metrics.ts'
import { jwtSecretOf } from '../secret-file.ts'
import { Channel } from './channel.ts'
import { type Share, shareConfig } from './share.ts'

/** What a worker starts with: its configuration, and which one it is. */
export interface WorkerStart {
  config: Config
  share: Share
}

/** A worker that was started. */
interface Running {
  worker: Worker
  channel: Channel
  isServing: boolean
  /** Resolves when it serves; rejects with a StartupError when it ends before. */
  started: Promise<void>
  /** Resolves when it has ended: by what, and for how many milliseconds it has served. */
  ended: Promise<{ by: string, served: number }>
  /** Its metrics when it was last asked. */
  metrics: Values
}

/** How long a worker has to serve, in milliseconds, for the next one to start without a pause. */
const PROVEN = 60_000

/** The first pause before a worker is replaced that ended sooner, and the longest, in milliseconds. */
const PAUSES = { first: 500, longest: 30_000 }

/** Seconds that a worker may take to say what it has counted. */
const METRICS_TIMEOUT = 2

/** The pause before a worker is replaced that has served for so long, after the pause before; in milliseconds. */
export function nextPause (pause: number, served: number) {
  if (served >= PROVEN) return 0
  return pause === 0 ? PAUSES.first : Math.min(pause * 2, PAUSES.longest)
}

/**
 * The first process of several. It opens and migrates the database, starts the workers, which serve on one port, and
 * replaces those that end. It serves nothing itself: Node hands each connection to the next worker.
 */
export class Primary implements Service {
  readonly #config: Config
  readonly #log: Logger
  readonly #totals: ReturnType<typeof createTotals> | undefined
  /** By the index of their share. */
  readonly #running: Running[] = []
  readonly #stopping = new AbortController()
  #started: Promise<void> | undefined
  #releaseDatabase = async () => {}

  constructor (config: Config, log: Logger) {
    this.#config = config
    this.#log = log
    this.#totals = config.METRICS_TOKEN ? createTotals() : undefined
  }

  /** Rejects with a StartupError when the database cannot be opened, or a worker cannot start. */
  start () {
    this.#started = this.#start()
    return this.#started
  }

  /** Has the workers finish what they do. Rejects when one that served did not. */
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
    // What the start opens is closed when that is through.
    await Promise.allSettled([this.#started])
    await Promise.all(this.#running.map(({ ended }) => ended))
    await this.#releaseDatabase()
  }

  /** Ends workers that cannot even give up by themselves. */
  kill () {
    for (const { worker } of this.#running) worker.process.kill('SIGKILL')
  }

  async #start () {
    const config = await this.#prepare()
    if (this.#stopping.signal.aborted) return
    const { WORKERS: count } = config
    const shares = Array.from({ length: count }, (_share, index): Share => ({ index, count }))
    await Promise.all(shares.map(share => this.#fork(config, share).started))
    this.#log.info(`All ${count} workers are ready`)
    for (const share of shares) this.#keep(config, share)
  }

  /** Opens and migrates the database. Returns the configuration of workers, which do neither. */
  async #prepare (): Promise<Config> {
    const config = { ...this.#config }
    if (!config.DATABASE_URL) {
      const server = await startEmbeddedPostgres(config.DATA_DIR, this.#log)
      this.#releaseDatabase = server.release
      config.DATABASE_URL = server.url
    }
    const database = await openDatabase(config, this.#log)
    try {
      await prepareDatabase(database, this.#config, this.#log)
    } finally {
      await database.close()
    }
    config.JWT_SECRET = await jwtSecretOf(config)
    return { ...config, MIGRATE_ON_START: false, ADMIN_EMAIL: undefined, ADMIN_PASSWORD: undefined }
  }

  /** Starts the worker with this share. */
  #fork (config: Config, share: Share) {
    const worker = cluster.fork()
    let failure: string | undefined
    let servesSince: number | undefined
    const listens = new Promise<void>(resolve => worker.once('listening', () => {
      servesSince = performance.now()
      running.isServing = true
      resolve()
    }))
    const ended = new Promise<string>(resolve => {
      worker.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
      worker.on('error', error => {
        this.#log.error({ err: error }, 'Worker failed')
        // One that could not be spawned has no exit.
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
        start: (): WorkerStart => ({ config: shareConfig(config, share), share }),
        failed: (reason: string) => { failure = reason },
        ready: () => this.#assertReady(),
        metrics: () => this.#readMetrics(),
      }),
      isServing: false,
      started: Promise.race([listens, ended.then(({ by }) => {
        throw new StartupError(failure ?? `A worker ended by ${by} before it served`)
      })]),
      ended,
      metrics: [],
    }
    // Once it serves, its end is no failed start.
    running.started.catch(() => {})
    this.#running[share.index] = running
    return running
  }

  /** Replaces the worker with this share when it ends, and the next one, until the service stops. */
  async #keep (config: Config, share: Share) {
    const { signal } = this.#stopping
    for (let pause = 0; ;) {
      const { worker: { process: { pid } }, started, ended } = this.#running[share.index]!
      const { by, served } = await ended
      if (signal.aborted) return
      pause = nextPause(pause, served)
      const err = served > 0 ? undefined : await started.catch(error => error)
      this.#log.error({ worker: pid, err }, `Worker ended by ${by}, the next one starts in ${pause / 1000} s`)
      await sleep(pause, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      this.#fork(config, share)
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
    // One that is too busy has those of the last time.
    await Promise.allSettled(serving.map(async running => {
      running.metrics = await running.channel.request<Values>('metrics', undefined, METRICS_TIMEOUT)
    }))
    const totals = await this.#totals!
    return totals.read(serving.filter(({ isServing }) => isServing).map(({ metrics }) => metrics))
  }
}
