import fp from 'fastify-plugin'

import { ensureAdmin } from '../lib/accounts.ts'
import { openDatabase, type Sql } from '../lib/database.ts'
import { prepareSchema } from '../lib/migrations.ts'
import type { PoolLoad } from '../lib/query-deadline.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    /** Runs a short statement on a connection apart from the pool. */
    sqlProbe: Sql
    /** What the pool is asked for. */
    poolLoad: PoolLoad
  }
}

/** Opens the database, brings its schema up to date or insists that it is, and sees to the first admin. */
export default fp(async app => {
  const { config, log } = app
  const database = await openDatabase(config, log)
  app.decorate('sql', database.sql)
  app.decorate('sqlProbe', database.sqlProbe)
  app.decorate('poolLoad', database.load)
  app.addHook('onClose', () => database.close())

  await prepareSchema(database, config, log)
  if (config.ADMIN_EMAIL && config.ADMIN_PASSWORD) {
    const outcome = await ensureAdmin(database.sql, config.ADMIN_EMAIL, config.ADMIN_PASSWORD)
    if (outcome === 'created') log.info('Admin account created from ADMIN_EMAIL')
  }
}, { name: 'database' })
