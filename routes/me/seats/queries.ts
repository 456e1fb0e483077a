import type { Static } from '@sinclair/typebox'

import { knownEvent, runsUntil, withDetails } from '../../../lib/agenda/details.ts'
import { agendaColumns, withCounts } from '../../../lib/agenda/fields.ts'
import { comes, isTentative, lockLines, placeInLine, withSeat } from '../../../lib/agenda/seats.ts'
import type { CachedQuery } from '../../../lib/cache/index.ts'
import type { AnySql, Sql } from '../../../lib/database/pools.ts'
import { untriedEmail } from '../../../lib/email/emails.ts'
import { lastAnnounced } from '../../../lib/email/events.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'
import { tellSeats } from '../../../lib/email/enqueue-seats.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { EVENT_OVER, type set } from './schemas.ts'

/** SQL query: the seats of a user, before a WHERE clause continues. */
const seatsOfUser = (sql: AnySql, userId: string) => sql`
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

export const seatsOfUserQuery = (sql: Sql, userId: string): CachedQuery => ({
  list: { field: 'seats', rows: sql`${seatsOfUser(sql, userId)} ORDER BY events.date DESC, registrations.id` },
})

/**
 * Stores whether a registered user comes to an event, and returns the seat; `undefined` without a registration. Throws
 * a 409 if the event is over. Enqueues an email to the person who gets the seat.
 *
 * People who do not come get no emails about the event, except about a new date. So if a person comes after all, an
 * email tells the changes since their last email, or the seat if this email said that they wait. If no email has told
 * them about the event, they get the confirmation.
 */
export function setComing (
  sql: Sql, outbox: Outbox, { userId, eventId, coming }: { userId: string, eventId: string, coming: boolean }
) {
  return sql.begin(async sql => {
    // Before the lock of the line, so that people without a registration do not delay the others.
    const { count } = await sql`
      SELECT FROM event_registrations WHERE user_id = ${userId} AND event_id = ${eventId}
    `
    if (count === 0) return undefined
    // The lock order of an erasure prevents a deadlock.
    await sql`SELECT FROM users WHERE id = ${userId} FOR KEY SHARE`
    const lines = await lockLines(sql, sql`SELECT ${eventId}::uuid`)
    const { count: isOver } = await sql`
      SELECT FROM event_registrations AS registrations JOIN events ON events.id = event_id ${withDetails(sql)}
      WHERE user_id = ${userId} AND registrations.event_id = ${eventId} AND ${runsUntil(sql)} <= now()
    `
    if (isOver) throw new HttpError(409, EVENT_OVER)
    const { count: answers } = await sql`
      INSERT INTO event_answers (registration_id, event_id, since, answered_at)
      SELECT id, event_id, CASE WHEN ${coming} THEN end_of_line(event_id) END, clock_timestamp()
      FROM event_registrations AS registrations
      WHERE user_id = ${userId} AND event_id = ${eventId} AND ${comes(sql)} <> ${coming}
      ON CONFLICT (registration_id) DO UPDATE SET since = excluded.since, answered_at = excluded.answered_at
    `
    const [row] = await sql<{ seat: Static<typeof set.response[200]>['seat'] }[]>`
      SELECT row_to_json(seat) AS seat FROM (${seatsOfUser(sql, userId)} AND events.id = ${eventId}) AS seat
    `
    if (answers > 0 && coming) {
      const { length: promoted } = await sql`${outbox.enqueue('seat', sql`
        SELECT
          ${userId}::uuid AS user_id, ${placeInLine(sql, sql`${userId}`, sql`${eventId}`)} AS key,
          jsonb_build_object('event', ${eventId}::text) AS data
        FROM (${lastAnnounced(sql, sql`${userId}`, sql`${eventId}`)}) AS last
        WHERE ${isTentative(sql, sql`announced -> 'seat'`)} AND ${row!.seat.state === 'seated'}
      `, userId)}`
      if (promoted === 0) {
        await sql`${outbox.enqueue('event-changed', sql`
          SELECT
            ${userId}::uuid AS user_id, NULL AS key,
            jsonb_build_object('event', events.id, 'known', ${knownEvent(sql)}) AS data
          FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)}
          WHERE events.id = ${eventId} AND sequence > 0 AND NOT EXISTS (
            -- The lock keeps senders from claiming it before the commit.
            ${untriedEmail(sql, 'event-changed', sql`${userId}`, sql`${eventId}`)} FOR KEY SHARE SKIP LOCKED
          )
        `, userId)}`
        await sql`${outbox.enqueue('registration', sql`
          SELECT
            ${userId}::uuid AS user_id, ${placeInLine(sql, sql`${userId}`, sql`${eventId}`)} AS key,
            jsonb_build_object('event', ${eventId}::text) AS data
          WHERE NOT EXISTS (${lastAnnounced(sql, sql`${userId}`, sql`${eventId}`)})
        `, userId)}`
      }
    }
    await tellSeats(sql, outbox, lines, userId)
    return row?.seat
  })
}
