import { createHash, randomBytes } from 'node:crypto'

import type { PendingQuery, Row } from 'postgres'

import type { Sql } from '../database/client.ts'
import type { ClaimedMail, Context } from '../mail/message.ts'

/** Makes a token that cannot be guessed, for an address that is a secret: 256 random bits, base64url. */
export function createSecretToken () {
  return randomBytes(32).toString('base64url')
}

/** The stored form of a token: its SHA-256, base64url. A random token needs no salt. */
export function hashSecretToken (token: string) {
  return createHash('sha256').update(token).digest('base64url')
}

/** The purpose of the token in the link of a mail: to set a password, or to prove the email. */
type Purpose = 'password' | 'email'

/** The page of the browser app that a link opens, and for how long it works, as an interval of PostgreSQL's. */
const LINKS = {
  password: { page: 'reset-password', lifetime: '1 hour' },
  email: { page: 'verify-email', lifetime: '7 days' },
}

/**
 * Makes the link of a mail while it is composed, so that its token is in the mail only. The account's older link for
 * this purpose ends. The token is in the fragment, which browsers send to no server. `undefined` when the condition
 * does not hold for the user, or the email is another one now. Rejects where FRONTEND_URL is not set, as the instance
 * that wrote the mail may have it.
 */
export async function createAccountLink (
  { userId }: ClaimedMail, { sql, config, recipient }: Context, purpose: Purpose, condition: PendingQuery<Row[]>
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
    INSERT INTO account_tokens (user_id, purpose, hash, expires_at)
    SELECT id, ${purpose}, ${hashSecretToken(token)}, now() + ${lifetime}::interval
    FROM users WHERE id = ${userId} AND email = ${recipient.email} AND ${condition}
    -- A change of the email comes first, or ends this link.
    FOR KEY SHARE
    ON CONFLICT (user_id, purpose) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at
  `
  return count > 0 ? `${frontend}/${page}#token=${token}` : undefined
}

/**
 * The CTEs `account`, the user of this token if it works, and `redeemed`, the id of that user if no request at the same
 * time has used it up. An account is locked before its tokens, as by an update of its email.
 */
export const redeemToken = (sql: Sql, purpose: Purpose, hash: string) => sql`
  account AS (
    SELECT * FROM users WHERE id = (
      SELECT user_id FROM account_tokens WHERE hash = ${hash} AND purpose = ${purpose} AND expires_at > now()
    )
    FOR NO KEY UPDATE
  ), redeemed AS (
    DELETE FROM account_tokens USING account
    WHERE user_id = account.id AND hash = ${hash} RETURNING user_id AS id
  )
`
