import type { Options } from 'postgres'

/** Ends the span of a statement: its text with placeholders, unless it was never sent, and its error if it failed. */
export type EndStatement = (text: string | null, error?: unknown) => void

/** Starts the span of a statement that is run now, if it gets one. Set by lib/opentelemetry.ts while tracing is on. */
export const statementTracing: { start?: () => EndStatement | undefined } = {}

/**
 * Statements of a pool: those that wait or run, those that have ended, those of these that were late, and those that
 * failed because they ran in a transaction of another caller.
 */
export interface PoolStats {
  pending: number
  done: number
  late: number
  stray: number
}

export const createStats = (): PoolStats => ({ pending: 0, done: 0, late: 0, stray: 0 })

/** Returns an `onquery` of the driver, which counts and traces statements. */
export function observeStatements (stats: PoolStats): Options<{}>['onquery'] {
  return () => {
    const endSpan = statementTracing.start?.()
    stats.pending++
    return (text, error) => {
      stats.pending--
      stats.done++
      if ((error as NodeJS.ErrnoException | undefined)?.code === 'QUERY_TIMEOUT') stats.late++
      endSpan?.(text, error)
    }
  }
}
