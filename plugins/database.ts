import fp from 'fastify-plugin'

import { createPools, type Database, isReadOnly, openDatabase, type Sql } from '../lib/database/pools.ts'
import { ensureFirstAdmin } from '../lib/accounts/first-admin.ts'
import { prepareSchema } from '../lib/database/migrations.ts'
import { TimeoutError } from '../lib/config/timeout.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    database: Database
  }
}

/** Opens the database, applies or checks migrations, and creates the first admin. */
export default fp(async app => {
  const { config, log, describeOnly } = app
  const database = describeOnly ? createPools('postgres://', config, log) : await openDatabase(config, log)
  app.decorate('sql', database.sql)
  app.decorate('database', database)
  app.addHook('onError', (_request, _reply, error, done) => {
    if (error instanceof TimeoutError) database.connections.suspect()
    done()
  })
  app.addHook('onClose', async () => { await database.close() })

  if (!describeOnly) {
    await prepareSchema(database, config, log)
    if (await isReadOnly(database.sql)) {
      log.warn('The database is read-only, so every write fails. Look for default_transaction_read_only, or a standby')
    }
    await ensureFirstAdmin(database.sql, config, log)
  }
}, { name: 'database' })
