import type { PendingQuery, Row } from 'postgres'

import type { AnySql } from '../database/client.ts'
import { eventColumns, excerpt, registrationCount } from '../database/columns.ts'
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

/** SQL: the place in line from which people take part in a draw that waits; null without one. Needs `event_details`. */
export const drawsFrom = (sql: AnySql) => sql`CASE WHEN drawn_at IS NULL THEN draw_from END`

/** SQL: since when a person is in line; null if the person does not come. Needs `registrations` and `answers`. */
export const inLineSince = (sql: AnySql) => sql`
  CASE WHEN answers.registration_id IS NULL THEN registrations.registered_at ELSE answers.since END
`

/** SQL join: the answers of registrations, or nulls. */
export const withAnswers = (sql: AnySql) => sql`
  LEFT JOIN event_answers AS answers
    ON answers.registration_id = registrations.id AND answers.event_id = registrations.event_id
`

/**
 * SQL join: the numbers of registrations for each event, `registered`, and of its attendees, `coming`. If each column
 * counted for itself, a page of 100 events with 100 registrations each would take 19 ms instead of 10.
 */
export const withCounts = (sql: AnySql) => sql`
  CROSS JOIN LATERAL (
    SELECT registered, registered - declined AS coming
    FROM ${registrationCount(sql)} AS registrations (registered) CROSS JOIN (
      SELECT coalesce(sum(count), 0) AS declined FROM event_decline_counts WHERE event_id = events.id
    ) AS declines
  ) AS counts
`

/**
 * SQL query: the first person without a seat in the line of an event, as `since` and `id` of the registration; no row
 * if nobody waits. The states of all registrations follow from it, see `stateOf`. If the line was numbered instead of
 * read from its index, a change of a seat would take 150 ms instead of 20 while 20,000 people wait.
 */
export const firstWaiting = (sql: AnySql, eventId: PendingQuery<Row[]>) => sql`
  SELECT waiting.since, waiting.registration_id AS id
  FROM event_details CROSS JOIN LATERAL (
    SELECT since, registration_id FROM event_answers
    WHERE event_id = event_details.event_id AND since IS NOT NULL
    ORDER BY since, registration_id OFFSET capacity LIMIT 1
  ) AS behind CROSS JOIN LATERAL (
    SELECT since, registration_id FROM event_answers
    WHERE event_id = event_details.event_id AND since > coalesce(seated_until, '-infinity')
      AND (since, registration_id) >= (behind.since, behind.registration_id)
    ORDER BY since, registration_id LIMIT 1
  ) AS waiting
  WHERE event_details.event_id = ${eventId} AND capacity IS NOT NULL
    AND waiting.since < coalesce(${drawsFrom(sql)}, 'infinity')
`

/** SQL query: the number of people who wait for a seat. Needs `events` and `withDetails`. */
const waitingCount = (sql: AnySql) => sql`
  SELECT count(*) FROM event_answers AS line
  WHERE line.event_id = events.id AND (since, registration_id) >= (${firstWaiting(sql, sql`events.id`)})
    AND since < coalesce(${drawsFrom(sql)}, 'infinity')
`

/** An event with its club and the public details. Needs `clubs`, `withDetails` and `withCounts`. */
export const agendaColumns = (sql: AnySql) => sql`
  ${eventColumns(sql)}, registered AS "registrationCount", coming AS "comingCount",
  iso8601(${endOf(sql)}) AS "endsAt", place, online_url IS NOT NULL AS "hasOnlineUrl", capacity,
  CASE WHEN capacity IS NOT NULL AND ${drawsFrom(sql)} IS NULL THEN greatest(capacity - coming, 0) END AS "seatsLeft",
  CASE WHEN coming > capacity THEN (${waitingCount(sql)}) ELSE 0 END AS "waitingCount",
  iso8601(opens_at) AS "opensAt", iso8601(closes_at) AS "closesAt",
  iso8601(draw_at) AS "drawAt", iso8601(drawn_at) AS "drawnAt"
`

/** An event with its club for calendars, see icalendar.ts. Needs `clubs` and `withDetails`. */
export const calendarColumns = (sql: AnySql, updatedAt = sql`events.updated_at`) => sql`
  events.id, title, ${excerpt(sql, sql`events.description`)} AS description, iso8601(date) AS date,
  iso8601(events.created_at) AS "createdAt", iso8601(${updatedAt}) AS "updatedAt", clubs.name AS club, sequence,
  iso8601(${endOf(sql)}) AS "endsAt", place
`

/** SQL: the facts of an event that emails about changes tell, as jsonb. Needs `clubs` and `withDetails`. */
export const knownEvent = (sql: AnySql) => sql`
  jsonb_build_object(
    'title', events.title, 'date', iso8601(events.date), 'clubId', events.club_id, 'club', clubs.name,
    'endsAt', iso8601(${endOf(sql)}), 'place', place, 'onlineUrl', online_url,
    'drawAt', CASE WHEN drawn_at IS NULL THEN iso8601(draw_at) END
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
 * SQL: an event as jsonb for an email that cancels it for the recipient, because the recipient or the event is removed.
 * `changes` is added to its sequence. Needs `clubs` and `withDetails`.
 */
export const cancelledEvent = (sql: AnySql, changes: number) => sql`
  jsonb_build_object(
    'id', events.id, 'title', events.title, 'date', iso8601(events.date), 'createdAt', iso8601(events.created_at),
    'updatedAt', iso8601(now()), 'club', clubs.name, 'sequence', sequence + ${changes}::integer,
    'endsAt', iso8601(${endOf(sql)}), 'place', place
  )
`
