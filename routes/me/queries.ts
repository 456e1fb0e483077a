import type { Static } from '@sinclair/typebox'

import { endTokens } from '../../lib/auth/ended-tokens.ts'
import type { Role } from '../../lib/auth/accounts.ts'
import type { Sql } from '../../lib/database/client.ts'
import type { Mail } from '../../plugins/mail.ts'
import type { createCalendar } from './schemas.ts'

type Calendar = Static<typeof createCalendar.response[201]>['calendar']

/** Gives the user a calendar, in place of the one they had; `undefined` when there is no such user. */
export async function replaceCalendar (sql: Sql, userId: string, tokenHash: string) {
  const [calendar] = await sql<Pick<Calendar, 'createdAt'>[]>`
    INSERT INTO calendar_tokens (user_id, token_hash)
    SELECT id, ${tokenHash} FROM users WHERE id = ${userId}
    ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, created_at = excluded.created_at
    RETURNING iso8601(created_at) AS "createdAt"
  `
  return calendar
}

/** Takes the user's calendar away; returns whether there was one. */
export async function deleteCalendar (sql: Sql, userId: string) {
  const { count } = await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
  return count > 0
}

/** Ends all tokens of the user; returns whether there is such a user. */
export async function endTokensOf (sql: Sql, userId: string) {
  const { count } = await endTokens(sql, sql`SELECT id FROM users WHERE id = ${userId}`)
  return count > 0
}

interface Account {
  email: string
  /** A hash, or the placeholder. */
  password: string
  /** Whether the email is known to be theirs. */
  isProven: boolean
}

/** Finds the email and the password of an account; `undefined` when there is no such user. */
export async function findAccount (sql: Sql, userId: string) {
  const [account] = await sql<Account[]>`
    SELECT email, password, email_verified_at IS NOT NULL AS "isProven" FROM users WHERE id = ${userId}
  `
  return account
}

/**
 * Replaces one hash of a password by another, ends all tokens of the user, and tells them by a mail. Returns what the
 * next token is issued for; `undefined` when the user has another password by now, or is gone.
 */
export async function changePassword (
  sql: Sql, mail: Pick<Mail, 'enqueue'>, { id, from, to }: { id: string, from: string, to: string }
) {
  const [user] = await sql<{ id: string, role: Role, epoch: string }[]>`
    WITH changed AS (
      UPDATE users SET password = ${to} WHERE id = ${id} AND password = ${from} RETURNING id, role
    ), ended AS (
      ${endTokens(sql, sql`SELECT id FROM changed`)}
    ), mailed AS (${mail.enqueue('password-changed', sql`
      SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM changed
    `)})
    SELECT id, role, epoch FROM changed JOIN ended ON user_id = id
  `
  return user
}

/** Writes the mail that asks the user to prove their email. */
export async function insertVerificationMail (sql: Sql, mail: Pick<Mail, 'enqueue'>, userId: string) {
  await mail.enqueue('email-verification', sql`
    SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${userId} FOR KEY SHARE
  `)
}
