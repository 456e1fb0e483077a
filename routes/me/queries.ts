import type { Static } from '@sinclair/typebox'
import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { revokeTokens } from '../../lib/auth/revoked-tokens.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Role } from '../../lib/values/roles.ts'
import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { AnySql, Sql } from '../../lib/database/client.ts'
import { profileColumns } from '../../lib/database/columns.ts'
import { emailTo } from '../../lib/email/emails.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import type { CurrentUser } from '../../lib/values/schemas.ts'
import { type readAccount } from './schemas.ts'

/** Revokes all tokens of a user. Returns whether the user exists. */
export async function revokeTokensOf (sql: Sql, userId: string) {
  const { count } = await revokeTokens(sql, sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`)
  return count > 0
}

export interface Account {
  email: string
  /** Whether the account is linked to the identity provider. */
  isLinked: boolean
  /** A hash, or the placeholder. */
  password: string
  /** Whether the email address is verified. */
  isVerified: boolean
}

/** Finds the email address and password of an account; `undefined` for an unknown user. */
export async function findAccount (sql: Sql, userId: string) {
  const [account] = await sql<Account[]>`
    SELECT email, password, idp_id IS NOT NULL AS "isLinked", email_verified_at IS NOT NULL AS "isVerified"
    FROM users WHERE id = ${userId}
  `
  return account
}

/**
 * Replaces the hash of a password, revokes all tokens of the user, and enqueues an email to a verified address. Returns
 * the claims of the next token; `undefined` if the password has changed since, or the user was deleted.
 */
export async function changePassword (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, { id, from, to }: { id: string, from: string, to: string }
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

/** Enqueues a verification email, requested by a client of this network. */
export async function insertVerificationEmail (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, userId: string, network: string
) {
  await outbox.enqueue('email-verification', emailTo(sql, sql`
    SELECT id FROM users WHERE id = ${userId} FOR KEY SHARE
  `), network)
}

/** Enqueues an email with a link to the new address, and an email to the current address if it is verified. */
export async function insertEmailChange (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, userId: string, email: string, network: string
) {
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

/**
 * Changes the given fields of a user. Returns the user; `undefined` for an unknown user. `avatar` is the id of a
 * picture that the user has uploaded; throws a 404 for any other id. `null` removes any picture.
 */
export function setProfile (
  sql: Sql, picturesUrl: string | null, id: string,
  { firstName, lastName, avatar }: { firstName?: string, lastName?: string, avatar?: string | null }
) {
  return sql.begin(async sql => {
    if (typeof avatar === 'string') {
      // The lock order of an erasure prevents a deadlock.
      await sql`SELECT FROM users WHERE id = ${id} FOR NO KEY UPDATE`
      const { count } = await sql`
        SELECT FROM pictures WHERE id = ${avatar} AND user_id = ${id} FOR KEY SHARE
      `
      if (count === 0) throw new HttpError(404, 'Picture not found')
    }
    const url = typeof avatar === 'string' ? picturesUrl + avatar : null
    const [user] = await sql<Static<typeof CurrentUser>[]>`
      WITH changed AS (
        UPDATE users SET
          first_name = coalesce(${firstName ?? null}, first_name),
          last_name = coalesce(${lastName ?? null}, last_name),
          avatar = CASE WHEN ${avatar === undefined} THEN avatar ELSE ${url} END
        WHERE id = ${id} RETURNING *
      )
      SELECT ${profileColumns(sql, picturesUrl)} FROM changed AS users LEFT JOIN clubs ON clubs.id = club_id
    `
    return user
  })
}

/** The state of an account. Without a row for an unknown user. */
export const accountQuery = (sql: Sql, userId: string): CachedQuery<Body<typeof readAccount>> => ({
  fields: sql`
    SELECT json_build_object(
      'isEmailVerified', email_verified_at IS NOT NULL,
      'hasPassword', password <> ${PLACEHOLDER},
      'isLinked', idp_id IS NOT NULL,
      'calendar', (
        SELECT json_build_object('createdAt', iso8601(created_at)) FROM calendar_tokens WHERE user_id = users.id
      )
    ) AS account
    FROM users WHERE id = ${userId}
  `,
})

/** Returns the current role of the signed-in user. Throws a 401 for a deleted account. */
export async function findOwnRole (sql: AnySql, id: string) {
  const [user] = await sql<{ role: Role }[]>`SELECT role FROM users WHERE id = ${id}`
  if (!user) throw new HttpError(401, 'Unauthorized')
  return user.role
}
