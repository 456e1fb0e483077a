import { Type } from '@sinclair/typebox'

import type { AnySql } from '../database/pools.ts'
import { eventColumns, registrationCount } from '../database/columns.ts'
import {
  ClubCard, Count, Enum, eventFields, NullableCount, NullableDateTime, NullableString, ResponseObject,
} from '../values/schemas.ts'
import { endOf } from './details.ts'
import { drawsFrom, firstWaiting, SEAT_STATES } from './seats.ts'

/** A time before the event of the examples. */
const BEFORE = '2030-01-24T12:00:00.000Z'

/** The fields of an event with its public details; `agendaColumns` selects them. */
export const agendaFields = {
  ...eventFields,
  club: ClubCard,
  registrationCount: Count,
  comingCount: Count,
  endsAt: NullableString({ format: 'date-time', examples: ['2030-01-31T11:30:00.000Z'] }),
  place: NullableString({ examples: ['Library, room B12'] }),
  hasOnlineUrl: Type.Boolean({ description: 'Whether people with a seat can take part online.' }),
  capacity: NullableCount('The number of seats; `null` for no limit.'),
  seatsLeft: NullableCount('The number of free seats; `null` for no limit, and until the seats are drawn.'),
  waitingCount: Type.Integer({ description: 'The number of people who wait for a seat.', examples: [0] }),
  opensAt: NullableDateTime('When registration opens; `null` if it always was.', BEFORE),
  closesAt: NullableDateTime('When registration closes; `null` if it never does.', BEFORE),
  drawAt: NullableDateTime('When the seats are to be drawn; `null` without a draw.', BEFORE),
  drawnAt: NullableDateTime('When the seats were drawn; `null` until then.', BEFORE),
}

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

/** SQL query: the number of people who wait for a seat. Needs `events` and `withDetails`. */
const waitingCount = (sql: AnySql) => sql`
  SELECT count(*) FROM event_answers AS line
  WHERE line.event_id = events.id AND (since, registration_id) >= (${firstWaiting(sql, sql`events.id`)})
    AND since < coalesce(${drawsFrom(sql)}, 'infinity')
`

/** SQL: the columns of `agendaFields`. Needs `clubs`, `withDetails` and `withCounts`. */
export const agendaColumns = (sql: AnySql) => sql`
  ${eventColumns(sql)}, registered AS "registrationCount", coming AS "comingCount",
  iso8601(${endOf(sql)}) AS "endsAt", place, online_url IS NOT NULL AS "hasOnlineUrl", capacity,
  CASE WHEN capacity IS NOT NULL AND ${drawsFrom(sql)} IS NULL THEN greatest(capacity - coming, 0) END AS "seatsLeft",
  CASE WHEN coming > capacity THEN (${waitingCount(sql)}) ELSE 0 END AS "waitingCount",
  iso8601(opens_at) AS "opensAt", iso8601(closes_at) AS "closesAt",
  iso8601(draw_at) AS "drawAt", iso8601(drawn_at) AS "drawnAt"
`

export const AgendaEvent = ResponseObject(agendaFields, { title: 'AgendaEvent' })

/** The fields of a seat. */
export const seatFields = {
  state: Enum(SEAT_STATES, {
    description: '`seated`, `waiting` for a seat, `drawing`: takes part in the draw of seats, or `declined`: the ' +
      'person does not come.',
  }),
  position: NullableCount('The place among the people who wait, from 1; `null` if the person does not wait.'),
}
