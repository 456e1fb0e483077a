// Runs once before the tests: makes the database that every test file copies, on DATABASE_URL or an embedded server.
import { exec } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '../lib/embedded-postgres.ts'
import { migrate } from '../lib/migrations.ts'
import { type Run, RUN_DIR, RUN_FILE, withDatabase } from './run.ts'

// What the tests import, and start as processes of their own, is the compiled code.
const built = promisify(exec)('npm run --silent build -- --noCheck')

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
