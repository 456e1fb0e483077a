import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import { profileColumns } from '../../lib/database/columns.ts'
import { revokeCalendar, revokeTokens, epochOf } from '../../lib/auth/revoked-tokens.ts'
import type { Identity } from '../../lib/auth/identity-provider.ts'
import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { enqueueEmails } from '../../lib/email/outbox.ts'
import type { Role } from '../../lib/roles.ts'
import type { me } from './schemas.ts'

interface Credentials {
  userId: string
  email: string
  role: Role
  password: string
  /** The epoch of tokens for the account. */
  epoch: string | null
}

/** Finds the account of this email; `undefined` when there is none. */
export async function findCredentials (sql: Sql, email: string) {
  const [account] = await sql<Credentials[]>`
    SELECT id AS "userId", email, role, password, ${epochOf(sql)} AS epoch FROM users WHERE email = ${email}
  `
  return account
}

/** A user as they see themselves, with their club; no row for an unknown user. */
export const profileQuery = (sql: Sql, id: string): CachedQuery<Body<typeof me>> => ({
  fields: sql`
    SELECT profile AS user
    FROM (
      SELECT ${profileColumns(sql)} FROM users LEFT JOIN clubs ON clubs.id = users.club_id
      WHERE users.id = ${id}
    ) AS profile
  `,
})

interface ProviderAccount extends Pick<Credentials, 'userId' | 'email' | 'role' | 'epoch'> {
  /**
   * How this sign-in changed the account; null when it was linked before. Reclaimed: it was linked, and the password
   * from before has ended.
   */
  account: 'created' | 'linked' | 'reclaimed' | null
}

/**
 * The account of a person whom the identity provider knows by this email: a new one, an existing one that is linked and
 * takes over the picture if it has none, or a linked one that is left alone.
 *
 * The password of an account whose email is not verified may be another person's. With `reclaim`, such a
 * password ends when the account is linked, with all that lets them in or see anything, and an email to the owner has a
 * link to set another one.
 */
export async function signInWithIdentity (
  sql: Sql, identity: Identity & { email: string }, reclaim = false
): Promise<ProviderAccount> {
  const { email, id, avatar, firstName, lastName } = identity
  const account = await sql.begin(async transaction => {
    const [account] = await transaction<ProviderAccount[]>`
      WITH known AS (
        SELECT id, email, role, idp_id, ${epochOf(sql)} AS epoch FROM users WHERE email = ${email}
      ), unlinked AS (
        SELECT id, ${reclaim} AND email_verified_at IS NULL AND password <> ${PLACEHOLDER} AS reclaimed
        FROM users WHERE email = ${email} AND idp_id IS NULL
        FOR NO KEY UPDATE
      ), linked AS (
        UPDATE users SET
          idp_id = ${id},
          avatar = coalesce(avatar, ${avatar}),
          password = CASE WHEN reclaimed THEN ${PLACEHOLDER} ELSE password END,
          email_verified_at = coalesce(email_verified_at, now())
        FROM unlinked WHERE users.id = unlinked.id
        RETURNING users.id, email, role, reclaimed, ${epochOf(sql)} AS epoch
      ), revoked AS (
        ${revokeTokens(sql, sql`SELECT id FROM linked WHERE reclaimed`)}
      ), emailed AS (${enqueueEmails(sql, 'account-linked', sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM linked WHERE reclaimed
      `)}), created AS (
        INSERT INTO users (email, password, idp_id, avatar, first_name, last_name, email_verified_at)
        SELECT ${email}, ${PLACEHOLDER}, ${id}, ${avatar}, ${firstName}, ${lastName}, now()
        WHERE NOT EXISTS (SELECT FROM known)
        ON CONFLICT (email) DO NOTHING
        RETURNING id, email, role
      )
      SELECT id AS "userId", email, role, NULL AS epoch, 'created' AS account FROM created
      UNION ALL
      SELECT id, email, role, coalesce((SELECT epoch FROM revoked), epoch),
        CASE WHEN reclaimed THEN 'reclaimed' ELSE 'linked' END
      FROM linked
      UNION ALL
      SELECT id, email, role, epoch, NULL FROM known WHERE idp_id IS NOT NULL
    `
    if (account?.account === 'reclaimed') await revokeCalendar(transaction, account.userId)
    return account
  })
  // Another request at the same time has created or linked the account, which is there to be found now.
  return account ?? signInWithIdentity(sql, identity, reclaim)
}
