import { FORMER_MEMBER } from '../../lib/accounts/erasure.ts'
import { answeredAt, stateOf, withAnswers } from '../../lib/agenda/seats.ts'
import { bytesOf, untrimmedName } from '../../lib/database/columns.ts'
import { type ReadBatch, nextRows } from '../../lib/database/keyset.ts'

/** Returns batches of the people who registered for an event. */
export const registrantsOf = (eventId: string): ReadBatch<object> => (sql, last) => nextRows(sql, last, sql`
  SELECT
    registered_at AS at, registrations.id, ${untrimmedName(sql)} AS name, email,
    ${stateOf(sql, sql`${eventId}`)} AS state, iso8601(${answeredAt(sql)}) AS "answeredAt",
    ${bytesOf(sql, 'first_name', 'last_name', 'email')} AS size
  FROM event_registrations AS registrations
    ${withAnswers(sql)}
    JOIN users ON users.id = registrations.user_id
  WHERE registrations.event_id = ${eventId}
`)

/** A batch of users. */
export const allUsers: ReadBatch<object> = (sql, last) => nextRows(sql, last, sql`
  SELECT
    created_at AS at, users.id, email, first_name AS "firstName", last_name AS "lastName", role, clubs.name AS club,
    ${bytesOf(sql, 'email', 'first_name', 'last_name', 'clubs.name')} AS size
  FROM users LEFT JOIN clubs ON clubs.id = club_id
  WHERE email <> ${FORMER_MEMBER.email}
`)
