import type { Config } from './config.ts'

// Time limits of the steps of operations and of a stop, in seconds. `shutdownTimeouts` adds them up. With a single
// limit, a stop would not know when to close connections, or when to leave PostgreSQL running and still write the log.

/** Hashing a password, including the wait, on a slow machine. */
export const HASHING_SECONDS = 5

/** One request to the identity provider, and all requests of a sign-in. */
export const PROVIDER_REQUEST_SECONDS = 5
export const PROVIDER_SECONDS = 3 * PROVIDER_REQUEST_SECONDS

/** Converting an uploaded picture. Noise of 40 megapixels takes 6 s on one core. */
export const CONVERSION_SECONDS = 10

/** Sending the response after the operation has ended. */
const RESPONSE_SECONDS = 5

/** Sending the last spans, if tracing is on. */
export const SPANS_SECONDS = 2

/** Stopping the embedded PostgreSQL. After that, it is left running. */
export const RELEASE_SECONDS = 5

/** Writing the waiting log lines, for example to a slow reader. */
export const LOG_FLUSH_SECONDS = 1

type Timeouts = Pick<Config, 'STOP_DELAY' | 'DATABASE_TIMEOUT' | 'OTEL_EXPORTER_OTLP_ENDPOINT'>

/** Timeouts of a shutdown in seconds. compose.yaml, Dockerfile and docs/run/operate.md contain the default total. */
export function shutdownTimeouts (config: Timeouts) {
  const { STOP_DELAY, DATABASE_TIMEOUT, OTEL_EXPORTER_OTLP_ENDPOINT } = config
  /**
   * The longest operation: a sign-in with the identity provider, or the check of a token and then two passwords or a
   * picture.
   */
  const operation = DATABASE_TIMEOUT +
    Math.max(PROVIDER_SECONDS, DATABASE_TIMEOUT + Math.max(2 * HASHING_SECONDS, CONVERSION_SECONDS))
  /** Time from the end of STOP_DELAY until open connections are closed. */
  const connections = operation + RESPONSE_SECONDS
  const flush = OTEL_EXPORTER_OTLP_ENDPOINT ? SPANS_SECONDS : 0
  /**
   * Time until the process exits by force. After closing connections, it sends spans, closes the pools, stops the
   * embedded PostgreSQL and flushes the log.
   */
  const total = STOP_DELAY + connections + flush + DATABASE_TIMEOUT + RELEASE_SECONDS + LOG_FLUSH_SECONDS
  return { operation, connections, total }
}

/** Work exceeded its timeout. */
export class TimeoutError extends Error {
  override name = 'TimeoutError'

  constructor (seconds: number) {
    super(`no response within ${seconds} s`)
  }
}

/** Settles like `work`, or rejects with a TimeoutError. The work itself is not cancelled. */
export function withTimeout<T> (work: Promise<T>, seconds: number) {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeoutError(seconds)), seconds * 1000)
    const settle = <Value>(end: (value: Value) => void) => (value: Value) => {
      clearTimeout(timer)
      end(value)
    }
    work.then(settle(resolve), settle(reject))
  })
}
