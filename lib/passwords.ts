import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'

import argon2 from 'argon2'
import pLimit from 'p-limit'

import { HttpError } from './http-error.ts'

/** argon2id as OWASP's Password Storage Cheat Sheet has it: 19 MiB of memory, two passes, one lane. */
const ARGON2ID = { type: argon2.argon2id, memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }

/** Stored as the password of accounts that only an identity provider vouches for; no password matches it. */
export const PLACEHOLDER = '!'

/** Random bytes as a PHC string has them. */
const base64 = (length: number) => randomBytes(length).toString('base64').replaceAll('=', '')

const { memoryCost, timeCost, parallelism } = ARGON2ID

/**
 * Verified against where there is no hash, so that a stranger's sign-in takes as long as a wrong password. The hash
 * itself is random: nobody knows a password for it, and no process waits for one to be made.
 */
const DECOY = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${base64(16)}$${base64(32)}`

/** How many hashes are made at once: one on each core, as far as the pool has the threads, see `bin/start`. */
const AT_ONCE = Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || 4)

/** How many hashes may wait for their turn. At some 50 ms each on two cores, the last one waits for 2.5 s. */
const QUEUE_LENGTH = 100

/** How long a hash may wait for its turn where they take longer than that, in milliseconds. */
const MAX_WAIT = 4000

/** How many seconds a hash may take with its wait, on a machine that is not the fastest. */
export const HASHING_TIME = 5

// The pool is given one more, which waits there for the first thread that is free: without it, a core would be idle
// until the main thread called for the next hash.
const limit = pLimit(AT_ONCE + 1)

/** What a sign-in or a registration answers when too many wait already. */
export const BUSY = 'Too many people sign in at this moment, please try again in a few seconds'

let refused = 0

/** How many hashes are made or verified at this moment, how many wait for it, and how many were refused so far. */
export function hashingLoad () {
  const { activeCount, pendingCount } = limit
  const running = Math.min(activeCount, AT_ONCE)
  return { running, waiting: activeCount - running + pendingCount, refused }
}

/** Throws a 503 when so many hashes wait that another would have to wait too long. */
export function assertNotBusy () {
  if (hashingLoad().waiting >= QUEUE_LENGTH) throw busy()
}

function busy () {
  refused++
  return new HttpError(503, BUSY, {}, { 'retry-after': 5 })
}

/** Does the work as soon as a core is free for it. Rejects with a 503 when too much waits already, or for too long. */
async function enqueue<T> (work: () => Promise<T>): Promise<T> {
  assertNotBusy()
  const start = performance.now()
  return limit(() => {
    if (performance.now() - start > MAX_WAIT) throw busy()
    return work()
  })
}

/**
 * Hashes a password with argon2id, on the thread pool; the result is a PHC string that carries its parameters. Rejects
 * with a 503 when too many hashes wait already.
 */
export function hashPassword (password: string): Promise<string> {
  return enqueue(() => argon2.hash(password, ARGON2ID))
}

/**
 * Tells whether the password is the one that was hashed. Without a hash, and for the placeholder, the answer is `false`
 * after the same work. Rejects with a 503 when too many hashes wait already.
 */
export async function verifyPassword (hash: string = PLACEHOLDER, password: string): Promise<boolean> {
  const known = hash === PLACEHOLDER ? DECOY : hash
  return await enqueue(() => argon2.verify(known, password)) && hash !== PLACEHOLDER
}
