import { hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { link, lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import { StartupError } from './errors.ts'
import { decodeUtf8 } from './formats.ts'

/**
 * Reads the secret kept in a file that only its owner can read; the first call makes it (64 characters, base64url).
 * Processes that start at once agree on one secret: `link` lets exactly one of them put its file in place.
 */
export async function readOrCreateSecret (path: string): Promise<string> {
  try {
    if (!existsSync(path)) await create(path)
    // A user who may write to the folder could have made it a link to another file of root's.
    return decodeUtf8(await readFile(path, { flag: constants.O_RDONLY | constants.O_NOFOLLOW }))
  } catch (error) {
    throw new StartupError(`Cannot keep a secret in ${path}: ${(error as Error).message}`)
  }
}

/** The shortest JWT_SECRET, in characters: an HS256 key has 256 bits or more (RFC 7518, § 3.2). */
export const JWT_SECRET_LENGTH = 32

/**
 * Reads the secret that signs the tokens as `readOrCreateSecret` does. Throws a StartupError when it is shorter than
 * JWT_SECRET may be, or when others can read the file: with the secret, they could sign in as any user.
 */
export async function readOrCreateJwtSecret (path: string): Promise<string> {
  const secret = await readOrCreateSecret(path)
  if (secret.trim().length < JWT_SECRET_LENGTH) {
    throw new StartupError(`${path} must have at least ${JWT_SECRET_LENGTH} characters: ` +
      'delete it to have a new secret made, or set JWT_SECRET')
  }
  const { mode } = await lstat(path)
  if (mode & 0o077) throw new StartupError(`${path} can be read by others: run chmod 600 ${path}, or set JWT_SECRET`)
  return secret
}

/** The secret that signs tokens: JWT_SECRET, or the one kept in DATA_DIR, see `readOrCreateJwtSecret`. */
export async function jwtSecretOf ({ JWT_SECRET, DATA_DIR }: { JWT_SECRET?: string, DATA_DIR: string }) {
  return JWT_SECRET ?? readOrCreateJwtSecret(join(DATA_DIR, 'jwt-secret'))
}

/** A key of 256 bits for another purpose than the tokens, by the secret that signs them (HKDF, RFC 5869). */
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
