import { AsyncLocalStorage } from 'node:async_hooks'

import type { Options } from 'postgres'

/**
 * The time that statements took, in milliseconds: `run` has those counted that begin in what it runs. Elsewhere nothing
 * is measured.
 */
export const databaseTime = new AsyncLocalStorage<{ total: number }>()

/** Ends the span of a statement: its text with placeholders, unless it was never sent, and its error if it failed. */
export type EndStatement = (text: string | undefined, error?: unknown) => void

/** Starts the span of a statement that is run now, if it gets one. Set by lib/opentelemetry.ts while tracing is on. */
export const statementTracing: { start?: () => EndStatement | undefined } = {}

/** Statements of a pool: those that wait or run, those that have ended, and those of these that were late. */
export interface PoolStats {
  pending: number
  done: number
  late: number
}

/** Returns an `onquery` of the driver, which counts, times and traces statements. */
export function observeStatements (stats: PoolStats): Options<{}>['onquery'] {
  return query => {
    const time = databaseTime.getStore()
    const start = time && performance.now()
    const endSpan = statementTracing.start?.()
    stats.pending++
    return error => {
      stats.pending--
      stats.done++
      if ((error as NodeJS.ErrnoException | undefined)?.code === 'QUERY_TIMEOUT') stats.late++
      if (time) time.total += performance.now() - start!
      endSpan?.(query.statement?.string, error)
    }
  }
}
