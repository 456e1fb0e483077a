// Runs once after all tests: compares the responses that they saw with the declared ones, and cleans up.
import { rm } from 'node:fs/promises'

import postgres from 'postgres'

import { driverOptions } from '#lib/database/client.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { compareResponses } from './responses.ts'
import { currentRun, RUN_DIR, withDatabase } from './run.ts'

const { url, template } = currentRun()
const responses = await compareResponses(withDatabase(url, template))
const sql = postgres(driverOptions(url))
const leftovers = await sql`SELECT datname FROM pg_database WHERE datname LIKE ${`${template}_%`}`
await sql`DROP DATABASE ${sql(template)} WITH (FORCE)`
await sql.end()
if (!process.env.DATABASE_URL) await (await startEmbeddedPostgres(RUN_DIR, console)).release()
await rm(RUN_DIR, { recursive: true })

fail('Correct the schemas.ts of a route, or its responses:', responses)
fail('A test left a database behind:', leftovers.map(({ datname }) => datname))

function fail (heading: string, lines: string[]) {
  if (lines.length === 0) return
  console.error([heading, ...lines].join('\n  '))
  process.exitCode = 1
}
