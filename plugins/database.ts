import fp from 'fastify-plugin'

import { createPools, openDatabase, type Sql } from '../lib/database/client.ts'
import { prepareDatabase } from '../lib/database/prepare.ts'
import { createReplicas, type Replicas } from '../lib/database/replicas.ts'
import type { PoolStats } from '../lib/database/statements.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    /** Runs a short statement on a connection apart from the pool. */
    sqlProbe: Sql
    /** The statements on the pool. */
    poolStats: PoolStats
    /** Standbys to read from, if there are any. */
    replicas: Replicas | undefined
  }
}

/** Opens the database, migrates its schema or requires that it is up to date, and creates the first admin. */
export default fp(async app => {
  const { config, log, describeOnly } = app
  const database = describeOnly ? createPools('postgres://', config, log) : await openDatabase(config, log)
  app.decorate('sql', database.sql)
  app.decorate('sqlProbe', database.sqlProbe)
  app.decorate('poolStats', database.stats)
  const { DATABASE_REPLICA_URL } = config
  const replicas = DATABASE_REPLICA_URL && !describeOnly
    ? createReplicas(DATABASE_REPLICA_URL, database.sqlProbe, config, log)
    : undefined
  app.decorate('replicas', replicas)
  app.addHook('onClose', async () => { await Promise.all([replicas?.close(), database.close()]) })

  if (!describeOnly) await prepareDatabase(database, config, log)
}, { name: 'database' })
