import { randomBytes } from 'node:crypto'

import argon2 from 'argon2'

/** argon2id as OWASP's Password Storage Cheat Sheet has it: 19 MiB of memory, two passes, one lane. */
const ARGON2ID = { type: argon2.argon2id, memoryCost: 19 * 1024, timeCost: 2, parallelism: 1 }

/** Stored as the password of accounts that only an identity provider vouches for; no password matches it. */
export const PLACEHOLDER = '!'

/** Verified against where there is no hash, so that a stranger's sign-in takes as long as a wrong password. */
const decoy = argon2.hash(randomBytes(32), ARGON2ID)

/** Hashes a password with argon2id, on the thread pool; the result is a PHC string that carries its parameters. */
export function hashPassword (password: string): Promise<string> {
  return argon2.hash(password, ARGON2ID)
}

/**
 * Tells whether the password is the one that was hashed. Without a hash, and for the placeholder, the answer is `false`
 * after the same work.
 */
export async function verifyPassword (hash: string = PLACEHOLDER, password: string): Promise<boolean> {
  if (hash !== PLACEHOLDER) return argon2.verify(hash, password)
  await argon2.verify(await decoy, password)
  return false
}
