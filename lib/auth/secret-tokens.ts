import { createHmac, randomBytes } from 'node:crypto'

import type { Config } from '../config/config.ts'
import { deriveKey } from '../config/secret-file.ts'
import type { AnySql } from '../database/pools.ts'
import { sha256 } from '../values/formats.ts'

/** Creates a token for a secret link: 256 random bits, base64url. */
export function createSecretToken () {
  return randomBytes(32).toString('base64url')
}

/** Returns the stored form of a token. Random tokens do not need a salt. */
export const hashSecretToken = (token: string) => sha256(token)

/**
 * Derives a token of 256 bits for a link in an email from these facts. So each attempt to send an email writes the same
 * link: the first copy may have arrived, and some mailboxes drop a second copy with the same Message-ID.
 */
export function linkToken ({ JWT_SECRET }: Pick<Config, 'JWT_SECRET'>, ...facts: string[]) {
  return createHmac('sha256', deriveKey(JWT_SECRET!, 'links in emails')).update(JSON.stringify(facts)).digest()
}

/** The purpose of a link in an email: to set a password or to verify the address. */
export type Purpose = 'password' | 'email'

/**
 * SQL CTEs: `account` is the user of a valid token. `redeemed` contains the user's id and the new email address of the
 * token, unless a parallel request used the token first. The account is locked before its tokens, in the same order as
 * an update of the email address.
 */
export const redeemToken = (sql: AnySql, purpose: Purpose, hash: string) => sql`
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
