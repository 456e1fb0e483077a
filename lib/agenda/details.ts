import type { PendingQuery, Row } from 'postgres'

import type { AnySql } from '../database/pools.ts'
import { excerpt } from '../database/columns.ts'
import { DURATION } from './icalendar.ts'

/** SQL join: the details of each event, or nulls. LIMIT makes PostgreSQL look them up instead of reading the table. */
export const withDetails = (sql: AnySql) => sql`
  LEFT JOIN LATERAL (SELECT * FROM event_details WHERE event_id = events.id LIMIT 1) AS event_details ON true
`

/** SQL: the end of an event; null if it has none. Needs `withDetails`. */
export const endOf = (sql: AnySql, date = sql`events.date`) => sql`
  CASE WHEN duration_ms IS NOT NULL
    THEN least(${date} + duration_ms * interval '1 millisecond', '9999-12-31 23:59:59.999+00')
  END
`

/** SQL: until when an event runs. Without an end, it lasts as long as in calendars. Needs `withDetails`. */
export const runsUntil = (sql: AnySql, date = sql`events.date`) => sql`
  coalesce(${endOf(sql, date)}, ${date} + ${DURATION}::interval)
`

/** SQL: the title of an event in calendars and emails. */
const titleOf = (sql: AnySql) => excerpt(sql, sql`events.title`)

/**
 * An event with its club for calendars and emails, see icalendar.ts. Needs `clubs` and `withDetails`. A title of 250 KB
 * would take 20 ms in a calendar, and 50 to 145 ms in an email.
 */
export const calendarColumns = (sql: AnySql, updatedAt = sql`events.updated_at`) => sql`
  events.id, ${titleOf(sql)} AS title, ${excerpt(sql, sql`events.description`)} AS description, iso8601(date) AS date,
  iso8601(events.created_at) AS "createdAt", iso8601(${updatedAt}) AS "updatedAt", clubs.name AS club, sequence,
  iso8601(${endOf(sql)}) AS "endsAt", place
`

/** SQL: when the seats will be drawn; null without a draw that waits. Needs `withDetails`. */
export const waitingDraw = (sql: AnySql) => sql`CASE WHEN drawn_at IS NULL THEN iso8601(draw_at) END`

/** SQL: the facts of an event that emails about changes tell, as jsonb. Needs `clubs` and `withDetails`. */
export const knownEvent = (sql: AnySql) => sql`
  jsonb_build_object(
    'at', iso8601(clock_timestamp()),
    'title', ${titleOf(sql)}, 'date', iso8601(events.date), 'clubId', events.club_id, 'club', clubs.name,
    'endsAt', iso8601(${endOf(sql)}), 'place', place, 'onlineUrl', online_url,
    'opensAt', iso8601(opens_at), 'closesAt', iso8601(closes_at), 'drawAt', ${waitingDraw(sql)}
  )
`

/**
 * SQL query: what users of a waiting or recent change email knew before the change, with the columns `user_id` and
 * `known` (jsonb), one row per user. An email that cancels an event names the date that its recipient knows.
 */
export const knownBefore = (sql: AnySql, eventId: PendingQuery<Row[]>) => sql`
  SELECT DISTINCT ON (user_id) user_id, data -> 'known' AS known
  FROM email_batches CROSS JOIN unnest(user_ids) AS user_id
  WHERE template = 'event-changed' AND event_id = ${eventId}
  ORDER BY user_id, due_at
`

/**
 * SQL: the data, as jsonb, of an email that cancels an event for the recipient, because the recipient or the event is
 * removed. `changes` is added to its sequence. Needs `clubs`, `withDetails`, and `known` of `knownBefore`, or null.
 */
export const cancellation = (sql: AnySql, changes: number) => sql`
  jsonb_strip_nulls(jsonb_build_object('known', known)) || jsonb_build_object('event', jsonb_build_object(
    'id', events.id, 'title', ${titleOf(sql)}, 'date', iso8601(events.date), 'createdAt', iso8601(events.created_at),
    'updatedAt', iso8601(now()), 'club', clubs.name, 'sequence', sequence + ${changes}::integer,
    'endsAt', iso8601(${endOf(sql)}), 'place', place
  ))
`
