import { createHash, randomBytes } from 'node:crypto'

/** Makes a token that nobody can guess, for an address that is a secret: 256 random bits, base64url. */
export function createSecretToken () {
  return randomBytes(32).toString('base64url')
}

/** What is stored of a token: its SHA-256, base64url. There is no salt, since no two tokens are alike. */
export function hashSecretToken (token: string) {
  return createHash('sha256').update(token).digest('base64url')
}
