import type { Static } from '@sinclair/typebox'

import type { Role } from '../../lib/values/roles.ts'
import { FORMER_MEMBER } from '../../lib/accounts/erasure.ts'
import type { CachedQuery } from '../../lib/cache/index.ts'
import { type AnySql, expectOne, type Sql } from '../../lib/database/pools.ts'
import { assignments, avatarOf, bytesOf, registrationColumns, registrationDetails } from '../../lib/database/columns.ts'
import { releaseMessages } from '../../lib/email/event-messages.ts'
import { emailTo } from '../../lib/email/emails.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import type { assignClub, changeRole, update } from './schemas.ts'

type FullUser = Static<typeof assignClub.response[200]>['user']
type UserWithRole = Static<typeof changeRole.response[200]>['user']

const clubColumn = (sql: AnySql) => sql`
  CASE WHEN clubs.id IS NOT NULL THEN json_build_object('name', clubs.name) END AS club
`

const allColumns = (sql: AnySql, picturesUrl: string | null) => sql`
  users.id, email, password, idp_id AS "idpId", ${avatarOf(sql, picturesUrl)} AS avatar, first_name AS "firstName",
  last_name AS "lastName", role, club_id AS "clubId", iso8601(created_at) AS "createdAt",
  iso8601(updated_at) AS "updatedAt", ${clubColumn(sql)}
`

export const usersQuery = (sql: Sql): CachedQuery => ({
  list: {
    field: 'users',
    rows: sql`
      SELECT
        users.id, email, first_name AS "firstName", last_name AS "lastName", role, club_id AS "clubId",
        iso8601(created_at) AS "createdAt", ${clubColumn(sql)},
        json_build_object(
          'eventRegistrations', coalesce(registrations.count, 0), 'blogs', coalesce(blogs.count, 0)
        ) AS "_count"
      FROM users
        LEFT JOIN clubs ON clubs.id = club_id
        LEFT JOIN (SELECT user_id, count(*) FROM event_registrations GROUP BY user_id) AS registrations
          ON registrations.user_id = users.id
        LEFT JOIN (SELECT author_id, count(*) FROM blogs GROUP BY author_id) AS blogs ON blogs.author_id = users.id
      ORDER BY created_at DESC, users.id
    `,
    keys: sql`
      SELECT users.id, created_at AS at, ${bytesOf(sql, 'email', 'first_name', 'last_name', 'clubs.name')} AS size
      FROM users LEFT JOIN clubs ON clubs.id = club_id
    `,
  },
})

/** SQL condition: excludes the former member, the author of erased users' posts. */
const isPerson = (sql: AnySql) => sql`email <> ${FORMER_MEMBER.email}`

export const analyticsQuery = (sql: Sql): CachedQuery => ({
  fields: sql`
    SELECT analytics
    FROM (
      SELECT
        (SELECT count(*) FROM users WHERE ${isPerson(sql)}) AS "totalUsers",
        (SELECT count(*) FROM clubs) AS "totalClubs",
        (SELECT count(*) FROM events) AS "totalEvents",
        (SELECT count(*) FROM blogs) AS "totalBlogs",
        (SELECT count(*) FROM mentors) AS "totalMentors",
        (
          SELECT coalesce(json_agg(json_build_object('role', role, '_count', json_build_object('role', count))), '[]')
          FROM (SELECT role, count(*) FROM users WHERE ${isPerson(sql)} GROUP BY role) AS roles
        ) AS "roleCounts",
        (
          SELECT coalesce(json_agg(registration ORDER BY registered_at DESC, registrations.id), '[]')
          FROM (SELECT * FROM event_registrations ORDER BY registered_at DESC, id LIMIT 10) AS registrations
            JOIN events ON events.id = event_id
            JOIN users ON users.id = user_id
            CROSS JOIN LATERAL (SELECT ${registrationColumns(sql)}, ${registrationDetails(sql)}) AS registration
        ) AS "recentRegistrations"
    ) AS analytics
  `,
})

/**
 * Changes the given fields. `clubId: null` ends the membership. If the email address changes, enqueues an email to
 * verify the new address and, if the old address was verified, an email to the old address.
 */
export async function updateUser (
  sql: Sql, outbox: Pick<Outbox, 'canLink' | 'enqueue'>, picturesUrl: string | null,
  { id, adminId, changes }: { id: string, adminId: string, changes: Static<typeof update.body> }
) {
  const [user] = await sql<FullUser[]>`
    WITH before AS (
      SELECT id, email, email_verified_at FROM users WHERE id = ${id} FOR NO KEY UPDATE
    ), changed AS (
      UPDATE users SET
        ${assignments(sql, changes, ['firstName', 'lastName', 'clubId'])},
        email = coalesce(${changes.email ?? null}, users.email)
      FROM before WHERE users.id = before.id
      RETURNING users.*
    ), verification AS (${outbox.enqueue('email-verification', emailTo(sql, sql`
      SELECT id FROM changed JOIN before USING (id) WHERE changed.email <> before.email AND ${outbox.canLink}
    `), adminId)}), notice AS (${outbox.enqueue('email-changed', sql`
      SELECT id AS user_id, jsonb_build_object('to', before.email) AS data, NULL AS key
      FROM changed JOIN before USING (id)
      WHERE changed.email <> before.email AND before.email_verified_at IS NOT NULL
    `, adminId)})
    SELECT ${allColumns(sql, picturesUrl)} FROM changed AS users LEFT JOIN clubs ON clubs.id = club_id
  `
  return user
}

/**
 * Changes the role of a user, even of the last admin: the role in the token of the requester decides, and the contract
 * has no error for this case. So two admins can also demote each other one after the other.
 */
export async function setUserRole (sql: Sql, id: string, role: Role) {
  return expectOne(await sql<UserWithRole[]>`
    WITH changed AS (UPDATE users SET role = ${role} WHERE id = ${id} RETURNING *)
    SELECT users.id, email, first_name AS "firstName", last_name AS "lastName", role, ${clubColumn(sql)}
    FROM changed AS users LEFT JOIN clubs ON clubs.id = club_id
  `)
}

/**
 * Deletes a user and their likes. Returns whether the user existed. Fails if the user has posts or registrations. Locks
 * the liked mentors before the likes, in the same order as the deletion of a mentor, to prevent deadlocks.
 */
export function deleteUser (sql: Sql, id: string) {
  return sql.begin(async sql => {
    // Waits for running likes, so that the next statement sees them, and blocks new likes.
    await sql`SELECT FROM users WHERE id = ${id} FOR UPDATE`
    await sql`
      SELECT FROM mentors WHERE id IN (SELECT mentor_id FROM mentor_likes WHERE user_id = ${id})
      ORDER BY id FOR KEY SHARE
    `
    // The lock order of a sender.
    await sql`SELECT FROM emails WHERE user_id = ${id} ORDER BY id FOR UPDATE`
    await releaseMessages(sql, id)
    const { count } = await sql`DELETE FROM users WHERE id = ${id}`
    return count > 0
  })
}
