import type { Sql } from '../../../lib/database/pools.ts'
import { emailTo } from '../../../lib/email/emails.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'

/** Enqueues an email with a link to the new address, and an email to the current address if it is verified. */
export async function insertEmailChange (sql: Sql, outbox: Outbox, userId: string, email: string, network: string) {
  await sql`
    WITH account AS (
      SELECT id, email, email_verified_at FROM users WHERE id = ${userId} FOR KEY SHARE
    ), notice AS (${outbox.enqueue('email-change-notice', sql`
      SELECT id AS user_id, jsonb_build_object('from', email, 'to', ${email}::text) AS data, NULL AS key
      FROM account WHERE email_verified_at IS NOT NULL
    `, network)}) ${outbox.enqueue('email-change', sql`
      SELECT id AS user_id, jsonb_build_object('to', ${email}::text) AS data, NULL AS key FROM account
    `, network)}
  `
}

/** Enqueues a verification email, requested by a client of this network. */
export async function insertVerificationEmail (sql: Sql, outbox: Outbox, userId: string, network: string) {
  await outbox.enqueue('email-verification', emailTo(sql, sql`
    SELECT id FROM users WHERE id = ${userId} FOR KEY SHARE
  `), network)
}
