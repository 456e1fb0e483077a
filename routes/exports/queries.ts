import type { FastifyJWT } from '@fastify/jwt'

import { isManagedBy } from '../../lib/auth/permissions.ts'
import { type Batch, BATCH_ROWS, batchOf } from '../../lib/database/batches.ts'
import type { Sql } from '../../lib/database/client.ts'

/** The event, and whether the user may manage it; `undefined` when there is no such event. */
export async function findManagedEvent (sql: Sql, user: FastifyJWT['user'], id: string) {
  const [event] = await sql<{ title: string, date: string, allowed: boolean }[]>`
    SELECT title, iso8601(date) AS date, ${isManagedBy(sql, user)} AS allowed FROM events WHERE id = ${id}
  `
  return event
}

/** A batch of those who are registered for an event. */
export const registrationsOf = (eventId: string): Batch<{ name: string, email: string }> => (sql, { time, id }) =>
  batchOf(sql, sql`
    SELECT
      concat(first_name, ' ', last_name) AS name, email, iso8601(registered_at) AS time, registrations.id,
      octet_length(first_name) + octet_length(last_name) + octet_length(email) AS size
    FROM event_registrations AS registrations JOIN users ON users.id = user_id
    WHERE event_id = ${eventId} AND registered_at <= ${time}::text::timestamptz
      AND (registered_at < ${time}::text::timestamptz OR registrations.id > ${id})
    ORDER BY registered_at DESC, registrations.id
    LIMIT ${BATCH_ROWS}
  `)

interface User {
  email: string
  firstName: string
  lastName: string
  role: string
  club: string | null
}

/** A batch of all users. */
export const allUsers: Batch<User> = (sql, { time, id }) => batchOf(sql, sql`
  SELECT
    email, first_name AS "firstName", last_name AS "lastName", role, clubs.name AS club,
    iso8601(created_at) AS time, users.id,
    octet_length(email) + octet_length(first_name) + octet_length(last_name) + coalesce(octet_length(clubs.name), 0)
      AS size
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE created_at <= ${time}::text::timestamptz
    AND (created_at < ${time}::text::timestamptz OR users.id > ${id})
  ORDER BY created_at DESC, users.id
  LIMIT ${BATCH_ROWS}
`)
