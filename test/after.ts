// Runs once after the tests: leaves nothing behind.
import { rm } from 'node:fs/promises'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '../lib/embedded-postgres.ts'
import { currentRun, RUN_DIR } from './run.ts'

const { url, template } = currentRun()
const sql = postgres(url)
const leftovers = await sql`SELECT datname FROM pg_database WHERE datname LIKE ${`${template}_%`}`
await sql`DROP DATABASE ${sql(template)} WITH (FORCE)`
await sql.end()
if (!process.env.DATABASE_URL) await (await startEmbeddedPostgres(RUN_DIR, console)).release()
await rm(RUN_DIR, { recursive: true })

if (leftovers.length > 0) {
  console.error(`Tests left databases behind: ${leftovers.map(({ datname }) => datname).join(', ')}`)
  process.exitCode = 1
}
