import { join } from 'node:path'

import postgres from 'postgres'

import { startEmbeddedPostgres } from '#lib/embedded-postgres.js'
import { atEnd } from './cleanup.ts'

/** An embedded PostgreSQL of the benchmark's own. */
export interface DatabaseServer {
  version: string
  /** Makes an empty database and returns its address. */
  create (name: string): Promise<string>
  drop (name: string): Promise<void>
}

/** Starts it with its data in this directory, with the settings that it always has. */
export async function startDatabaseServer (directory: string): Promise<DatabaseServer> {
  const starting = startEmbeddedPostgres(join(directory, 'data'), { info () {}, warn: console.error })
  // Also when it is interrupted before it has started.
  atEnd(() => starting.then(({ release }) => release(), () => {}))
  const { url } = await starting
  const sql = postgres(url, { max: 1 })
  atEnd(() => sql.end({ timeout: 1 }))
  const [server] = await sql<{ version: string }[]>`SELECT current_setting('server_version') AS version`
  return {
    version: server!.version,
    async create (name) {
      await sql`CREATE DATABASE ${sql(name)}`
      return Object.assign(new URL(url), { pathname: name }).href
    },
    async drop (name) {
      await sql`DROP DATABASE ${sql(name)} WITH (FORCE)`
    },
  }
}
