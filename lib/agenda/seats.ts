import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { AnySql } from '../database/pools.ts'
import { registrationCount } from '../database/columns.ts'
import { runsUntil, withDetails } from './details.ts'

// A seat is derived and never stored. The attendees of an event stand in line, ordered by the time when they last said
// that they come. The first `capacity` of them have a seat. With stored places, a person who declines in front of a
// line of 1,000 people would change 1,000 rows instead of one, and a promotion could be lost. A smaller room takes no
// seat away, because everybody up to `seated_until` keeps their seat. Two rules keep a seat that was seen: nobody
// enters the line before its end (`end_of_line`), and people with a seat are always the first. A draw gives its
// entrants new places behind all others, see draws.ts.

/** Whether a registered person has a seat, waits for a seat, takes part in a draw that waits, or does not come. */
export const SEAT_STATES = ['seated', 'waiting', 'drawing', 'declined'] as const
export type SeatState = typeof SEAT_STATES[number]

/** The seat of a person, as `seatOf` selects it. `position` is the place among waiting people, from 1. */
export interface Seat {
  state: SeatState
  position: number | null
}

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

/** SQL: when a person last said whether they come. Needs `registrations` and `answers`. */
export const answeredAt = (sql: AnySql) => sql`coalesce(answers.answered_at, registrations.registered_at)`

/** SQL condition: whether the person of a registration comes. */
export const comes = (sql: AnySql) => sql`
  NOT EXISTS (SELECT FROM event_answers WHERE registration_id = registrations.id AND since IS NULL)
`

/** SQL: an array of the user ids of the attendees of an event. */
export const comingTo = (sql: AnySql, eventId: PendingQuery<Row[]>) => sql`
  ARRAY(SELECT user_id FROM event_registrations AS registrations WHERE event_id = ${eventId} AND ${comes(sql)})
`

/**
 * SQL query: the first person without a seat in the line of an event, as `since` and `id` of the registration; no row
 * if nobody waits. The states of all registrations follow from it. If the line was numbered instead of read from its
 * index, a change of a seat would take 150 ms instead of 20 while 20,000 people wait. Each registration for an event
 * with a number of seats has a row in `event_answers`, except entrants of a draw that waits (`line_up` in
 * migrations/20261129141000000_draws.sql, `line_up_all` in migrations/20261130100000000_lines.sql).
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
  WHERE event_details.event_id = ${eventId}
    -- Otherwise, the whole line would be read to find that everybody has a seat.
    AND capacity < ${registrationCount(sql, eventId)}
    AND waiting.since < coalesce(${drawsFrom(sql)}, 'infinity')
`

/** SQL: the state of a registration for an event. Needs `registrations` and `answers`. */
export const stateOf = (sql: AnySql, eventId: PendingQuery<Row[]>) => sql`
  CASE
    WHEN ${inLineSince(sql)} IS NULL THEN 'declined'
    WHEN ${inLineSince(sql)} >= (SELECT ${drawsFrom(sql)} FROM event_details WHERE event_id = ${eventId}) THEN 'drawing'
    WHEN (${inLineSince(sql)}, registrations.id) >= (${firstWaiting(sql, eventId)}) THEN 'waiting'
    ELSE 'seated'
  END
`

/**
 * SQL query: every registration for an event with its seat. The columns are `id`, `user_id`, `registered_at`,
 * `answered_at`, `since`, `state` and `position`.
 */
export const seatsOf = (sql: AnySql, eventId: PendingQuery<Row[]>) => sql`
  SELECT *,
    CASE WHEN state = 'waiting' THEN row_number() OVER (PARTITION BY state ORDER BY since, id) END::integer AS position
  FROM (
    SELECT
      registrations.id, user_id, registered_at, ${answeredAt(sql)} AS answered_at, ${inLineSince(sql)} AS since,
      ${stateOf(sql, eventId)} AS state
    FROM event_registrations AS registrations ${withAnswers(sql)}
    WHERE registrations.event_id = ${eventId}
  ) AS line
`

/** SQL: the seat of a registration as jsonb, see `Seat`. Needs `registrations` and `events`. */
const seatOf = (sql: AnySql) => sql`(
  SELECT jsonb_build_object('state', state, 'position', CASE WHEN state = 'waiting' THEN (
    SELECT count(*) FROM event_answers AS line
    WHERE line.event_id = events.id AND (since, registration_id) >= (${firstWaiting(sql, sql`events.id`)})
      AND (since, registration_id) <= (own.since, registrations.id)
  ) END)
  FROM (
    SELECT ${inLineSince(sql)} AS since, ${stateOf(sql, sql`events.id`)} AS state
    FROM (SELECT registrations.*) AS registrations ${withAnswers(sql)}
    OFFSET 0
  ) AS own
)`

/**
 * SQL join: the seat of each registration in the column `seat`. OFFSET makes PostgreSQL read the line of an event once,
 * instead of once for each use of the column.
 */
export const withSeat = (sql: AnySql) => sql`CROSS JOIN LATERAL (SELECT ${seatOf(sql)} AS seat OFFSET 0) AS own`

/** SQL condition: the person with this seat, by default the column of `withSeat`, may get a seat and has none yet. */
export const isTentative = (sql: AnySql, seat = sql`seat`) => sql`
  ${seat} ->> 'state' IN ('waiting', 'drawing')
`

/**
 * SQL: identifies the place of a user in the line of an event; null if the user does not come. A person who comes back
 * or takes part in a draw gets a new one.
 */
export const placeInLine = (
  sql: AnySql, userId: PendingQuery<Row[]>, eventId: PendingQuery<Row[]>
) => sql`(
  SELECT concat(registrations.event_id, ' ', extract(epoch FROM ${inLineSince(sql)}))
  FROM event_registrations AS registrations ${withAnswers(sql)}
  WHERE user_id = ${userId} AND registrations.event_id = ${eventId} AND ${inLineSince(sql)} IS NOT NULL
)`

/** Waits for running registrations for these events, so that the next statement sees them, and blocks new ones. */
export const lockEvents = (sql: TransactionSql, events: PendingQuery<Row[]>) => sql`
  SELECT FROM events WHERE id IN (${events}) ORDER BY id FOR UPDATE
`

/** The lines of events before a change. */
export interface Lines {
  /** The first waiting person of each event, as the row of `firstWaiting`. */
  waiting: { event: string, since: string, id: string }[]
  /** The events that are over, with their ends. */
  over: { id: string, until: string }[]
}

/**
 * Locks events, and returns their lines. Changes at the same time follow one another. Without the lock, two people who
 * declined at the same time passed on two seats, but in 12 of 30 tries, one of the new holders got no email.
 */
export async function lockLines (sql: TransactionSql, events: PendingQuery<Row[]>): Promise<Lines> {
  await lockEvents(sql, events)
  const over = await sql<Lines['over']>`
    SELECT id, ${runsUntil(sql)}::text AS until FROM events ${withDetails(sql)}
    WHERE id IN (${events}) AND ${runsUntil(sql)} <= now()
  `
  const waiting = await sql<Lines['waiting']>`
    SELECT events.id AS event, first.since::text AS since, first.id
    FROM events CROSS JOIN LATERAL (${firstWaiting(sql, sql`events.id`)}) AS first
    WHERE events.id IN (${events})
  `
  return { waiting, over }
}

/**
 * SQL query: the people in these lines that have a seat now, with the columns `event_id` and `user_ids`. Events that
 * are over are left out.
 */
export const newSeats = (sql: AnySql, waiting: Lines['waiting']) => sql`
  SELECT events.id AS event_id, ARRAY(
    SELECT user_id FROM event_answers AS line
      JOIN event_registrations AS registrations ON registrations.id = line.registration_id
    WHERE line.event_id = events.id AND (since, registration_id) >= (first.since::timestamptz, first.id)
      AND ((since, registration_id) < (${firstWaiting(sql, sql`events.id`)})) IS NOT FALSE
      AND since < coalesce(${drawsFrom(sql)}, 'infinity')
    ORDER BY since, registration_id
  ) AS user_ids
  FROM jsonb_to_recordset(${JSON.stringify(waiting)}::text::jsonb) AS first (event uuid, since text, id uuid)
    JOIN events ON events.id = first.event ${withDetails(sql)}
  WHERE ${runsUntil(sql)} > now()
`
