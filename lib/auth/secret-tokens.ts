import { createHash, randomBytes } from 'node:crypto'

/** Makes a token that cannot be guessed, for an address that is a secret: 256 random bits, base64url. */
export function createSecretToken () {
  return randomBytes(32).toString('base64url')
}

/** The stored form of a token: its SHA-256, base64url. A random token needs no salt. */
export function hashSecretToken (token: string) {
  return createHash('sha256').update(token).digest('base64url')
}
