import type { Static } from '@sinclair/typebox'
import type { TransactionSql } from 'postgres'

import { findManagedEvent, isManagedBy, type User } from '../../lib/accounts/permissions.ts'
import { cancellation, knownBefore, knownEvent, runsUntil, withDetails } from '../../lib/agenda/details.ts'
import { commitmentOf, hasEntrants, removeDraw, setDraw } from '../../lib/agenda/draws.ts'
import { agendaColumns, withCounts } from '../../lib/agenda/fields.ts'
import { comes, inLineSince, lockLines, seatsOf, withAnswers } from '../../lib/agenda/seats.ts'
import type { CachedQuery } from '../../lib/cache/index.ts'
import type { AnySql, Sql } from '../../lib/database/pools.ts'
import { arrayOf, assignments, shortName, toColumns } from '../../lib/database/columns.ts'
import { type Attempt, createOnce } from '../../lib/database/idempotency.ts'
import { cursorAfter, type KeysetPosition } from '../../lib/database/keyset.ts'
import { isNotified, reachOf } from '../../lib/email/notifications.ts'
import { enqueueNews } from '../../lib/email/enqueue-clubs.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { enqueueChange, tellMissed, tellSeats } from '../../lib/email/enqueue-seats.ts'
import { HttpError, validationError } from '../../lib/http/errors.ts'
import { isUuid } from '../../lib/values/formats.ts'
import { EVENT_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import { type create, DRAW_NEEDED, SEATS_DRAWN, STORED_DETAILS, STORED_FIELDS, type update } from './schemas.ts'

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
export function agendaQuery (sql: Sql, { clubs, from, to, limit, after }: Agenda): CachedQuery {
  const conditions = sql`
    ${runsUntil(sql)} > ${from} AND (${to}::timestamptz IS NULL OR events.date < ${to})
    ${clubs === null ? sql`` : sql`AND events.club_id = ANY (${arrayOf(clubs.filter(isUuid))}::uuid[])`}
    ${after === null ? sql`` : sql`AND (events.date, events.id) > (${after.time}::text::timestamptz, ${after.id})`}
  `
  const dayBefore = sql`${from}::text::timestamptz - interval '24 hours'`
  // One row more than the page tells whether there is a next page. An index finds what began within the last day.
  // Earlier events run only if they last longer than a day.
  const page = sql`
    SELECT id, date AS at FROM (
      (
        SELECT events.id, events.date FROM events ${withDetails(sql)}
        WHERE events.date > ${dayBefore} AND ${conditions} ORDER BY events.date, events.id LIMIT ${limit + 1}
      ) UNION ALL (
        SELECT events.id, events.date FROM event_details JOIN events ON events.id = event_id
        -- The number must equal the condition of the index event_details_of_days.
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
export const agendaEventQuery = (sql: Sql, id: string): CachedQuery => ({
  fields: sql`
    SELECT row_to_json(event) AS event FROM (
      SELECT ${agendaColumns(sql)}
      FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
      WHERE events.id = ${id}
    ) AS event
  `,
})

/**
 * The draw of an event. Without a row if the event is unknown or has no draw. The order comes from the line, not from
 * the lots, so that the lots prove it. `seats` are the seats that people before the draw left, but at least the seats
 * that the draw has given: a smaller room takes none away.
 */
export const drawQuery = (sql: Sql, id: string): CachedQuery => ({
  fields: sql`
    WITH line AS (
      SELECT registrations.id, ${inLineSince(sql)} AS since
      FROM event_registrations AS registrations ${withAnswers(sql)} WHERE registrations.event_id = ${id}
    ), drawn AS (
      SELECT line.* FROM line JOIN event_details ON event_id = ${id} WHERE since >= draw_from AND since < drawn_at
    )
    SELECT json_build_object(
      'drawAt', iso8601(draw_at), 'drawnAt', iso8601(drawn_at), 'commitment', ${commitmentOf(sql, sql`draw_seed`)},
      'seed', CASE WHEN drawn_at IS NOT NULL THEN draw_seed END,
      'seats', CASE WHEN capacity IS NOT NULL THEN greatest(
        0, capacity - (SELECT count(*) FROM line WHERE since < draw_from),
        (SELECT count(*) FROM drawn WHERE since <= seated_until)
      ) END,
      'order', CASE WHEN drawn_at IS NOT NULL
        THEN (SELECT coalesce(json_agg(id ORDER BY since, id), '[]') FROM drawn)
      END
    ) AS draw
    FROM event_details WHERE event_id = ${id} AND draw_at IS NOT NULL
  `,
})

/** Throws the error for a draw that `drawQuery` has not found. */
export async function refuseDraw (sql: Sql, id: string): Promise<never> {
  const { count } = await sql`SELECT FROM events WHERE id = ${id}`
  throw new HttpError(404, count > 0 ? 'There is no draw' : 'Event not found')
}

/** SQL query: an event with all details as JSON in the column `event`, if the user may manage it. */
const managedEvent = (sql: AnySql, user: User, id: string) => sql`
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
export const seatsQuery = (sql: Sql, user: User, id: string, hasEmail: boolean): CachedQuery => ({
  list: {
    field: 'seats',
    rows: sql`
      SELECT
        seats.id AS "registrationId", users.id AS "userId", ${shortName(sql)} AS name, email,
        iso8601(registered_at) AS "registeredAt", iso8601(answered_at) AS "answeredAt", state, position,
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
 * HttpError if the user does not belong to a club, the event would end before its start, registration would close
 * before it opens, or the draw is not possible. `isDrawSet` tells whether this request has set a draw.
 */
export function addEvent (
  sql: Sql, outbox: Outbox, user: User, event: Static<typeof create.body>, attempt: Attempt | undefined
) {
  const { date, endsAt = null } = event
  const drawAt = event.drawAt ? new Date(event.drawAt) : null
  checkWindow(event)
  const details = { ...toColumns(event, STORED_DETAILS), duration_ms: durationOf(new Date(date), endsAt) }
  return sql.begin(async sql => {
    const { rows: [created], isNew } = await createOnce(sql, attempt, async () => {
      if (drawAt) await checkDraw(sql, drawAt, { ...event, date: new Date(date) })
      const [club] = await sql<{ club_id: string }[]>`
        SELECT club_id FROM users WHERE id = ${user.id} AND club_id IS NOT NULL
      `
      if (!club) throw new HttpError(400, 'You must be a club head to create an event')
      const [{ id }] = await sql<[{ id: string }]>`
        INSERT INTO events ${sql({ ...toColumns(event, STORED_FIELDS), ...club })} RETURNING id
      `
      await sql`INSERT INTO event_details ${sql({ event_id: id, ...details })}`
      if (drawAt) await setDraw(sql, id, drawAt)
      await sql`${enqueueNews(sql, outbox, sql`SELECT * FROM events WHERE id = ${id}`, user.id)}`
      return [{ id }]
    }, ([id]) => sql<{ id: string }[]>`SELECT id FROM events WHERE id = ${id!}`)
    return { event: await readManaged(sql, user, created!.id), isDrawSet: isNew && drawAt !== null }
  })
}

/** An event before a change. The body can replace the fields from `place` to `closesAt`, so they have its types. */
interface Before {
  date: Date
  sequence: number
  until: string
  duration: number | null
  place: string | null
  onlineUrl: string | null
  capacity: number | null
  opensAt: string | null
  closesAt: string | null
  drawAt: Date | null
  isDrawn: boolean
  known: object
}

/**
 * Changes the given fields of an event, and returns the event. Throws an HttpError if the event is unknown, the user
 * may not manage it, it would end before its start, registration would close before it opens, or its draw cannot change
 * in this way. Enqueues emails to attendees about a new title, date, end, place or online link and about new times of
 * registration and of the draw, and to people who get a seat.
 */
export function changeEvent (
  sql: Sql, outbox: Outbox, { user, id, changes }: { user: User, id: string, changes: Static<typeof update.body> }
) {
  const { endsAt, date } = changes
  return sql.begin(async sql => {
    const lines = await lockLines(sql, sql`SELECT ${id}::uuid`)
    await findManagedEvent(sql, user, id, EVENT_NOT_ALLOWED)
    const [before] = await sql<[Before]>`
      SELECT
        date, sequence, ${runsUntil(sql)}::text AS until, duration_ms::float AS duration, place,
        online_url AS "onlineUrl", capacity, iso8601(opens_at) AS "opensAt", iso8601(closes_at) AS "closesAt",
        draw_at AS "drawAt", drawn_at IS NOT NULL AS "isDrawn", ${knownEvent(sql)} AS known
      FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} WHERE events.id = ${id}
    `
    checkWindow({ ...before, ...changes })
    const drawAt = await findDrawChange(sql, id, before, changes)
    const duration = endsAt === undefined ? before.duration : durationOf(new Date(date ?? before.date), endsAt)
    const next = { ...before, ...changes, duration }
    const isNews = drawAt instanceof Date ||
      (['duration', 'place', 'onlineUrl'] as const).some(field => next[field] !== before[field]) ||
      (['opensAt', 'closesAt'] as const).some(field => isNewTime(changes[field], before[field]))
    // A draw needs a number of seats.
    if (drawAt === null) await removeDraw(sql, id)
    await sql`INSERT INTO event_details (event_id) VALUES (${id}) ON CONFLICT DO NOTHING`
    // Before the capacity changes, because `seatsOf` reads it.
    if (next.capacity !== before.capacity) {
      await sql`
        UPDATE event_details SET seated_until = coalesce(
          (SELECT max(since) FROM (${seatsOf(sql, sql`${id}::uuid`)}) AS seats WHERE state = 'seated'), seated_until
        )
        WHERE event_id = ${id}
      `
    }
    await sql`
      UPDATE event_details SET ${assignments(sql, changes, STORED_DETAILS)}, duration_ms = ${duration}
      WHERE event_id = ${id}
    `
    if (drawAt) await setDraw(sql, id, drawAt)
    // A trigger counts changes of the title and the date (migrations/20261120000006000_events.sql).
    if (STORED_FIELDS.some(field => field in changes)) {
      await sql`UPDATE events SET ${assignments(sql, changes, STORED_FIELDS)} WHERE id = ${id}`
    }
    // One request is one change, even if the trigger has counted its title or date already.
    await sql`
      WITH changed AS (
        UPDATE events SET sequence = ${before.sequence + 1}
        WHERE id = ${id} AND (sequence > ${before.sequence} OR ${isNews})
        RETURNING *
      )
      ${enqueueChange(sql, outbox, sql`
        SELECT id, ${JSON.stringify(before.known)}::text::jsonb AS known FROM changed AS events ${withDetails(sql)}
        WHERE greatest(${before.until}::text::timestamptz, ${runsUntil(sql)}) > now()
      `, user.id)}
    `
    await tellSeats(sql, outbox, lines, user.id)
    await tellMissed(sql, outbox, lines, user.id)
    return { event: await readManaged(sql, user, id), isDrawSet: drawAt !== undefined }
  })
}

/**
 * When the seats are drawn after a change, or null; `undefined` if the draw stays as it is. Throws an HttpError if the
 * change is not possible.
 */
async function findDrawChange (
  sql: TransactionSql, id: string, before: Before, changes: Static<typeof update.body>
) {
  const drawAt = changes.drawAt ? new Date(changes.drawAt) : changes.drawAt === null ? null : before.drawAt
  const isChanged = drawAt?.getTime() !== before.drawAt?.getTime()
  if (isChanged && before.isDrawn) throw new HttpError(409, SEATS_DRAWN)
  if (drawAt && !before.isDrawn) {
    const hadDraw = before.drawAt !== null
    if (hadDraw && changes.capacity === null) throw validationError('capacity', 'cannot be removed before the draw')
    const date = new Date(changes.date ?? before.date)
    const opensAt = changes.opensAt ? new Date(changes.opensAt).toISOString() : before.opensAt
    // `PUT /events/:id` can move the event to a date before its draw, which hinders no other change.
    if (isChanged || date.getTime() !== before.date.getTime() || opensAt !== before.opensAt) {
      await checkDraw(sql, drawAt, { ...before, ...changes, date }, isChanged)
    }
  }
  if (!isChanged) return undefined
  if (!drawAt && await hasEntrants(sql, id)) throw new HttpError(409, DRAW_NEEDED)
  return drawAt
}

/** Returns an event. Throws an HttpError if it is unknown or the user may not manage it. */
async function readManaged (sql: TransactionSql, user: User, id: string) {
  const [row] = await sql<{ event: ManagedEvent }[]>`${managedEvent(sql, user, id)}`
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

/** Tells whether a change gives a time a different value. */
const isNewTime = (time: string | null | undefined, before: string | null) =>
  Boolean(time) && (before === null || Date.parse(time!) !== Date.parse(before))

/** Throws a validation error if registration would close before it opens. */
function checkWindow ({ opensAt, closesAt }: { opensAt?: Date | string | null, closesAt?: Date | string | null }) {
  if (!opensAt || !closesAt || new Date(opensAt) < new Date(closesAt)) return
  throw validationError('opensAt', 'must be before closesAt')
}

/** Throws a validation error if a draw is not possible at its time, or if the event has no number of seats. */
async function checkDraw (
  sql: TransactionSql, drawAt: Date,
  { date, opensAt, capacity }: { date: Date, opensAt?: Date | string | null, capacity?: number | null }, isNew = true
) {
  if (!capacity) throw validationError('drawAt', 'needs a number of seats')
  if (drawAt > date) throw validationError('drawAt', 'must not be after the start of the event')
  if (opensAt && new Date(opensAt) >= drawAt) throw validationError('drawAt', 'must be after registration opens')
  if (!isNew) return
  // The clock of the database decides for all instances.
  const { count } = await sql`SELECT WHERE ${drawAt}::timestamptz > statement_timestamp()`
  if (count === 0) throw validationError('drawAt', 'must be in the future')
}

/**
 * Deletes a registration. Throws an HttpError if it is unknown or the user may not manage its event. Enqueues an email
 * to the person, unless the event is over or they do not come, and to the person who gets the seat.
 */
export function removeSeat (
  sql: Sql, outbox: Outbox, { user, id, registrationId }: { user: User, id: string, registrationId: string }
) {
  return sql.begin(async sql => {
    // The lock order of an erasure prevents a deadlock.
    await sql`
      SELECT FROM users WHERE id = (SELECT user_id FROM event_registrations WHERE id = ${registrationId}) FOR KEY SHARE
    `
    const lines = await lockLines(sql, sql`SELECT ${id}::uuid`)
    await findManagedEvent(sql, user, id, EVENT_NOT_ALLOWED)
    const [removed] = await sql`
      WITH registrations AS (
        DELETE FROM event_registrations WHERE id = ${registrationId} AND event_id = ${id} RETURNING *
      ), emailed AS (${outbox.enqueue('seat-removed', sql`
        SELECT user_id, registrations.id::text AS key, ${cancellation(sql, 0)} AS data
        FROM registrations JOIN events ON events.id = event_id JOIN clubs ON clubs.id = club_id ${withDetails(sql)}
          LEFT JOIN (${knownBefore(sql, sql`${id}`)}) AS before USING (user_id)
        WHERE ${comes(sql)} AND (${runsUntil(sql)} > now() OR known IS NOT NULL)
      `, user.id)})
      SELECT id FROM registrations
    `
    if (!removed) throw new HttpError(404, 'Registration not found')
    await tellSeats(sql, outbox, lines, user.id)
  })
}
