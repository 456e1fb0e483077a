// Runs once after the tests: compares the answers that they saw with those declared, and leaves nothing behind.
import { realpath, rm } from 'node:fs/promises'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '#lib/embedded-postgres.js'
import { compareAnswers } from './answers.ts'
import { currentRun } from './current-run.ts'
import { RUN_DIR, withDatabase } from './run.ts'

const { url, template } = currentRun()
const discrepancies = await compareAnswers(withDatabase(url, template))
const sql = postgres(url)
const leftovers = await sql`SELECT datname FROM pg_database WHERE datname LIKE ${`${template}_%`}`
await sql`DROP DATABASE ${sql(template)} WITH (FORCE)`
await sql.end()
if (!process.env.DATABASE_URL) await (await startEmbeddedPostgres(RUN_DIR, console)).release()
await rm(await realpath(RUN_DIR), { recursive: true })
// The link, where that was in memory.
await rm(RUN_DIR, { force: true })

for (const { datname } of leftovers) discrepancies.push(`a test left the database ${datname} behind`)
if (discrepancies.length > 0) {
  console.error(['After the tests:', ...discrepancies].join('\n  '))
  process.exitCode = 1
}
