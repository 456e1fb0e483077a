import type { Config } from './config.ts'
import { PROVIDER_TIME } from './auth/identity-provider.ts'
import { HASHING_TIME } from './auth/passwords.ts'

/** Seconds that a client has to take its response, and that an embedded database has to stop. */
const MARGIN = 5

/** The timeouts of a shutdown, in seconds. compose.yaml, Dockerfile and docs/operations.md have the default total. */
export function shutdownTimeouts ({ STOP_DELAY, DATABASE_TIMEOUT }: Pick<Config, 'STOP_DELAY' | 'DATABASE_TIMEOUT'>) {
  /** The longest operation: a sign-in with a provider. */
  const operation = DATABASE_TIMEOUT + Math.max(HASHING_TIME, PROVIDER_TIME)
  /** From the end of STOP_DELAY until connections that are still open are closed. */
  const connections = operation + MARGIN
  /** From the signal until the process gives up; after the connections, the database is closed. */
  const total = STOP_DELAY + connections + DATABASE_TIMEOUT + MARGIN
  return { operation, connections, total }
}
