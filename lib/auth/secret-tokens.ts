import { createHash, randomBytes } from 'node:crypto'

import type { Sql } from '../database/client.ts'

/** Makes a token that cannot be guessed, for an address that is a secret: 256 random bits, base64url. */
export function createSecretToken () {
  return randomBytes(32).toString('base64url')
}

/** The stored form of a token: its SHA-256, base64url. A random token needs no salt. */
export function hashSecretToken (token: string) {
  return createHash('sha256').update(token).digest('base64url')
}

/** The purpose of the token in the link of an email: to set a password, or to verify the email. */
export type Purpose = 'password' | 'email'

/**
 * The CTEs `account`, the user of this token if it works, and `redeemed`, the id of that user and the new email of the
 * token, if no request at the same time has used it up. An account is locked before its tokens, as by an update of its
 * email.
 */
export const redeemToken = (sql: Sql, purpose: Purpose, hash: string) => sql`
  account AS (
    SELECT * FROM users WHERE id = (
      SELECT user_id FROM account_tokens WHERE hash = ${hash} AND purpose = ${purpose} AND expires_at > now()
    )
    FOR NO KEY UPDATE
  ), redeemed AS (
    DELETE FROM account_tokens USING account
    WHERE user_id = account.id AND hash = ${hash} RETURNING user_id AS id, new_email
  )
`
