import { FORMER_MEMBER } from '../../lib/accounts/erasure.ts'
import { withAnswers } from '../../lib/agenda/details.ts'
import { answeredAt, firstWaiting, type SeatState, stateBefore } from '../../lib/agenda/seats.ts'
import { untrimmedName } from '../../lib/database/columns.ts'
import { type KeysetPosition, type ReadBatch, nextRows } from '../../lib/database/keyset.ts'

interface Registration {
  name: string
  email: string
  state: SeatState
  /** Null for an answer of version 1.0.0. */
  answeredAt: string | null
  /** The first waiting person, see `firstWaiting`; null if nobody does. */
  waitingSince: string | null
  waitingId: string | null
}

/** Batches of registrations for an event. Only the first batch reads the line of the event, which may be long. */
export function registrationsOf (eventId: string): ReadBatch<Registration> {
  let known: Registration | undefined
  return async (sql, last) => {
    const waiting = known
      ? sql`SELECT ${known.waitingSince}::text::timestamptz AS since, ${known.waitingId}::uuid AS id`
      : firstWaiting(sql, sql`${eventId}`)
    const rows = await nextRows<Registration & KeysetPosition>(sql, last, sql`
      SELECT
        registered_at AS at, registrations.id, ${untrimmedName(sql)} AS name, email,
        ${stateBefore(sql, sql`${eventId}`, sql`waiting.since`, sql`waiting.id`)} AS state,
        iso8601(${answeredAt(sql)}) AS "answeredAt",
        waiting.since::text AS "waitingSince", waiting.id AS "waitingId",
        octet_length(first_name) + octet_length(last_name) + octet_length(email) AS size
      FROM event_registrations AS registrations
        ${withAnswers(sql)}
        JOIN users ON users.id = registrations.user_id
        LEFT JOIN (${waiting}) AS waiting ON true
      WHERE registrations.event_id = ${eventId}
    `)
    known ??= rows[0]
    return rows
  }
}

interface User {
  email: string
  firstName: string
  lastName: string
  role: string
  club: string | null
}

/** A batch of users. */
export const allUsers: ReadBatch<User> = (sql, last) => nextRows(sql, last, sql`
  SELECT
    created_at AS at, users.id, email, first_name AS "firstName", last_name AS "lastName", role, clubs.name AS club,
    octet_length(email) + octet_length(first_name) + octet_length(last_name) + coalesce(octet_length(clubs.name), 0)
      AS size
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE email <> ${FORMER_MEMBER.email}
`)
