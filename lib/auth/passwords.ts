import { randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'

import argon2 from 'argon2'

import { HttpError } from '../errors.ts'
import { FairQueue } from '../fair-queue.ts'

/** argon2id as OWASP's Password Storage Cheat Sheet has it: 19 MiB of memory, two passes, one lane. */
const ARGON2ID = { type: argon2.argon2id, memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }

/** Stored as the password of accounts that only an identity provider vouches for; no password matches it. */
export const PLACEHOLDER = '!'

/** Random bytes as a PHC string has them. */
const base64 = (length: number) => randomBytes(length).toString('base64').replaceAll('=', '')

const { memoryCost, timeCost, parallelism } = ARGON2ID

/**
 * Verified against where there is no hash, so that a stranger's sign-in takes as long as a wrong password. The hash
 * itself is random: no password matches it, and no process waits for one to be made.
 */
const DECOY = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${base64(16)}$${base64(32)}`

/** How many hashes are made at once: one on each core, as far as the thread pool has threads (4 by default). */
const AT_ONCE = Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || 4)

/** Hashes that may wait for their turn: on two cores, at some 25 ms each, the last one waits for MAX_WAIT_MS. */
const QUEUE_LENGTH = 300

/** How long a hash may wait for its turn where they take longer than that. */
const MAX_WAIT_MS = 4000

/** The message of a sign-in or registration that is refused because too many are waiting. */
export const BUSY = 'Too many people sign in at this moment, please try again in a few seconds'

let refused = 0
const queue = new FairQueue({
  // One more than threads, so that a core is not idle until the main thread starts the next hash.
  concurrency: AT_ONCE + 1,
  places: QUEUE_LENGTH - 1,
  maxWaitMs: MAX_WAIT_MS,
  refusal () {
    refused++
    return new HttpError(503, BUSY, { headers: { 'retry-after': 5 } })
  },
})

/** The network of what no client asks for: commands, and the start of the service. */
const OWN = 'own'

/** How many hashes are made or verified at this moment, how many wait for it, and how many were refused so far. */
export function hashingStats () {
  const running = Math.min(queue.running, AT_ONCE)
  return { running, waiting: queue.running - running + queue.waiting, refused }
}

/** Rejects with a 503 when a hash for this network would find no place to wait. */
export async function assertNotBusy (network: string) {
  await queue.assertPlace(() => network)
}

/**
 * Hashes a password with argon2id, on the thread pool; the result is a PHC string that carries its parameters. Networks
 * take turns; rejects with a 503 when this one has its share of the hashes that wait, or when the hash waited too long.
 */
export function hashPassword (password: string, network = OWN): Promise<string> {
  return queue.run(() => network, () => argon2.hash(password, ARGON2ID))
}

/**
 * Verifies a password against its hash. Without a hash, and for the placeholder, the result is `false` after the same
 * work. Waits and rejects as `hashPassword` does.
 */
export async function verifyPassword (
  hash: string = PLACEHOLDER, password: string, network = OWN
): Promise<boolean> {
  const known = hash === PLACEHOLDER ? DECOY : hash
  return await queue.run(() => network, () => argon2.verify(known, password)) && hash !== PLACEHOLDER
}
