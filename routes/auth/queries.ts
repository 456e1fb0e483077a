import type { Role } from '../../lib/accounts.ts'
import type { Sql } from '../../lib/database.ts'
import type { AnswerQuery } from '../../lib/kept-answers.ts'
import type { Identity } from '../../lib/identity-provider.ts'
import { PLACEHOLDER } from '../../lib/passwords.ts'

interface Credentials {
  userId: string
  email: string
  role: Role
  password: string
}

/** What a sign-in needs of the account with this email; `undefined` when there is none. */
export async function findCredentials (sql: Sql, email: string) {
  const [account] = await sql<Credentials[]>`
    SELECT id AS "userId", email, role, password FROM users WHERE email = ${email}
  `
  return account
}

/** A user as they see themselves, with their club; no answer when there is no such user. */
export const readProfile = (sql: Sql, id: string): AnswerQuery => ({
  fields: sql`
    SELECT profile AS user
    FROM (
      SELECT
        users.id, first_name AS "firstName", last_name AS "lastName", email, avatar, role,
        CASE WHEN clubs.id IS NOT NULL
          THEN json_build_object('id', clubs.id, 'name', clubs.name, 'imageUrl', clubs.image_url)
        END AS club
      FROM users LEFT JOIN clubs ON clubs.id = users.club_id
      WHERE users.id = ${id}
    ) AS profile
  `,
})

/**
 * The account of a person whom the identity provider knows by this email: a new one, an existing one that is linked and
 * takes over the picture if it has none, or a linked one that is left alone.
 */
export async function signInWithIdentity (
  sql: Sql, identity: Identity & { email: string }
): Promise<Omit<Credentials, 'password'>> {
  const { email, id, avatar, firstName, lastName } = identity
  const [account] = await sql<Credentials[]>`
    WITH changed AS (
      INSERT INTO users (email, password, idp_id, avatar, first_name, last_name)
      VALUES (${email}, ${PLACEHOLDER}, ${id}, ${avatar}, ${firstName}, ${lastName})
      ON CONFLICT (email) DO UPDATE
        SET idp_id = excluded.idp_id, avatar = coalesce(users.avatar, excluded.avatar)
        WHERE users.idp_id IS NULL
      RETURNING id, email, role
    )
    SELECT id AS "userId", email, role FROM changed
    UNION ALL
    SELECT id, email, role FROM users WHERE email = ${email} AND idp_id IS NOT NULL
  `
  // Another first sign-in of this person was faster: its account was in the way, and is there to be found now.
  return account ?? signInWithIdentity(sql, identity)
}
