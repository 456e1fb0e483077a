import { setTimeout as sleep } from 'node:timers/promises'

/** Pause before the retry, so that the conflicting transaction can end. Without it, 1 of 60 deadlocks came twice. */
const PAUSE_MS = 50

/** SQLSTATEs of conflicts with other transactions: deadlock and serialization failure. */
const CONFLICTS = ['40P01', '40001']

/** SQLSTATEs of constraint violations that operations explain. */
export const UNIQUE_VIOLATION = '23505'
export const EXCLUSION_VIOLATION = '23P01'

/** SQLSTATE classes of refused values: data exception, such as a negative limit, and constraint violation. */
const REFUSALS = /^2[23]/

/** Tells whether PostgreSQL refused the values of a statement. They come from a client. */
export const isRefusal = ({ code }: { code?: unknown }) => REFUSALS.test(String(code))

/**
 * Runs the handler of an operation or a transaction, and runs it again if PostgreSQL rolled it back because of a
 * conflict, unless nobody waits for it any more.
 */
export async function retryConflict<T> (work: () => PromiseLike<T>, isWanted = () => true): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!CONFLICTS.includes((error as NodeJS.ErrnoException).code!)) throw error
    await sleep(PAUSE_MS)
    if (!isWanted()) throw error
    return work()
  }
}
