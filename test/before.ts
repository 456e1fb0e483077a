// Runs once before the tests: makes the database that every test file copies, on DATABASE_URL or an embedded server.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '../lib/embedded-postgres.ts'
import { migrate } from '../lib/migrations.ts'
import { type Run, RUN_DIR, RUN_FILE, withDatabase } from './run.ts'

// What runs is the compiled code, that of the tests included; whether the types are right, `npm run typecheck` tells.
await rm('dist', { recursive: true, force: true })
const options = ['--project', 'test', '--noEmit', 'false', '--noCheck', '--noResolve']
// Without the NODE_OPTIONS by which tap measures the coverage of the compiler, too.
const built = promisify(execFile)('env', ['-u', 'NODE_OPTIONS', 'node_modules/.bin/tsc', ...options])

await mkdir(RUN_DIR, { recursive: true })
const url = process.env.DATABASE_URL || (await startEmbeddedPostgres(RUN_DIR, console)).url
const template = `test_${randomUUID().slice(0, 8)}`

const sql = postgres(url)
if (!process.env.DATABASE_URL) {
  // Nothing here has to survive a power cut.
  await sql`ALTER SYSTEM SET fsync = off`
  await sql`SELECT pg_reload_conf()`
}
await sql`CREATE DATABASE ${sql(template)}`
await migrate(withDatabase(url, template))
await writeFile(RUN_FILE, JSON.stringify({ url, template } satisfies Run))

await built
// Not released: the embedded server runs on until after.ts.
process.exit()
