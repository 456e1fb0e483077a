// Runs once after all tests: compares the responses that they saw with the declared ones, and cleans up.
import { rm } from 'node:fs/promises'

import postgres from 'postgres'

import { driverOptions } from '#lib/database/pools.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { compareResponses } from './responses.ts'
import { currentRun, RUN_DIR, withDatabase } from './run.ts'

const { url, template } = currentRun()
const responses = await compareResponses(withDatabase(url, template))
if (process.env.DATABASE_URL) {
  const sql = postgres(driverOptions(url))
  const databases = await sql`SELECT datname FROM pg_database WHERE starts_with(datname, ${template})`
  for (const { datname } of databases) await sql`DROP DATABASE ${sql(datname)} WITH (FORCE)`
  await sql.end()
} else {
  await (await startEmbeddedPostgres(RUN_DIR, console)).release()
}
await rm(RUN_DIR, { recursive: true })

if (responses.length > 0) {
  console.error(['Correct the schemas.ts of a route, or its responses:', ...responses].join('\n  '))
  process.exitCode = 1
}
