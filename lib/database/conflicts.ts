import { setTimeout as sleep } from 'node:timers/promises'

/** The pause in which the transaction that was in the way can end, in milliseconds. */
const PAUSE_MS = 50

/** SQLSTATEs of work that PostgreSQL rolled back because of other transactions: a deadlock, a serialization failure. */
const CONFLICTS = ['40P01', '40001']

/**
 * Runs a statement or a transaction, and runs it again once when PostgreSQL has rolled it back because of others. Its
 * statements are all that the work may do.
 */
export async function retryConflict<T> (work: () => PromiseLike<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!CONFLICTS.includes((error as NodeJS.ErrnoException).code!)) throw error
    await sleep(PAUSE_MS)
    return work()
  }
}
