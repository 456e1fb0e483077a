import type { Static } from '@sinclair/typebox'

import { agendaColumns, withCounts, withDetails } from '../../../lib/agenda/details.ts'
import { comes, withSeat } from '../../../lib/agenda/seats.ts'
import type { Body, CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/client.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'
import { changeSeats } from '../../../lib/email/seats.ts'
import type { list, set } from './schemas.ts'

/** SQL query: the seats of a user, before a WHERE clause continues. */
const seatsOfUser = (sql: Sql, userId: string) => sql`
  SELECT
    registrations.id AS "registrationId", iso8601(registered_at) AS "registeredAt",
    seat ->> 'state' AS state, (seat ->> 'position')::integer AS position,
    CASE WHEN seat ->> 'state' = 'seated' THEN online_url END AS "onlineUrl",
    (SELECT row_to_json(event) FROM (SELECT ${agendaColumns(sql)}) AS event) AS event
  FROM event_registrations AS registrations
    JOIN events ON events.id = registrations.event_id
    JOIN clubs ON clubs.id = club_id
    ${withDetails(sql)}
    ${withCounts(sql)}
    ${withSeat(sql)}
  WHERE user_id = ${userId}
`

export const seatsOfUserQuery = (sql: Sql, userId: string): CachedQuery<Body<typeof list>> => ({
  list: { field: 'seats', rows: sql`${seatsOfUser(sql, userId)} ORDER BY events.date DESC, registrations.id` },
})

/**
 * Stores whether a registered user comes to an event, and returns the seat; `undefined` without a registration.
 * Enqueues an email to the person who gets the seat.
 */
export function setComing (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>,
  { userId, eventId, coming }: { userId: string, eventId: string, coming: boolean }
) {
  const seats = { events: sql`SELECT ${eventId}::uuid`, cause: userId }
  return sql.begin(transaction => changeSeats(sql, transaction, outbox, seats, async () => {
    await transaction`
      INSERT INTO event_answers (registration_id, event_id, since)
      SELECT id, event_id, CASE WHEN ${coming} THEN end_of_line(event_id) END
      FROM event_registrations AS registrations
      WHERE user_id = ${userId} AND event_id = ${eventId} AND ${comes(sql)} <> ${coming}
      ON CONFLICT (registration_id) DO UPDATE SET since = excluded.since
    `
    const [row] = await transaction<{ seat: Static<typeof set.response[200]>['seat'] }[]>`
      SELECT row_to_json(seat) AS seat FROM (${seatsOfUser(sql, userId)} AND events.id = ${eventId}) AS seat
    `
    return row?.seat
  }))
}
