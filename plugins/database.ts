import fp from 'fastify-plugin'

import { createPools, openDatabase, type Sql } from '../lib/database/client.ts'
import { prepareDatabase } from '../lib/database/prepare.ts'
import { createReplicas, type Replicas } from '../lib/database/replicas.ts'
import type { PoolStats } from '../lib/database/statements.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs a statement on the pool: app.sql`SELECT …`. */
    sql: Sql
    database: {
      /** Runs a short statement on a connection apart from the pool. */
      probe: Sql
      /** The statements on the pool. */
      stats: PoolStats
      /** Standbys to read from, if there are any. */
      replicas: Replicas | undefined
      /**
       * Runs statements that only read: on a replica that has all that was acknowledged before the call, or on the
       * primary. They may be run again. The reads that belong to a write are run on `app.sql`.
       */
      read<T> (work: (sql: Sql) => Promise<T>): Promise<T>
    }
  }
}

/** Opens the database, migrates its schema or requires that it is up to date, and creates the first admin. */
export default fp(async app => {
  const { config, log, describeOnly } = app
  const database = describeOnly ? createPools('postgres://', config, log) : await openDatabase(config, log)
  const { sql, probe, stats } = database
  const { DATABASE_REPLICA_URL } = config
  const replicas = DATABASE_REPLICA_URL && !describeOnly
    ? createReplicas(DATABASE_REPLICA_URL, { probe, config, log })
    : undefined
  app.decorate('sql', sql)
  app.decorate('database', {
    probe,
    stats,
    replicas,
    read: work => replicas ? replicas.readFresh(work, () => work(sql)) : work(sql),
  })
  app.addHook('onClose', async () => { await Promise.all([replicas?.close(), database.close()]) })

  if (!describeOnly) await prepareDatabase(database, config, log)
}, { name: 'database' })
