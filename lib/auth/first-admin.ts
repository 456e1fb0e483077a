import type { FastifyBaseLogger } from 'fastify'

import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import type { AuditEvent } from '../http/audit.ts'
import { ensureAdmin } from './accounts.ts'

/** Creates the admin from ADMIN_EMAIL and ADMIN_PASSWORD, or promotes the existing account. */
export async function ensureFirstAdmin (
  sql: Sql, { ADMIN_EMAIL, ADMIN_PASSWORD }: Config, log: Pick<FastifyBaseLogger, 'info'>
) {
  if (!ADMIN_EMAIL || !ADMIN_PASSWORD) return
  const { id, outcome } = await ensureAdmin(sql, ADMIN_EMAIL, ADMIN_PASSWORD)
  const change = { event: 'role-changed' satisfies AuditEvent, user: id, role: 'ADMIN' }
  if (outcome === 'created') log.info(change, 'Admin account created from ADMIN_EMAIL')
  if (outcome === 'promoted') log.info(change, 'Existing account promoted to admin by ADMIN_EMAIL')
}
