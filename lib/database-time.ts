import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * The time that queries and transactions took, in milliseconds: `run` has those counted that begin in what it runs.
 * Where nobody does, nothing is measured.
 */
export const databaseTime = new AsyncLocalStorage<{ total: number }>()
