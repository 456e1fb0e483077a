import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

import { StartupError } from './startup-error.ts'

/**
 * Reads the secret kept in a file that only its owner can read; the first call makes it (64 characters, base64url).
 * Processes that start at once agree on one secret: `link` lets exactly one of them put its file in place.
 */
export async function keepSecret (path: string): Promise<string> {
  try {
    if (!existsSync(path)) await create(path)
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new StartupError(`Cannot keep a secret in ${path}: ${(error as Error).message}`)
  }
}

async function create (path: string) {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${randomUUID()}`
  await writeFile(draft, randomBytes(48).toString('base64url'), { mode: 0o600 })
  try {
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft)
  }
}
