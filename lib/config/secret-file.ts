import { hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { link, lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { decodeUtf8 } from '../values/formats.ts'
import { StartupError } from './startup-error.ts'

/**
 * Reads a secret from a file that only its owner can read. The first call creates it (64 characters, base64url). If
 * processes start at once, they use the same secret, because only one `link` succeeds.
 */
export async function readOrCreateSecret (path: string): Promise<string> {
  try {
    if (!existsSync(path)) await create(path)
    // Does not follow links, because a user who can write to the folder could link to a file of root.
    return decodeUtf8(await readFile(path, { flag: constants.O_RDONLY | constants.O_NOFOLLOW }))
  } catch (error) {
    throw new StartupError(`Cannot read or create the secret in ${path}: ${(error as Error).message}`)
  }
}

/** Minimum length of JWT_SECRET in characters, because an HS256 key needs at least 256 bits (RFC 7518, § 3.2). */
export const JWT_SECRET_LENGTH = 32

/**
 * Returns the secret that signs tokens: JWT_SECRET, or the secret in DATA_DIR, which the first call creates. Throws a
 * StartupError if that is too short, or if other users can read it: with the secret, they could sign in as any user.
 */
export async function jwtSecretOf ({ JWT_SECRET, DATA_DIR }: { JWT_SECRET?: string, DATA_DIR: string }) {
  if (JWT_SECRET !== undefined) return JWT_SECRET
  const path = join(DATA_DIR, 'jwt-secret')
  const secret = await readOrCreateSecret(path)
  if (secret.trim().length < JWT_SECRET_LENGTH) {
    throw new StartupError(`${path} must have at least ${JWT_SECRET_LENGTH} characters. ` +
      'Delete it to create a new secret, or set JWT_SECRET.')
  }
  const { mode } = await lstat(path)
  if (mode & 0o077) throw new StartupError(`Other users can read ${path}. Run chmod 600 ${path}, or set JWT_SECRET.`)
  return secret
}

/** Derives a key of 256 bits for a different purpose from the JWT secret (HKDF, RFC 5869). */
export function deriveKey (jwtSecret: string, purpose: string) {
  return Buffer.from(hkdfSync('sha256', jwtSecret, '', purpose, 32))
}

async function create (path: string) {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${randomUUID()}`
  await writeFile(draft, randomBytes(48).toString('base64url'), { mode: 0o600, flag: 'wx' })
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
}
