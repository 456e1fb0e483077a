import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'

import argon2 from 'argon2'

import { FairQueue } from '../http/fair-queue.ts'
import { HttpError } from '../http/errors.ts'
import { Message, Named } from '../values/schemas.ts'

/** argon2id parameters from OWASP's Password Storage Cheat Sheet: 19 MiB of memory, two passes, one lane. */
const ARGON2ID = { type: argon2.argon2id, memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }

/** Stored for accounts without a password, such as accounts from the identity provider. It never verifies. */
export const PLACEHOLDER = '!'

/** Random bytes in the encoding of PHC strings. */
const base64 = (length: number) => randomBytes(length).toString('base64').replaceAll('=', '')

const { memoryCost, timeCost, parallelism } = ARGON2ID

/**
 * Verified against if an account has no hash, so that an unknown email address takes as long as a wrong password. It is
 * random instead of hashed, because hashing would delay the start.
 */
const DECOY = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${base64(16)}$${base64(32)}`

/** Number of parallel hashes: one per core, limited by the threads of the pool (4 by default). */
const AT_ONCE = Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || 4)

/** Length of the queue. At about 25 ms per hash, the last hash waits for 4 seconds. */
const QUEUE_LENGTH = 150 * AT_ONCE

/** Error message of a sign-in or sign-up if the queue is full. */
const BUSY = 'Too many people are signing in, please try again in a few seconds'

/** The response with this message. */
export const Busy = Named('Busy', Message(BUSY))

/** Creates the queue of passwords. Commands and the start of the service hash without it. */
export const createPasswordQueue = () => new FairQueue({
  // One more than threads, so that cores do not idle until the main thread starts the next hash.
  concurrency: AT_ONCE + 1,
  maxLength: QUEUE_LENGTH - 1,
  createError: () => new HttpError(503, BUSY, { headers: { 'retry-after': 5 } }),
})

/** Returns the numbers of hashes that are running and waiting in this queue. */
export function hashingStats (queue: FairQueue) {
  const running = Math.min(queue.running, AT_ONCE)
  return { running, waiting: queue.running - running + queue.waiting }
}

/** Hashes a password with argon2id on the thread pool. Returns a PHC string, which contains the parameters. */
export function hashPassword (password: string): Promise<string> {
  return argon2.hash(password, ARGON2ID)
}

/**
 * Verifies a password against its hash. Without a hash, and for the placeholder, returns `false` after the same time.
 */
export async function verifyPassword (hash: string | undefined, password: string): Promise<boolean> {
  const isKnown = hash !== undefined && hash !== PLACEHOLDER
  return await argon2.verify(isKnown ? hash : DECOY, password) && isKnown
}
