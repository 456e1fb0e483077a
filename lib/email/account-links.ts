import type { PendingQuery, Row } from 'postgres'

import { createSecretToken, hashSecretToken, type Purpose } from '../auth/secret-tokens.ts'
import type { ClaimedEmail, Context } from './message.ts'

/** The page of the browser app that a link opens, and for how long it works, as an interval of PostgreSQL's. */
const LINKS = {
  password: { page: 'reset-password', lifetime: '1 hour' },
  email: { page: 'verify-email', lifetime: '7 days' },
}

/**
 * Makes the link of an email while it is composed, so that its token is in the email only. The account's older link for
 * this purpose ends. The token is in the fragment, which browsers send to no server. `undefined` when the condition
 * does not hold for the user, or the email is another one now. Rejects where FRONTEND_URL is not set, as the instance
 * that wrote the email may have it.
 */
export async function createAccountLink (
  { userId }: ClaimedEmail, { sql, config, recipient }: Context, purpose: Purpose, condition: PendingQuery<Row[]>,
  newEmail: string | null = null
) {
  const [frontend] = config.FRONTEND_URL
  if (!frontend) throw new Error('FRONTEND_URL is not set')
  const { page, lifetime } = LINKS[purpose]
  const token = createSecretToken()
  const { count } = await sql`
    WITH past AS (
      DELETE FROM account_tokens WHERE user_id <> ${userId} AND (user_id, purpose) IN (
        SELECT user_id, purpose FROM account_tokens
        WHERE expires_at <= now() ORDER BY expires_at LIMIT 10 FOR UPDATE SKIP LOCKED
      )
    )
    INSERT INTO account_tokens (user_id, purpose, hash, expires_at, new_email)
    SELECT id, ${purpose}, ${hashSecretToken(token)}, now() + ${lifetime}::interval, ${newEmail}
    FROM users WHERE id = ${userId} AND email = ${recipient.email} AND ${condition}
    -- A change of the email comes first, or ends this link.
    FOR KEY SHARE
    ON CONFLICT (user_id, purpose) DO UPDATE SET
      hash = excluded.hash, expires_at = excluded.expires_at, new_email = excluded.new_email
  `
  return count > 0 ? `${frontend}/${page}#token=${token}` : undefined
}
