import type { Static } from '@sinclair/typebox'
import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { findManagedEvent, isManagedBy, type User } from '../../lib/accounts/permissions.ts'
import {
  agendaColumns, cancelledEvent, knownBefore, knownEvent, runsUntil, withCounts, withDetails,
} from '../../lib/agenda/details.ts'
import { comes, lockLines, seatsOf } from '../../lib/agenda/seats.ts'
import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import { fullName, registeredFor, toColumns } from '../../lib/database/columns.ts'
import { arrayOf, type Attempt, createOnce } from '../../lib/database/idempotency.ts'
import { cursorAfter, type KeysetPosition } from '../../lib/database/keyset.ts'
import { CHANGES } from '../../lib/email/batches.ts'
import { isNotified, reachOf } from '../../lib/email/notifications.ts'
import { enqueueNews } from '../../lib/email/news.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { tellMissed, tellSeats } from '../../lib/email/seats.ts'
import { HttpError, validationError } from '../../lib/http/errors.ts'
import { isUuid } from '../../lib/values/formats.ts'
import { EVENT_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import {
  type copy, type create, type get, type list, type listSeats, STORED_DETAILS, type update,
} from './schemas.ts'

type ManagedEvent = Static<typeof update.response[200]>['event']

interface Agenda {
  /** Only events of these clubs. */
  clubs: string[] | null
  /** Only events that end after this time. */
  from: string
  /** Only events that begin before this time. */
  to: string | null
  limit: number
  /** Only events after this position. */
  after: KeysetPosition | null
}

/** A page of events, earliest first. */
export function agendaQuery (
  sql: Sql, { clubs, from, to, limit, after }: Agenda
): CachedQuery<Body<typeof list>> {
  const conditions = sql`
    ${runsUntil(sql)} > ${from} AND (${to}::timestamptz IS NULL OR events.date < ${to})
    ${clubs === null ? sql`` : sql`AND events.club_id = ANY (${arrayOf(clubs.filter(isUuid))}::uuid[])`}
    ${after === null ? sql`` : sql`AND (events.date, events.id) > (${after.time}::text::timestamptz, ${after.id})`}
  `
  const dayBefore = sql`${from}::text::timestamptz - interval '24 hours'`
  // One row more than the page tells whether there is a next page. An index finds what began within the last day. Of
  // the events before, only those of several days may still run.
  const page = sql`
    SELECT id, date AS at FROM (
      (
        SELECT events.id, events.date FROM events ${withDetails(sql)}
        WHERE events.date > ${dayBefore} AND ${conditions} ORDER BY events.date, events.id LIMIT ${limit + 1}
      ) UNION ALL (
        SELECT events.id, events.date FROM event_details JOIN events ON events.id = event_id
        WHERE duration_ms > 86400000 AND events.date <= ${dayBefore} AND ${conditions}
      )
    ) AS found ORDER BY date, id
  `
  return {
    list: {
      field: 'events',
      rows: sql`
        SELECT ${agendaColumns(sql)}
        FROM (${page} LIMIT ${limit}) AS page
          JOIN events USING (id) JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
        ORDER BY events.date, events.id
      `,
    },
    fields: sql`
      SELECT (
        SELECT CASE WHEN lead(id) OVER following IS NOT NULL THEN ${cursorAfter(sql, sql`at`, sql`id`)} END
        FROM (${page} LIMIT ${limit + 1}) AS page WINDOW following AS (ORDER BY at, id)
        ORDER BY at, id LIMIT 1 OFFSET ${limit - 1}
      ) AS next
    `,
  }
}

/** An event with its public details. Without a row for an unknown event. */
export const agendaEventQuery = (sql: Sql, id: string): CachedQuery<Body<typeof get>> => ({
  fields: sql`
    SELECT row_to_json(event) AS event FROM (
      SELECT ${agendaColumns(sql)}
      FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
      WHERE events.id = ${id}
    ) AS event
  `,
})

/** SQL query: an event with all details as JSON in the column `event`, if the user may manage it. */
const managedEvent = (sql: Sql, user: User, id: string) => sql`
  SELECT row_to_json(event) AS event FROM (
    SELECT ${agendaColumns(sql)}, online_url AS "onlineUrl"
    FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
    WHERE events.id = ${id} AND ${isManagedBy(sql, user)}
  ) AS event
`

/**
 * Who comes to an event. Without a row if the event is unknown or the user may not manage it. Without email, nobody can
 * be reached.
 */
export const seatsQuery = (
  sql: Sql, user: User, id: string, hasEmail: boolean
): CachedQuery<Body<typeof listSeats>> => ({
  list: {
    field: 'seats',
    rows: sql`
      SELECT
        seats.id AS "registrationId", users.id AS "userId", ${fullName(sql)} AS name, email,
        iso8601(registered_at) AS "registeredAt", state, position,
        ${hasEmail}::boolean AND ${isNotified(sql, 'event-message')} AS "isReached"
      FROM (${seatsOf(sql, sql`${id}`)}) AS seats JOIN users ON users.id = seats.user_id
      WHERE EXISTS (SELECT FROM events WHERE events.id = ${id} AND ${isManagedBy(sql, user)})
      ORDER BY since, seats.id
    `,
  },
  fields: sql`
    SELECT managed.event, ${hasEmail
      ? reachOf(sql, 'event-cancelled', sql`${id}`)
      : sql`json_build_object('reached', 0, 'notReached', managed.event -> 'comingCount')`} AS cancellation
    FROM (${managedEvent(sql, user, id)}) AS managed
  `,
})

/**
 * Adds an event with its details to the user's current club, and only one if requests have the same key. Throws an
 * HttpError if the user does not belong to a club, the event would end before its start, or registration would close
 * before it opens.
 */
export function insertEvent (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>, user: User, event: Static<typeof create.body>,
  attempt: Attempt | undefined
) {
  const { title, description, imageUrl, date, endsAt = null } = event
  const details = { ...toColumns(event, STORED_DETAILS), duration_ms: durationOf(new Date(date), endsAt) }
  checkWindow(event)
  return sql.begin(async transaction => {
    const [created] = await createOnce(transaction, attempt, async () => {
      const [row] = await transaction<{ id: string }[]>`
        INSERT INTO events (title, description, image_url, date, club_id)
        SELECT ${title}, ${description}, ${imageUrl}, ${new Date(date).toISOString()}::text::timestamptz, club_id
        FROM users WHERE id = ${user.id} AND club_id IS NOT NULL
        RETURNING id
      `
      if (!row) throw new HttpError(400, 'You must be a club head to create an event')
      await transaction`INSERT INTO event_details ${sql({ event_id: row.id, ...details })}`
      await transaction`${enqueueNews(sql, outbox, sql`SELECT * FROM events WHERE id = ${row.id}`, user.id)}`
      return [row]
    }, ([id]) => transaction<{ id: string }[]>`SELECT id FROM events WHERE id = ${id!}`)
    return readManaged(sql, transaction, user, created!.id)
  })
}

/** An event before a change. */
interface Known {
  date: Date
  sequence: number
  until: string
  duration_ms: number | null
  place: string | null
  online_url: string | null
  capacity: number | null
  opensAt: Date | null
  closesAt: Date | null
  event: object
}

/**
 * Changes the given fields of an event, and returns the event. Throws an HttpError if the event is unknown, the user
 * may not manage it, it would end before its start, or registration would close before it opens. Enqueues emails to
 * attendees about a new title, date, end, place or online link, and to people who get a seat.
 */
export function changeEvent (
  sql: Sql, outbox: Pick<Outbox, 'enqueue' | 'enqueueBatch'>,
  { user, id, changes }: { user: User, id: string, changes: Static<typeof update.body> }
) {
  const { endsAt, date } = changes
  const eventColumns = toColumns(changes, ['title', 'description', 'imageUrl', 'date'])
  return sql.begin(async transaction => {
    const lines = await lockLines(transaction, sql`SELECT ${id}::uuid`)
    await findManagedEvent(transaction, user, id, EVENT_NOT_ALLOWED)
    const [known] = await transaction<[Known]>`
      SELECT
        date, sequence, ${runsUntil(sql)}::text AS until, duration_ms::float, place, online_url, capacity,
        opens_at AS "opensAt", closes_at AS "closesAt", ${knownEvent(sql)} AS event
      FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} WHERE events.id = ${id}
    `
    const columns = {
      ...toColumns(changes, STORED_DETAILS),
      ...endsAt !== undefined && { duration_ms: durationOf(new Date(date ?? known.date), endsAt) },
      event_id: id,
    }
    checkWindow({ ...known, ...changes })
    const next = { ...known, ...columns }
    const isNews = (['duration_ms', 'place', 'online_url'] as const).some(column => next[column] !== known[column])
    // Before the capacity changes, because `seatsOf` reads it.
    if (next.capacity !== known.capacity) {
      await transaction`
        INSERT INTO event_details AS details (event_id, seated_until)
        SELECT ${id}, max(since) FROM (${seatsOf(sql, sql`${id}::uuid`)}) AS seats WHERE state = 'seated'
        ON CONFLICT (event_id) DO UPDATE SET seated_until = coalesce(excluded.seated_until, details.seated_until)
      `
    }
    await transaction`
      INSERT INTO event_details ${sql(columns)} ON CONFLICT (event_id) DO UPDATE SET ${sql(columns)}
    `
    // A trigger counts changes of the title and the date.
    if (Object.keys(eventColumns).length > 0) await transaction`UPDATE events SET ${sql(eventColumns)} WHERE id = ${id}`
    await transaction`
      WITH changed AS (
        UPDATE events SET sequence = ${known.sequence + 1}
        WHERE id = ${id} AND (sequence > ${known.sequence} OR ${isNews})
        RETURNING *
      )
      ${outbox.enqueueBatch('event-changed', sql`
        SELECT
          id::text AS key, id AS event_id,
          jsonb_build_object('event', id, 'known', ${JSON.stringify(known.event)}::text::jsonb) AS data,
          ${registeredFor(sql, sql`events.id`)} AS user_ids
        FROM changed AS events ${withDetails(sql)}
        WHERE greatest(${known.until}::text::timestamptz, ${runsUntil(sql)}) > now()
      `, user.id, CHANGES)}
    `
    await tellSeats(transaction, outbox, lines, user.id)
    await tellMissed(transaction, outbox, lines, user.id)
    return readManaged(sql, transaction, user, id)
  })
}

/** Returns an event. Throws an HttpError if it is unknown or the user may not manage it. */
async function readManaged (sql: Sql, transaction: TransactionSql, user: User, id: string) {
  const [row] = await transaction<{ event: ManagedEvent }[]>`${managedEvent(sql, user, id)}`
  // The user of a repeated request may have left the club.
  if (!row) throw new HttpError(403, EVENT_NOT_ALLOWED)
  return row.event
}

/** The duration of an event in milliseconds. Throws a validation error for an end that is not after the start. */
function durationOf (start: Date, endsAt: string | null) {
  if (endsAt === null) return null
  const duration = new Date(endsAt).getTime() - start.getTime()
  if (duration <= 0) throw validationError('endsAt', 'must be after the start of the event')
  return duration
}

/** Throws a validation error if registration would close before it opens. */
function checkWindow ({ opensAt, closesAt }: { opensAt?: Date | string | null, closesAt?: Date | string | null }) {
  if (!opensAt || !closesAt || new Date(opensAt) < new Date(closesAt)) return
  throw validationError('closesAt', 'must be after registration opens')
}

/** A copy of an event: when it begins, and its duration in milliseconds unless it lasts as long as the event. */
interface EventCopy {
  date: string
  duration: number | null
}

type CopiedEvent = Static<typeof copy.response[201]>['events'][number]

/**
 * Adds copies of an event, and only once if requests have the same key. Returns them, earliest first. All details are
 * copied, but not who had a seat. Throws an HttpError if the event is unknown or the user may not manage it.
 */
export function insertCopies (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>,
  { user, id, copies, timeZone, attempt }: {
    user: User, id: string, copies: EventCopy[], timeZone: string, attempt: Attempt | undefined,
  }
) {
  /** A time of the event, moved to its copy. It stays at the same local time when clocks change. */
  const moved = (time: PendingQuery<Row[]>) => sql`(
    ${time} AT TIME ZONE ${timeZone}
      + (copied.date AT TIME ZONE ${timeZone} - (SELECT date FROM events WHERE id = ${id}) AT TIME ZONE ${timeZone})
  ) AT TIME ZONE ${timeZone}`
  return sql.begin(async transaction => {
    const created = await createOnce(transaction, attempt, async () => {
      await transaction`SELECT FROM events WHERE id = ${id} FOR KEY SHARE`
      await findManagedEvent(transaction, user, id, EVENT_NOT_ALLOWED)
      return transaction<{ id: string }[]>`
        WITH copies AS (
          SELECT * FROM jsonb_to_recordset(${JSON.stringify(copies)}::text::jsonb)
            AS copy (date timestamptz, duration bigint)
        ), copied AS (
          INSERT INTO events (title, description, image_url, date, club_id)
          SELECT title, description, image_url, copies.date, club_id
          FROM events CROSS JOIN copies WHERE events.id = ${id}
          RETURNING *
        ), emailed AS (${enqueueNews(sql, outbox, sql`SELECT * FROM copied`, user.id)}), detailed AS (
          INSERT INTO event_details
          SELECT copy.* FROM copied JOIN copies USING (date) LEFT JOIN event_details AS details ON event_id = ${id}
            CROSS JOIN LATERAL jsonb_populate_record(details, jsonb_build_object(
              'event_id', copied.id, 'seated_until', NULL, 'duration_ms', coalesce(duration, duration_ms),
              'opens_at', ${moved(sql`opens_at`)}, 'closes_at', ${moved(sql`closes_at`)}
            )) AS copy
          WHERE details.event_id IS NOT NULL OR duration IS NOT NULL
        )
        SELECT id FROM copied
      `
    }, ids => transaction<{ id: string }[]>`
      SELECT id FROM events WHERE id = ANY (${arrayOf(ids)}::uuid[])
    `)
    // Copies of a long text would be 13 MB of rows.
    const rows = await transaction<{ event: Omit<CopiedEvent, 'description'>, changed: string | null }[]>`
      SELECT
        to_jsonb(event) - '{description,position}'::text[] AS event,
        nullif(description, lag(description) OVER (ORDER BY position)) AS changed
      FROM (
        SELECT ${agendaColumns(sql)}, row_number() OVER (ORDER BY events.date, events.id) AS position
        FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
        WHERE events.id = ANY (${arrayOf(created.map(({ id }) => id))}::uuid[])
      ) AS event
      ORDER BY position
    `
    let description = ''
    return rows.map(({ event, changed }) => {
      description = changed ?? description
      return { ...event, description }
    })
  })
}

/**
 * Deletes a registration. Throws an HttpError if it is unknown or the user may not manage its event. Enqueues an email
 * to the person, unless the event is over or they do not come, and to the person who gets the seat.
 */
export function removeSeat (
  sql: Sql, outbox: Pick<Outbox, 'enqueue' | 'enqueueBatch'>,
  { user, id, registrationId }: { user: User, id: string, registrationId: string }
) {
  return sql.begin(async transaction => {
    // The lock order of an erasure prevents a deadlock.
    await transaction`
      SELECT FROM users WHERE id = (SELECT user_id FROM event_registrations WHERE id = ${registrationId}) FOR KEY SHARE
    `
    const lines = await lockLines(transaction, sql`SELECT ${id}::uuid`)
    await findManagedEvent(transaction, user, id, EVENT_NOT_ALLOWED)
    const [removed] = await transaction`
      WITH registrations AS (
        DELETE FROM event_registrations WHERE id = ${registrationId} AND event_id = ${id} RETURNING *
      ), emailed AS (${outbox.enqueue('seat-removed', sql`
        SELECT
          user_id, registrations.id::text AS key,
          jsonb_strip_nulls(jsonb_build_object('known', known))
            || jsonb_build_object('event', ${cancelledEvent(sql, 0)}) AS data
        FROM registrations JOIN events ON events.id = event_id JOIN clubs ON clubs.id = club_id ${withDetails(sql)}
          LEFT JOIN (${knownBefore(sql, sql`${id}`)}) AS before USING (user_id)
        WHERE ${comes(sql)} AND (${runsUntil(sql)} > now() OR known IS NOT NULL)
      `, user.id)})
      SELECT id FROM registrations
    `
    if (!removed) throw new HttpError(404, 'Registration not found')
    await tellSeats(transaction, outbox, lines, user.id)
  })
}
