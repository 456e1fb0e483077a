import type { Config } from './config.ts'
import { PROVIDER_TIME } from './auth/identity-provider.ts'
import { HASHING_TIME } from './auth/passwords.ts'
import { RELEASE_TIME } from './database/embedded-postgres.ts'
import { LOG_FLUSH_TIME } from './http/log-output.ts'

type Timeouts = Pick<Config, 'STOP_DELAY' | 'DATABASE_TIMEOUT' | 'OTEL_EXPORTER_OTLP_ENDPOINT'>

/** Seconds that a client has to take its response. */
const MARGIN = 5

/** Seconds in which the last spans are sent, with tracing on. */
const FLUSH = 2

/** The timeouts of a shutdown, in seconds. compose.yaml, Dockerfile and docs/operations.md have the default total. */
export function shutdownTimeouts (config: Timeouts) {
  const { STOP_DELAY, DATABASE_TIMEOUT, OTEL_EXPORTER_OTLP_ENDPOINT } = config
  /** The longest operation: a sign-in with a provider. */
  const operation = DATABASE_TIMEOUT + Math.max(HASHING_TIME, PROVIDER_TIME)
  /** From the end of STOP_DELAY until connections that are still open are closed. */
  const connections = operation + MARGIN
  const flush = OTEL_EXPORTER_OTLP_ENDPOINT ? FLUSH : 0
  /** Until a worker gives up. After the connections it sends its spans, closes its pools, and writes its log. */
  const worker = STOP_DELAY + connections + flush + DATABASE_TIMEOUT + LOG_FLUSH_TIME
  /** Until the process gives up that releases the embedded database: the only one, or the one that has the workers. */
  const total = worker + RELEASE_TIME + LOG_FLUSH_TIME
  return { operation, connections, flush, worker, total }
}
