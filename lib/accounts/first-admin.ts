import type { FastifyBaseLogger } from 'fastify'

import { hashPassword } from '../auth/passwords.ts'
import type { Config } from '../config/config.ts'
import type { Sql } from '../database/pools.ts'
import type { AuditEvent } from '../http/audit.ts'
import { createAccount } from './accounts.ts'

/**
 * Creates the admin from ADMIN_EMAIL and ADMIN_PASSWORD, or promotes the existing account, which keeps its password. If
 * several instances start at once, one creates the account and the others find it.
 */
export async function ensureFirstAdmin (
  sql: Sql, config: Config, log: Pick<FastifyBaseLogger, 'info'>
): Promise<void> {
  const { ADMIN_EMAIL: email, ADMIN_PASSWORD: password } = config
  if (!email || !password) return
  const change = { event: 'role-changed' satisfies AuditEvent, role: 'ADMIN' }
  const [known] = await sql<{ id: string, isAdmin: boolean }[]>`
    SELECT id, role = 'ADMIN' AS "isAdmin" FROM users WHERE email = ${email}
  `
  if (known?.isAdmin) return
  if (known) {
    await sql`UPDATE users SET role = 'ADMIN' WHERE id = ${known.id}`
    log.info({ ...change, user: known.id }, 'Existing account promoted to admin by ADMIN_EMAIL')
    return
  }
  const admin = { email, firstName: 'Platform', lastName: 'Admin', role: 'ADMIN' as const }
  const created = await createAccount(sql, { ...admin, password: await hashPassword(password) })
  if (!created) return ensureFirstAdmin(sql, config, log)
  log.info({ ...change, user: created.id }, 'Admin account created from ADMIN_EMAIL')
}
