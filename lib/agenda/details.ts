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

/** SQL query: the number of registrations for an event, and of its attendees. */
const countsOf = (sql: AnySql) => sql`
  SELECT registered, registered - declined AS coming
  FROM ${registrationCount(sql)} AS registrations (registered) CROSS JOIN (
    SELECT coalesce(sum(count), 0) AS declined FROM event_decline_counts WHERE event_id = events.id
  ) AS declines
`

/** SQL: the number of attendees of an event. */
export const comingCount = (sql: AnySql) => sql`(SELECT coming FROM (${countsOf(sql)}) AS counts)`

/** SQL join: the columns of `countsOf` for each event. */
export const withCounts = (sql: AnySql) => sql`CROSS JOIN LATERAL (${countsOf(sql)}) AS counts`

/** SQL query: the number of people in line without a seat that a smaller room left to them. Needs `withDetails`. */
const cameAfter = (sql: AnySql) => sql`
  (
    SELECT count(*) FROM event_registrations AS registrations ${withAnswers(sql)}
    WHERE registrations.event_id = events.id AND seated_until < ${inLineSince(sql)}
  )
`

/**
 * SQL query: the number of people who wait although they do not take part in the draw that waits, because they came
 * before it was set. Needs `withDetails`.
 */
const waitingBefore = (sql: AnySql) => sql`
  (
    SELECT greatest(least(count(*) - capacity, count(*) FILTER (WHERE (since <= seated_until) IS NOT TRUE)), 0) FROM (
      SELECT ${inLineSince(sql)} AS since FROM event_registrations AS registrations ${withAnswers(sql)}
      WHERE registrations.event_id = events.id AND registered_at < draw_from
    ) AS line
    WHERE since < draw_from
  )
`

/** An event with its club and the public details. Needs `clubs`, `withDetails` and `withCounts`. */
export const agendaColumns = (sql: AnySql) => sql`
  ${eventColumns(sql)}, registered AS "registrationCount", coming AS "comingCount",
  iso8601(${endOf(sql)}) AS "endsAt", place, online_url IS NOT NULL AS "hasOnlineUrl", capacity,
  CASE WHEN capacity IS NOT NULL AND ${drawsFrom(sql)} IS NULL THEN greatest(capacity - coming, 0) END AS "seatsLeft",
  CASE
    WHEN capacity IS NULL OR coming <= capacity THEN 0
    WHEN ${drawsFrom(sql)} IS NOT NULL THEN ${waitingBefore(sql)}
    WHEN seated_until IS NULL THEN coming - capacity
    ELSE least(coming - capacity, ${cameAfter(sql)})
  END AS "waitingCount", iso8601(opens_at) AS "opensAt", iso8601(closes_at) AS "closesAt",
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
