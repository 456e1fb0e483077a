// Creates the migrated template database, on the server at DATABASE_URL or on an embedded one.
import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'

import postgres from 'postgres'

import { driverOptions } from '#lib/database/pools.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import { asSuperuser, type Run, RUN_DIR, RUN_FILE, withDatabase } from './run.ts'

await mkdir(RUN_DIR, { recursive: true })
const url = process.env.DATABASE_URL || asSuperuser((await startEmbeddedPostgres(RUN_DIR, console)).url)
const template = `test_${randomUUID().slice(0, 8)}`

const sql = postgres(driverOptions(url))
if (!process.env.DATABASE_URL) {
  // The data need not survive a power failure.
  await sql`ALTER SYSTEM SET fsync = off`
  await sql`SELECT pg_reload_conf()`
}
await sql`CREATE DATABASE ${sql(template)}`
await migrate(withDatabase(url, template))
await writeFile(RUN_FILE, JSON.stringify({ url, template } satisfies Run))

// Exits without releasing the embedded server, which after.ts stops.
process.exit()
