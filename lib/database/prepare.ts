import type { FastifyBaseLogger } from 'fastify'

import { ensureAdmin } from '../auth/accounts.ts'
import type { Config } from '../config.ts'
import type { AuditEvent } from '../http/audit.ts'
import type { Database } from './client.ts'
import { prepareSchema } from './migrations.ts'

/**
 * Migrates the schema, or requires that it is up to date, and creates the first admin. Throws a StartupError when the
 * database lacks a migration.
 */
export async function prepareDatabase (
  database: Database, config: Config, log: Pick<FastifyBaseLogger, 'info' | 'warn'>
) {
  await prepareSchema(database, config, log)
  const { ADMIN_EMAIL, ADMIN_PASSWORD } = config
  if (!ADMIN_EMAIL || !ADMIN_PASSWORD) return
  const { id, outcome } = await ensureAdmin(database.sql, ADMIN_EMAIL, ADMIN_PASSWORD)
  const change = { event: 'role-changed' satisfies AuditEvent, user: id, role: 'ADMIN' }
  if (outcome === 'created') log.info(change, 'Admin account created from ADMIN_EMAIL')
  if (outcome === 'promoted') log.info(change, 'Account of ADMIN_EMAIL made an admin')
}
