import type { CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/pools.ts'
import { retryConflict } from '../../lib/database/conflicts.ts'
import { profileColumns } from '../../lib/database/columns.ts'
import { revokeCalendar, revokeTokens, epochOf } from '../../lib/auth/revoked-tokens.ts'
import type { Identity } from '../../lib/auth/identity-provider.ts'
import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { emailTo, enqueueEmails } from '../../lib/email/emails.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { tellVerified } from '../../lib/email/enqueue-seats.ts'
import type { Role } from '../../lib/values/roles.ts'

interface Credentials {
  userId: string
  email: string
  role: Role
  password: string
  /** The epoch of the account's tokens. */
  epoch: string | null
}

/** Finds an account by its email address; `undefined` if the address has no account. */
export async function findCredentials (sql: Sql, email: string) {
  const [account] = await sql<Credentials[]>`
    SELECT id AS "userId", email, role, password, ${epochOf(sql)} AS epoch FROM users WHERE email = ${email}
  `
  return account
}

/** The profile of a user, with their club. Without a row for an unknown user. */
export const profileQuery = (sql: Sql, id: string, picturesUrl: string | null): CachedQuery => ({
  fields: sql`
    SELECT profile AS user
    FROM (
      SELECT ${profileColumns(sql, picturesUrl)} FROM users LEFT JOIN clubs ON clubs.id = users.club_id
      WHERE users.id = ${id}
    ) AS profile
  `,
})

interface ProviderAccount extends Pick<Credentials, 'userId' | 'email' | 'role' | 'epoch'> {
  /**
   * How this sign-in changed the account; null if it was already linked. `reclaimed` means that it was linked and its
   * password was removed.
   */
  account: 'created' | 'linked' | 'reclaimed' | null
  /** Whether this sign-in verified the address of an account that existed. */
  isNewlyVerified: boolean
}

/**
 * Finds, links or creates the account for an identity. Linking takes over the picture if the account has none. An
 * account that is already linked stays unchanged.
 *
 * If the address of an account is not verified, another person may have set its password. Linking such an
 * account removes the password, revokes all tokens and links, and enqueues an email with a link to set a new password.
 * Without emails, which the owner needs to set one, the password stays. If linking verifies the address, enqueues the
 * confirmations of registrations.
 */
export async function signInWithIdentity (
  sql: Sql, outbox: Outbox, identity: Identity & { email: string }
): Promise<ProviderAccount> {
  const { email, id, avatar, firstName, lastName } = identity
  // Tried again here, because the identity provider takes the code of a sign-in only once.
  const account = await retryConflict(() => sql.begin(async sql => {
    const [account] = await sql<ProviderAccount[]>`
      WITH known AS (
        SELECT id, email, role, idp_id, ${epochOf(sql)} AS epoch FROM users WHERE email = ${email}
      ), unlinked AS (
        SELECT
          id, email_verified_at IS NULL AS is_new,
          ${outbox.canVerify} AND email_verified_at IS NULL AND password <> ${PLACEHOLDER} AS reclaimed
        FROM users WHERE email = ${email} AND idp_id IS NULL
        FOR NO KEY UPDATE
      ), linked AS (
        UPDATE users SET
          idp_id = ${id},
          avatar = coalesce(avatar, ${avatar}),
          password = CASE WHEN reclaimed THEN ${PLACEHOLDER} ELSE password END,
          email_verified_at = coalesce(email_verified_at, now())
        FROM unlinked WHERE users.id = unlinked.id
        RETURNING users.id, email, role, reclaimed, is_new, ${epochOf(sql)} AS epoch
      ), revoked AS (
        ${revokeTokens(sql, sql`SELECT id FROM linked WHERE reclaimed`)}
      ), emailed AS (
        ${enqueueEmails(
          sql, 'account-linked', emailTo(sql, sql`SELECT id FROM linked WHERE reclaimed`), sql`user_id::text`
        )}
      ), created AS (
        INSERT INTO users (email, password, idp_id, avatar, first_name, last_name, email_verified_at)
        SELECT ${email}, ${PLACEHOLDER}, ${id}, ${avatar}, ${firstName}, ${lastName}, now()
        WHERE NOT EXISTS (SELECT FROM known)
        ON CONFLICT (email) DO NOTHING
        RETURNING id, email, role
      )
      SELECT id AS "userId", email, role, NULL AS epoch, 'created' AS account, false AS "isNewlyVerified" FROM created
      UNION ALL
      SELECT id, email, role, coalesce((SELECT epoch FROM revoked), epoch),
        CASE WHEN reclaimed THEN 'reclaimed' ELSE 'linked' END, is_new
      FROM linked
      UNION ALL
      SELECT id, email, role, epoch, NULL, false FROM known WHERE idp_id IS NOT NULL
    `
    if (account?.account === 'reclaimed') await revokeCalendar(sql, account.userId)
    if (account?.isNewlyVerified) await tellVerified(sql, outbox, account.userId, account.userId)
    return account
  }))
  // A parallel request has created or linked the account, so this time it will be found.
  return account ?? signInWithIdentity(sql, outbox, identity)
}
