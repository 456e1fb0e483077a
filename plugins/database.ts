import fp from 'fastify-plugin'

import { createPools, openDatabase, type Sql } from '../lib/database/client.ts'
import type { Connections } from '../lib/database/connections.ts'
import { prepareDatabase } from '../lib/database/prepare.ts'
import { TimeoutError } from '../lib/timeout.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    database: {
      /** Runs a short statement on a connection apart from the pool. */
      probe: Sql
      /** The connections of the pool, and the one of `probe`. */
      connections: Connections
    }
  }
}

/** Opens the database, migrates its schema or requires that it is up to date, and creates the first admin. */
export default fp(async app => {
  const { config, log, describeOnly } = app
  const database = describeOnly ? createPools('postgres://', config, log) : await openDatabase(config, log)
  const { sql, probe, connections } = database
  app.decorate('sql', sql)
  app.decorate('database', { probe, connections })
  app.addHook('onError', (_request, _reply, error, done) => {
    if (error instanceof TimeoutError) connections.suspect()
    done()
  })
  app.addHook('onClose', async () => { await database.close() })

  if (!describeOnly) await prepareDatabase(database, config, log)
}, { name: 'database' })
