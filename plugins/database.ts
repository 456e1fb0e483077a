import fp from 'fastify-plugin'

import { createPools, openDatabase, type Sql } from '../lib/database/client.ts'
import { ensureFirstAdmin } from '../lib/auth/first-admin.ts'
import type { Connections } from '../lib/database/connections.ts'
import { prepareSchema } from '../lib/database/migrations.ts'
import { TimeoutError } from '../lib/timeout.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    database: {
      /** Runs a short statement on a separate connection. */
      shortSql: Sql
      /** Runs the check of /readyz on a separate connection. */
      monitor: Sql
      /** The connections of all three pools. */
      connections: Connections
    }
  }
}

/** Opens the database, applies or checks migrations, and creates the first admin. */
export default fp(async app => {
  const { config, log, describeOnly } = app
  const database = describeOnly ? createPools('postgres://', config, log) : await openDatabase(config, log)
  const { sql, shortSql, monitor, connections } = database
  app.decorate('sql', sql)
  app.decorate('database', { shortSql, monitor, connections })
  app.addHook('onError', (_request, _reply, error, done) => {
    if (error instanceof TimeoutError) connections.suspect()
    done()
  })
  app.addHook('onClose', async () => { await database.close() })

  if (!describeOnly) {
    await prepareSchema(database, config, log)
    await ensureFirstAdmin(database.sql, config, log)
  }
}, { name: 'database' })
