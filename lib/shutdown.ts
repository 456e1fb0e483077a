import type { Config } from './config.ts'
import { flushLog, type Logger } from './http/logger.ts'
import {
  HASHING_SECONDS, LOG_FLUSH_SECONDS, PICTURE_SECONDS, PROVIDER_SECONDS, RELEASE_SECONDS, RESPONSE_SECONDS,
  SPANS_SECONDS,
} from './timeout.ts'

type Timeouts = Pick<Config, 'STOP_DELAY' | 'DATABASE_TIMEOUT' | 'OTEL_EXPORTER_OTLP_ENDPOINT'>

/** The timeouts of a shutdown, in seconds. compose.yaml, Dockerfile and docs/run/operate.md have the default total. */
export function shutdownTimeouts (config: Timeouts) {
  const { STOP_DELAY, DATABASE_TIMEOUT, OTEL_EXPORTER_OTLP_ENDPOINT } = config
  /** The longest operation: its token is looked up, then it runs. */
  const operation = DATABASE_TIMEOUT + Math.max(HASHING_SECONDS, PICTURE_SECONDS, PROVIDER_SECONDS, DATABASE_TIMEOUT)
  /** From the end of STOP_DELAY until connections that are still open are closed. */
  const connections = operation + RESPONSE_SECONDS
  const flush = OTEL_EXPORTER_OTLP_ENDPOINT ? SPANS_SECONDS : 0
  /**
   * Until the process gives up. After the connections it sends its spans, closes its pools, stops the embedded
   * PostgreSQL, and writes its log.
   */
  const total = STOP_DELAY + connections + flush + DATABASE_TIMEOUT + RELEASE_SECONDS + LOG_FLUSH_SECONDS
  return { operation, connections, flush, total }
}

/** Milliseconds within which a second SIGINT is the same Ctrl-C: npm and the service get it, and npm passes it on. */
const SAME_CTRL_C_MS = 500

/** A service that a process runs until it is told to stop. */
export interface Service {
  /** Resolves when it serves. */
  start (): Promise<unknown>
  /** Finishes what runs, and closes everything. */
  stop (): Promise<unknown>
  /** Closes everything, while it starts or after an error. */
  close (): Promise<unknown>
}

/**
 * Starts a service, and stops it on SIGTERM, SIGHUP, SIGINT or an uncaught error: the process then ends, with exit code
 * 1 after an error, or when the stop takes longer than so many seconds. Rejects when the start fails.
 */
export async function run (service: Service, logger: Logger, seconds: number) {
  let start: Promise<unknown>
  let isServing = false
  /** When the stop began, in milliseconds of `performance.now()`. */
  let stopsSince: number | undefined

  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) process.on(signal, onSignal)
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, onError)
  try {
    start = service.start()
    await start
    isServing = true
  } catch (error) {
    // A service that was told to stop refuses to listen, and Ctrl-C also ends initdb: neither is a failed start.
    if (stopsSince !== undefined) return
    stopsSince = performance.now()
    await service.close()
    throw error
  }

  function onSignal (signal: NodeJS.Signals) {
    if (stopsSince === undefined) {
      logger.info(`Stopping on ${signal}`)
      // The start finishes first, so that all it opens is closed.
      end(() => isServing ? service.stop() : Promise.allSettled([service.close(), start]), 0)
    } else if (signal === 'SIGINT' && performance.now() - stopsSince >= SAME_CTRL_C_MS) {
      // Only a second Ctrl-C ends the process at once. npm repeats a SIGTERM that all processes get, file watchers send
      // one after a Ctrl-C, and a terminal that closes sends SIGHUP.
      logger.warn('Ending at once on SIGINT')
      exit(1)
    }
  }

  function onError (err: unknown) {
    logger.fatal({ err }, 'Stopping after an uncaught error')
    if (stopsSince === undefined) end(() => service.close(), 1)
    else exit(1)
  }

  async function end (close: () => Promise<unknown>, code: number) {
    stopsSince = performance.now()
    setTimeout(() => {
      logger.error(`killed by timeout (${seconds * 1000}ms)`)
      exit(1)
    }, seconds * 1000)
    try {
      await close()
      exit(code)
    } catch (err) {
      logger.error({ err }, 'The stop failed')
      exit(1)
    }
  }

  async function exit (code: number) {
    await flushLog(logger)
    process.exit(code)
  }
}
