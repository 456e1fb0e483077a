// The service with the demo data, as `npm start` and `npm run seed` create it.
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { Scope } from '../scope.ts'
import { startService } from '../faults/service.ts'
import { dataDir } from '../process.ts'

export const CLI = fileURLToPath(new URL('dist/lib/cli.js', import.meta.resolve('#package.json')))

/**
 * Starts the service on a database of its own with the demo data. Sign-in attempts are not limited.
 */
export async function startTarget (scope: Scope, directory: string, environment: NodeJS.Dict<string> = {}) {
  const DATA_DIR = dataDir(scope, directory)
  await mkdir(DATA_DIR)
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'seed', '--json'], {
    cwd: directory, env: { PATH: process.env.PATH, DATA_DIR },
  })
  const service = await startService(scope, directory, {
    DATA_DIR, SIGN_IN_ATTEMPTS: '0', ...environment,
  })
  const { password, signIns } = JSON.parse(stdout) as Seeded
  return { ...service, dataDir: DATA_DIR, password, signIns }
}

export type Target = Awaited<ReturnType<typeof startTarget>>

interface Seeded {
  password: string
  signIns: { role: string, email: string }[]
}
