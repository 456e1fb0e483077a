import type { Static } from '@sinclair/typebox'

import { findManagedEvent, isManagedBy, type User } from '../../lib/accounts/permissions.ts'
import { cancellation, knownBefore, knownEvent, runsUntil, withDetails } from '../../lib/agenda/details.ts'
import { comes, lockEvents, lockLines } from '../../lib/agenda/seats.ts'
import type { CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/pools.ts'
import {
  assignments, bytesOf, eventColumns, eventSummary, fullName, pageOf, paginationOf, registrationColumns,
  registrationCount, registrationDetails, rowCount,
} from '../../lib/database/columns.ts'
import { enqueueNews } from '../../lib/email/enqueue-clubs.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { enqueueChange, tellMissed } from '../../lib/email/enqueue-seats.ts'
import { EVENT_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import {
  ALREADY_REGISTERED, type create, type register, REGISTRATION_CLOSED, REGISTRATION_NOT_OPEN, type update,
} from './schemas.ts'

type Event = Static<typeof create.response[201]>['event']
type Registration = Static<typeof register.response[201]>['registration']

export const eventsQuery = (sql: Sql, page: number, limit: number, sort: 'asc' | 'desc'): CachedQuery => ({
  list: {
    field: 'events',
    rows: sql`
      SELECT ${eventColumns(sql)}, ${registrationCount(sql)} AS "registrationCount"
      FROM events JOIN clubs ON clubs.id = club_id
      ORDER BY events.date ${sort === 'asc' ? sql`ASC` : sql`DESC`}, events.id
      ${pageOf(sql, page, limit)}
    `,
  },
  fields: paginationOf(sql, { page, limit }, rowCount(sql, 'events')),
})

/** The events of the user's current club. Without a row if the user does not belong to a club. */
export const eventsOfMemberQuery = (sql: Sql, userId: string): CachedQuery => ({
  list: {
    field: 'events',
    rows: sql`
      SELECT
        ${eventColumns(sql)},
        (
          SELECT coalesce(json_agg(json_build_object('id', id) ORDER BY registered_at DESC, id), '[]')
          FROM event_registrations WHERE event_id = events.id
        ) AS registrations
      FROM events JOIN clubs ON clubs.id = club_id
      WHERE club_id = (SELECT club_id FROM users WHERE id = ${userId})
      ORDER BY events.date DESC, events.id
    `,
  },
  fields: sql`SELECT FROM users WHERE id = ${userId} AND club_id IS NOT NULL`,
})

/**
 * Adds an event to the user's current club, and enqueues an email to its members; `undefined` if the user does not
 * belong to a club.
 */
export async function insertEvent (
  sql: Sql, outbox: Outbox, userId: string,
  { title, description, imageUrl, data }: Static<typeof create.body> & { imageUrl: string }
) {
  const [event] = await sql<Event[]>`
    WITH created AS (
      INSERT INTO events (title, description, image_url, date, club_id)
      SELECT ${title}, ${description}, ${imageUrl}, ${toTimestamp(data)}::timestamptz, club_id
      FROM users WHERE id = ${userId} AND club_id IS NOT NULL
      RETURNING *
    ), emailed AS (${enqueueNews(sql, outbox, sql`SELECT * FROM created`, userId)})
    SELECT ${eventColumns(sql)} FROM created AS events JOIN clubs ON clubs.id = club_id
  `
  return event
}

/**
 * Changes the given fields that are not empty, and returns the event. Throws an HttpError if the event is unknown or
 * the user may not manage it. Enqueues emails to attendees of an event that is not over, and to people who got a seat
 * while its date was in the past.
 */
export function updateEvent (
  sql: Sql, outbox: Outbox, { user, id, changes }: { user: User, id: string, changes: Static<typeof update.body> }
) {
  const { data, clubId } = changes
  return sql.begin(async sql => {
    const lines = await lockLines(sql, sql`SELECT ${id}::uuid`)
    await findManagedEvent(sql, user, id, EVENT_NOT_ALLOWED)
    const [event] = await sql<[Event]>`
      WITH changed AS (
        UPDATE events SET
          ${assignments(sql, changes, ['title', 'description', 'imageUrl'])},
          date = CASE WHEN ${data === undefined} THEN date ELSE ${toTimestamp(data)} END,
          club_id = coalesce(${clubId || null}, club_id)
        WHERE id = ${id}
        RETURNING *
      ), emailed AS (${enqueueChange(sql, outbox, sql`
        SELECT changed.id, ${knownEvent(sql)} AS known
        FROM changed
          JOIN events ON events.id = changed.id AND events.sequence < changed.sequence
          JOIN clubs ON clubs.id = events.club_id
          ${withDetails(sql)}
        WHERE greatest(${runsUntil(sql)}, ${runsUntil(sql, sql`changed.date`)}) > now()
      `, user.id)})
      SELECT ${eventColumns(sql)} FROM changed AS events JOIN clubs ON clubs.id = club_id
    `
    await tellMissed(sql, outbox, lines, user.id)
    return event
  })
}

/**
 * Deletes the event with its registrations. Throws an HttpError like `updateEvent`. Enqueues emails to attendees of an
 * event that is not over.
 */
export function deleteEvent (sql: Sql, outbox: Outbox, user: User, id: string) {
  return sql.begin(async sql => {
    await lockEvents(sql, sql`SELECT ${id}::uuid`)
    await findManagedEvent(sql, user, id, 'Not allowed to delete this event')
    // Messages about the event are sent even if it is deleted.
    await sql`
      UPDATE event_messages SET event_id = NULL, event_title = title
      FROM events WHERE events.id = ${id} AND event_id = events.id
    `
    await sql`
      WITH registrations AS (
        DELETE FROM event_registrations WHERE event_id = ${id} RETURNING id, user_id
      ), deleted AS (
        DELETE FROM events WHERE id = ${id}
      )
      ${outbox.enqueueBatch('event-cancelled', sql`
        SELECT NULL AS key, NULL::uuid AS event_id, ${cancellation(sql, 1)} AS data, user_ids
        FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} CROSS JOIN LATERAL (
          SELECT known, array_agg(user_id) AS user_ids
          FROM registrations LEFT JOIN (${knownBefore(sql, sql`${id}`)}) AS before USING (user_id)
          WHERE ${comes(sql)} GROUP BY known
        ) AS recipients
        WHERE events.id = ${id} AND (${runsUntil(sql)} > now() OR known IS NOT NULL)
      `, user.id)}
    `
  })
}

/**
 * Registers the user and enqueues a confirmation; `undefined` if the user is already registered, or registration is not
 * open. Triggers count the registration (`count_event_registrations` in migrations/20261120000007000_counts.sql) and
 * give the user a place in line (`line_up` in migrations/20261129141000000_draws.sql).
 */
export async function insertRegistration (sql: Sql, outbox: Outbox, userId: string, eventId: string) {
  const [registration] = await sql<Registration[]>`
    WITH registrations AS (
      INSERT INTO event_registrations (user_id, event_id) SELECT ${userId}::uuid, ${eventId}::uuid
      WHERE NOT EXISTS (
        SELECT FROM event_details WHERE event_id = ${eventId}
          AND (opens_at > statement_timestamp() OR closes_at <= statement_timestamp())
      )
      ON CONFLICT (user_id, event_id) DO NOTHING
      RETURNING *
    ), emailed AS (${outbox.enqueue('registration', sql`
      SELECT user_id, jsonb_build_object('event', event_id) AS data, id::text AS key FROM registrations
    `, userId)})
    SELECT ${registrationColumns(sql)}, ${registrationDetails(sql)}
    FROM registrations
      JOIN events ON events.id = event_id
      JOIN users ON users.id = user_id
  `
  return registration
}

/** Why `insertRegistration` has not registered a user. */
export async function findRefusal (sql: Sql, userId: string, eventId: string) {
  const [window] = await sql<{ isClosed: boolean }[]>`
    SELECT coalesce(closes_at <= statement_timestamp(), false) AS "isClosed" FROM event_details
    WHERE event_id = ${eventId} AND (opens_at > statement_timestamp() OR closes_at <= statement_timestamp())
      AND NOT EXISTS (SELECT FROM event_registrations WHERE user_id = ${userId} AND event_id = ${eventId})
  `
  // Without a row, the user was registered, perhaps until just now.
  if (!window) return ALREADY_REGISTERED
  return window.isClosed ? REGISTRATION_CLOSED : REGISTRATION_NOT_OPEN
}

export const registrationsOfUserQuery = (sql: Sql, userId: string): CachedQuery => ({
  list: {
    field: 'registrations',
    rows: sql`
      SELECT
        ${registrationColumns(sql)},
        (SELECT row_to_json(event) FROM (SELECT ${eventColumns(sql)}) AS event) AS event
      FROM event_registrations AS registrations
        JOIN events ON events.id = event_id
        JOIN clubs ON clubs.id = club_id
      WHERE user_id = ${userId}
      ORDER BY events.date DESC, registrations.id
    `,
  },
})

/** The registrations for an event. Without a row if the event is unknown or the user may not manage it. */
export const registrationsOfEventQuery = (sql: Sql, user: User, id: string): CachedQuery => {
  const found = sql`
    event_registrations AS registrations
      JOIN events ON events.id = event_id
      JOIN users ON users.id = user_id
    WHERE event_id = ${id} AND ${isManagedBy(sql, user)}
  `
  return {
    list: {
      field: 'registrations',
      rows: sql`
        SELECT
          registrations.id, user_id AS "userId", ${fullName(sql)} AS name, email,
          iso8601(registered_at) AS "registeredAt"
        FROM ${found}
        ORDER BY registered_at DESC, registrations.id
      `,
      keys: sql`
        SELECT registrations.id, registered_at AS at, ${bytesOf(sql, 'first_name', 'last_name', 'email')} AS size
        FROM ${found}
      `,
    },
    fields: sql`SELECT ${eventSummary(sql)} AS event FROM events WHERE id = ${id} AND ${isManagedBy(sql, user)}`,
  }
}

/** Parses a date like JavaScript. An invalid date becomes null, which the column refuses. */
function toTimestamp (data?: string) {
  const date = new Date(data ?? NaN)
  return isNaN(date.getTime()) ? null : date.toISOString()
}
