import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Runs a task every `intervalMs` until the signal aborts. Of failures in a row, `complain` gets only the first one:
 * while the database is away for an hour, the tick of the sender fails 3,600 times.
 */
export async function repeat (
  task: () => Promise<void>, intervalMs: number, signal: AbortSignal, complain: (error: unknown) => void
) {
  let isFailing = false
  while (!signal.aborted) {
    const start = performance.now()
    try {
      await task()
      isFailing = false
    } catch (error) {
      if (!isFailing) complain(error)
      isFailing = true
    }
    const rest = start + intervalMs - performance.now()
    await sleep(Math.max(0, rest), undefined, { signal }).catch(() => {})
  }
}
