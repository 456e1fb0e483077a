import { revokeTokens } from '../../../lib/auth/revoked-tokens.ts'
import type { Sql } from '../../../lib/database/pools.ts'
import { emailTo } from '../../../lib/email/emails.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'
import type { Role } from '../../../lib/values/roles.ts'

/**
 * Replaces the hash of a password, revokes all tokens of the user, and enqueues an email to a verified address. Returns
 * the claims of the next token; `undefined` if the password has changed since, or the user was deleted.
 */
export async function changePassword (
  sql: Sql, outbox: Outbox, { id, from, to }: { id: string, from: string, to: string }
) {
  const [user] = await sql<{ id: string, role: Role, epoch: string }[]>`
    WITH changed AS (
      UPDATE users SET password = ${to} WHERE id = ${id} AND password = ${from} RETURNING id, role, email_verified_at
    ), revoked AS (
      ${revokeTokens(sql, sql`SELECT id FROM changed`)}
    ), emailed AS (${outbox.enqueue('password-changed', emailTo(sql, sql`
      SELECT id FROM changed WHERE email_verified_at IS NOT NULL
    `), id)})
    SELECT id, role, epoch FROM changed JOIN revoked ON user_id = id
  `
  return user
}
