import type { Role } from '../../lib/accounts.ts'
import type { Sql } from '../../lib/database.ts'

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

interface Profile {
  id: string
  firstName: string
  lastName: string
  email: string
  avatar: string | null
  role: Role
  club: { id: string, name: string, imageUrl: string | null } | null
}

/** A user as they see themselves, with their club; `undefined` when there is no such user. */
export async function findProfile (sql: Sql, id: string) {
  const [profile] = await sql<Profile[]>`
    SELECT
      users.id, first_name AS "firstName", last_name AS "lastName", email, avatar, role,
      CASE WHEN clubs.id IS NOT NULL
        THEN json_build_object('id', clubs.id, 'name', clubs.name, 'imageUrl', clubs.image_url)
      END AS club
    FROM users LEFT JOIN clubs ON clubs.id = users.club_id
    WHERE users.id = ${id}
  `
  return profile
}
