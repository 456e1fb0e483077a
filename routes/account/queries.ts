import { idOfEmail } from '../../lib/auth/accounts.ts'
import { redeemToken } from '../../lib/auth/secret-tokens.ts'
import { endCalendar, endTokens } from '../../lib/auth/ended-tokens.ts'
import type { Sql } from '../../lib/database/client.ts'
import { columnOf, type NotificationKind } from '../../lib/mail/notifications.ts'
import type { Mail } from '../../plugins/mail.ts'

/**
 * Writes the mail to set a password, for a client of this network; returns the id of the account, `undefined` when the
 * email has none.
 */
export async function insertResetMail (sql: Sql, mail: Pick<Mail, 'enqueue'>, email: string, network: string) {
  const [account] = await sql<{ id: string }[]>`
    WITH account AS (SELECT id FROM users WHERE id = ${idOfEmail(sql, email)} FOR KEY SHARE), mailed AS (
      ${mail.enqueue('password-reset', sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM account
      `, network)}
    )
    SELECT id FROM account
  `
  return account?.id
}

/** Finds the account whose password this token sets; `undefined` when it does not work. */
export async function findAccountOfToken (sql: Sql, hash: string) {
  const [account] = await sql<{ id: string, email: string }[]>`
    SELECT users.id, email FROM account_tokens JOIN users ON users.id = user_id
    WHERE hash = ${hash} AND purpose = 'password' AND expires_at > now()
  `
  return account
}

/**
 * Sets a password by this token, and ends all tokens of the account. A reader of the mail has the address, so it is
 * proven; if it was not before, another person may have registered it, and the address of its calendar ends, too.
 * Failed sign-ins from this network are forgotten, and a mail says what happened. Returns the id of the account;
 * `undefined` when the token does not work any more.
 */
export function resetPassword (
  sql: Sql, mail: Pick<Mail, 'enqueue'>, hash: string, { password, network }: { password: string, network: string }
) {
  return sql.begin(async transaction => {
    const [account] = await transaction<{ id: string, wasProven: boolean }[]>`
      WITH ${redeemToken(sql, 'password', hash)}, changed AS (
        UPDATE users SET password = ${password}, email_verified_at = coalesce(email_verified_at, now())
        FROM redeemed WHERE users.id = redeemed.id
        RETURNING users.id, email
      ), ended AS (
        ${endTokens(sql, sql`SELECT id FROM changed`)}
      ), forgotten AS (
        DELETE FROM rate_limits
        WHERE name = 'failed-sign-ins-for-account' AND key = (SELECT concat(email, ' ', ${network}::text) FROM changed)
      ), mailed AS (${mail.enqueue('password-changed', sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM changed
      `)})
      SELECT id, email_verified_at IS NOT NULL AS "wasProven" FROM account JOIN redeemed USING (id)
    `
    if (account && !account.wasProven) await endCalendar(transaction, account.id)
    return account?.id
  })
}

/** Takes the email as proven by this token. Returns the id of the account; `undefined` when it does not work. */
export async function verifyEmail (sql: Sql, hash: string) {
  const [account] = await sql<{ id: string }[]>`
    WITH ${redeemToken(sql, 'email', hash)}
    UPDATE users SET email_verified_at = coalesce(email_verified_at, now())
    FROM redeemed WHERE users.id = redeemed.id
    RETURNING users.id
  `
  return account?.id
}

/** Finds the mail whose link has this token: whom it went to, and its kind. */
export async function findNotification (sql: Sql, hash: string) {
  const [mail] = await sql<{ userId: string, kind: NotificationKind }[]>`
    SELECT user_id AS "userId", kind FROM mails WHERE token_hash = ${hash}
  `
  return mail
}

/** Turns off mails of this kind for a user. Returns whether that changed something. */
export async function turnOff (sql: Sql, { userId, kind }: { userId: string, kind: NotificationKind }) {
  const column = sql(columnOf(kind))
  const { count } = await sql`
    INSERT INTO notifications AS known (user_id, ${column})
    SELECT id, false FROM users WHERE id = ${userId} FOR KEY SHARE
    ON CONFLICT (user_id) DO UPDATE SET ${column} = false WHERE known.${column}
  `
  return count > 0
}
