import type { Config } from './config.ts'
import { PROVIDER_TIME } from './auth/identity-provider.ts'
import { HASHING_TIME } from './auth/passwords.ts'

type Timeouts = Pick<Config, 'STOP_DELAY' | 'DATABASE_TIMEOUT' | 'OTEL_EXPORTER_OTLP_ENDPOINT'>

/** Seconds that a client has to take its response, and that an embedded database has to stop. */
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
  /** From the signal until the process gives up; after the connections, spans are sent and the database is closed. */
  const total = STOP_DELAY + connections + flush + DATABASE_TIMEOUT + MARGIN
  return { operation, connections, flush, total }
}
