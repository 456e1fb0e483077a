import { FORMER_MEMBER } from '../../lib/auth/erasure.ts'
import { type Batch, keysetBatch, afterKey } from '../../lib/database/keyset.ts'

/** A batch of registrations for an event. */
export const registrationsOf = (eventId: string): Batch<{ name: string, email: string }> => (sql, last) =>
  keysetBatch(sql, sql`
    SELECT
      concat(first_name, ' ', last_name) AS name, email, iso8601(registered_at) AS time, registrations.id,
      octet_length(first_name) + octet_length(last_name) + octet_length(email) AS size
    FROM event_registrations AS registrations JOIN users ON users.id = user_id
    WHERE event_id = ${eventId} AND ${afterKey(sql, last, { time: 'registered_at', id: 'registrations.id' })}
  `)

interface User {
  email: string
  firstName: string
  lastName: string
  role: string
  club: string | null
}

/** A batch of users. */
export const allUsers: Batch<User> = (sql, last) => keysetBatch(sql, sql`
  SELECT
    email, first_name AS "firstName", last_name AS "lastName", role, clubs.name AS club,
    iso8601(created_at) AS time, users.id,
    octet_length(email) + octet_length(first_name) + octet_length(last_name) + coalesce(octet_length(clubs.name), 0)
      AS size
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE email <> ${FORMER_MEMBER.email} AND ${afterKey(sql, last, { time: 'created_at', id: 'users.id' })}
`)
