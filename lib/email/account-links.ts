import type { PendingQuery, Row } from 'postgres'

import { hashSecretToken, linkToken, type Purpose } from '../auth/secret-tokens.ts'
import type { ClaimedEmail, Context } from './content.ts'

/**
 * The page of the browser app that each link opens, the lifetime of the link as a PostgreSQL interval, and the emails
 * that contain it.
 */
const LINKS = {
  password: { page: 'reset-password', lifetime: '1 hour', templates: ['password-reset', 'account-linked'] },
  email: { page: 'verify-email', lifetime: '7 days', templates: ['email-verification', 'email-change'] },
}

/**
 * Creates the link while the email is composed, so that only the email contains the token. Replaces the account's older
 * link for this purpose. The token is in the fragment because browsers do not send fragments to servers. Rejects
 * without FRONTEND_URL, because an instance that has it can send the email later.
 *
 * Returns `undefined` if the user does not meet the condition or has changed their address, and for an email that a
 * newer email replaces. If a server has refused the older email for a while, its link must not replace the newer link.
 */
export async function createAccountLink (
  { id, userId, createdAt }: ClaimedEmail, { sql, config, recipient }: Context, purpose: Purpose,
  condition: PendingQuery<Row[]>, newEmail: string | null = null
) {
  const [frontend] = config.FRONTEND_URL
  if (!frontend) throw new Error('FRONTEND_URL is not set')
  const { page, lifetime, templates } = LINKS[purpose]
  const token = linkToken(config, purpose, id, recipient.email).toString('base64url')
  return sql.begin(async sql => {
    // Waits for a running change of the address or a revocation, so that the next statement sees it. A later change
    // waits for this transaction, and deletes the link.
    await sql`SELECT FROM users WHERE id = ${userId} FOR SHARE`
    const { count } = await sql`
      WITH past AS (
        DELETE FROM account_tokens WHERE user_id <> ${userId} AND (user_id, purpose) IN (
          SELECT user_id, purpose FROM account_tokens
          WHERE expires_at <= now() ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED
        )
      )
      INSERT INTO account_tokens (user_id, purpose, hash, expires_at, new_email)
      SELECT id, ${purpose}, ${hashSecretToken(token)}, now() + ${lifetime}::interval, ${newEmail}
      FROM users WHERE id = ${userId} AND email = ${recipient.email} AND ${condition} AND NOT EXISTS (
        SELECT FROM emails
        WHERE user_id = users.id AND template IN ${sql(templates)} AND status <> 'failed'
          AND (created_at, emails.id) > (${createdAt.toISOString()}, ${id}::uuid)
      )
      ON CONFLICT (user_id, purpose) DO UPDATE SET
        hash = excluded.hash, expires_at = excluded.expires_at, new_email = excluded.new_email
    `
    return count > 0 ? `${frontend}/${page}#token=${token}` : undefined
  })
}
