import type { PostgresError } from 'postgres'

import { idOfEmail, isTaken } from '../../lib/accounts/accounts.ts'
import { hashSecretToken, redeemToken } from '../../lib/auth/secret-tokens.ts'
import { revokeCalendar, revokeTokens } from '../../lib/auth/revoked-tokens.ts'
import type { Sql } from '../../lib/database/pools.ts'
import { UNIQUE_VIOLATION } from '../../lib/database/conflicts.ts'
import { columnOf, type NotificationTemplate, readUnsubscribeToken } from '../../lib/email/notifications.ts'
import { emailTo } from '../../lib/email/emails.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { tellVerified } from '../../lib/email/enqueue-seats.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { EMAIL_TAKEN } from './schemas.ts'

/**
 * Enqueues a password-reset email, requested by a client of this network. Returns the id of the account; `undefined` if
 * the address has no account.
 */
export async function insertResetEmail (sql: Sql, outbox: Pick<Outbox, 'enqueue'>, email: string, network: string) {
  const [account] = await sql<{ id: string }[]>`
    WITH account AS (SELECT id FROM users WHERE id = ${idOfEmail(sql, email)} FOR KEY SHARE), emailed AS (
      ${outbox.enqueue('password-reset', emailTo(sql, sql`SELECT id FROM account`), network)}
    )
    SELECT id FROM account
  `
  return account?.id
}

/** Finds the account whose password this token can set; `undefined` for an invalid token. */
export async function findAccountOfToken (sql: Sql, hash: string) {
  const [account] = await sql<{ id: string, email: string }[]>`
    SELECT users.id, email FROM account_tokens JOIN users ON users.id = user_id
    WHERE hash = ${hash} AND purpose = 'password' AND expires_at > now()
  `
  return account
}

/**
 * Sets a password by this token, and revokes all tokens of the account. Also verifies the address, because the user can
 * read its email. If the address was not verified before, another person may have signed up with it, so the calendar
 * link is also revoked, and the confirmations of registrations are enqueued. Forgets failed sign-ins from this network,
 * and enqueues an email. Returns the id of the account; `undefined` for an invalid token.
 */
export function resetPassword (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, hash: string, { password, network }: { password: string, network: string }
) {
  return sql.begin(async sql => {
    const [account] = await sql<{ id: string, wasVerified: boolean }[]>`
      WITH ${redeemToken(sql, 'password', hash)}, changed AS (
        UPDATE users SET password = ${password}, email_verified_at = coalesce(email_verified_at, now())
        FROM redeemed WHERE users.id = redeemed.id
        RETURNING users.id, email
      ), revoked AS (
        ${revokeTokens(sql, sql`SELECT id FROM changed`)}
      ), forgotten AS (
        DELETE FROM rate_limits
        WHERE name = 'failed-sign-ins-for-account' AND key = (SELECT concat(email, ' ', ${network}::text) FROM changed)
      ), emailed AS (
        ${outbox.enqueue('password-changed', emailTo(sql, sql`SELECT id FROM changed`), network)}
      )
      SELECT id, email_verified_at IS NOT NULL AS "wasVerified" FROM account JOIN redeemed USING (id)
    `
    if (account && !account.wasVerified) {
      await revokeCalendar(sql, account.id)
      await tellVerified(sql, outbox, account.id, network)
    }
    return account?.id
  })
}

/**
 * Verifies the email address by this token, or changes it to the new address of the token. If no address was verified
 * before, enqueues the confirmations of registrations. Returns the id of the account and whether its address has
 * changed; `undefined` for an invalid token. Throws a 409 if another account has taken the new address, ignoring case.
 */
export async function verifyEmail (sql: Sql, outbox: Pick<Outbox, 'enqueue'>, hash: string, network: string) {
  return sql.begin(async sql => {
    // Of two accounts that change to one mailbox at once, the second sees the first.
    await sql`
      SELECT pg_advisory_xact_lock(hashtextextended(lower(new_email), 0)) FROM account_tokens WHERE hash = ${hash}
    `
    const [account] = await sql<{ id: string, newEmail: string | null, wasVerified: boolean }[]>`
      WITH ${redeemToken(sql, 'email', hash)}
      SELECT id, new_email AS "newEmail", email_verified_at IS NOT NULL AS "wasVerified"
      FROM account JOIN redeemed USING (id)
    `
    if (!account) return undefined
    const { id, newEmail, wasVerified } = account
    if (newEmail !== null) {
      if (await isTaken(sql, newEmail, id)) throw new HttpError(409, EMAIL_TAKEN)
      await sql`UPDATE users SET email = ${newEmail} WHERE id = ${id}`
    }
    // A separate statement, because a trigger marks a changed address as not verified.
    await sql`UPDATE users SET email_verified_at = coalesce(email_verified_at, now()) WHERE id = ${id}`
    if (!wasVerified) await tellVerified(sql, outbox, id, network)
    return { id, hasChanged: newEmail !== null }
  }).catch((error: PostgresError) => {
    throw error.code === UNIQUE_VIOLATION ? new HttpError(409, EMAIL_TAKEN) : error
  })
}

/** Finds the recipient and template of the emails with this unsubscribe token; `undefined` for an invalid token. */
export async function findNotification (sql: Sql, secret: { JWT_SECRET: string }, token: string) {
  const known = readUnsubscribeToken(secret, token)
  // Version 1.0.0 made a random token for each email. Their emails are kept for 30 days.
  const [email] = await sql<{ userId: string, template: NotificationTemplate }[]>`
    SELECT id AS "userId", ${known?.template ?? null} AS template FROM users WHERE id = ${known?.userId ?? null}
    UNION ALL SELECT user_id, template FROM emails WHERE token_hash = ${hashSecretToken(token)} LIMIT 1
  `
  return email
}

/** Turns off emails of this template for a user. Returns whether they were on. */
export async function turnOff (sql: Sql, { userId, template }: { userId: string, template: NotificationTemplate }) {
  const column = sql(columnOf(template))
  const { count } = await sql`
    INSERT INTO notifications AS known (user_id, ${column})
    SELECT id, false FROM users WHERE id = ${userId} FOR KEY SHARE
    ON CONFLICT (user_id) DO UPDATE SET ${column} = false WHERE known.${column}
  `
  return count > 0
}
