import type { Static } from '@sinclair/typebox'
import type { PendingQuery, Row } from 'postgres'

import { findManagedEvent, type User } from '../../lib/accounts/permissions.ts'
import { withDetails } from '../../lib/agenda/details.ts'
import { agendaColumns, withCounts } from '../../lib/agenda/fields.ts'
import { newSeed } from '../../lib/agenda/draws.ts'
import type { Sql } from '../../lib/database/pools.ts'
import { arrayOf, toColumn } from '../../lib/database/columns.ts'
import { type Attempt, createOnce } from '../../lib/database/idempotency.ts'
import { enqueueNews } from '../../lib/email/enqueue-clubs.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { validationError } from '../../lib/http/errors.ts'
import { EVENT_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import { type copy, STORED_FIELDS } from './schemas.ts'

/** A copy of an event: when it begins, and its duration in milliseconds unless it lasts as long as the event. */
interface EventCopy {
  date: string
  duration: number | null
}

/** The columns of an event that its copies share. */
const COPIED = STORED_FIELDS.filter(field => field !== 'date').map(toColumn)

/**
 * Maximum number of bytes of the copies of a request, as much as of a body. 52 copies of an event with 258 KB would be
 * a response of 13 MB. It takes 40 ms of one turn of the event loop to write it, and 2 with this limit.
 */
const COPIED_BYTES = 2 ** 20

type CopiedEvent = Static<typeof copy.response[201]>['events'][number]

/**
 * Adds copies of an event, and only once if requests have the same key. Returns them, earliest first. All details are
 * copied, but not who had a seat. The draw of a copy has its own seed. It is left out if it would be past or before
 * registration opens. Throws an HttpError if the event is unknown, the user may not manage it, or the copies would have
 * more than COPIED_BYTES.
 */
export function insertCopies (
  sql: Sql, outbox: Outbox,
  { user, id, copies, timeZone, attempt }: {
    user: User, id: string, copies: EventCopy[], timeZone: string, attempt: Attempt | undefined,
  }
) {
  // Years have four digits.
  const [earliest, latest] = [sql`timestamptz '0001-01-01 00:00+00'`, sql`timestamptz '9999-12-31 23:59:59.999+00'`]
  const local = (time: PendingQuery<Row[]>) => sql`${time} AT TIME ZONE ${timeZone}`
  /** A time of the event, moved to its copy. It stays at the same local time when clocks change. */
  const moved = (time: PendingQuery<Row[]>, last = latest) => sql`
    CASE WHEN ${time} IS NOT NULL THEN least(${last}, (${local(time)} + greatest(
      ${local(sql`copied.date`)} - ${local(sql`(SELECT date FROM events WHERE id = ${id})`)},
      ${local(earliest)} - ${local(time)}
    )) AT TIME ZONE ${timeZone}) END
  `
  const columns = COPIED.map(column => sql`${sql(column)}`).reduce((all, one) => sql`${all}, ${one}`)
  return sql.begin(async sql => {
    const { rows: created, isNew } = await createOnce(sql, attempt, async () => {
      const [event] = await sql<{ bytes: number }[]>`
        SELECT octet_length(to_jsonb(events)::text) AS bytes FROM events WHERE id = ${id} FOR KEY SHARE
      `
      await findManagedEvent(sql, user, id, EVENT_NOT_ALLOWED)
      const most = Math.max(1, Math.floor(COPIED_BYTES / event!.bytes))
      if (copies.length > most) {
        const bytes = event!.bytes.toLocaleString('en')
        throw validationError('dates', `must have at most ${most} items, because the event has ${bytes} bytes`)
      }
      return sql<{ id: string }[]>`
        WITH copies AS (
          SELECT * FROM jsonb_to_recordset(${JSON.stringify(copies)}::text::jsonb)
            AS copy (date timestamptz, duration bigint)
        ), copied AS (
          INSERT INTO events (${columns}, date, club_id) SELECT ${columns}, copies.date, club_id
          FROM events CROSS JOIN copies WHERE events.id = ${id}
          RETURNING *
        ), emailed AS (${enqueueNews(sql, outbox, sql`SELECT * FROM copied`, user.id)}), detailed AS (
          INSERT INTO event_details
          SELECT copy.* FROM copied JOIN copies USING (date) LEFT JOIN event_details AS details ON event_id = ${id}
            CROSS JOIN LATERAL (
              SELECT
                ${moved(sql`opens_at`, sql`${latest} - interval '1 ms'`)} AS opens, ${moved(sql`closes_at`)} AS closes
            ) AS moved
            -- A clock that changes between the draw and the start of the copy can swap them.
            LEFT JOIN LATERAL (SELECT ${moved(sql`draw_at`, sql`copied.date`)} AS at) AS draw
              ON capacity IS NOT NULL AND draw.at > greatest(statement_timestamp(), opens)
            CROSS JOIN LATERAL jsonb_populate_record(details, jsonb_build_object(
              'event_id', copied.id, 'seated_until', NULL, 'duration_ms', coalesce(duration, duration_ms),
              'opens_at', opens,
              -- Clocks that change can swap two local times. Registration is then open as long as for the event.
              'closes_at',
                CASE WHEN closes <= opens THEN least(${latest}, opens + (closes_at - opens_at)) ELSE closes END,
              'draw_at', draw.at, 'draw_from', CASE WHEN draw.at IS NOT NULL THEN clock_timestamp() END,
              'draw_seed', CASE WHEN draw.at IS NOT NULL THEN ${newSeed(sql)} END, 'drawn_at', NULL
            )) AS copy
          WHERE details.event_id IS NOT NULL OR duration IS NOT NULL
        )
        SELECT id FROM copied
      `
    }, ids => sql<{ id: string }[]>`
      SELECT id FROM events WHERE id = ANY (${arrayOf(ids)}::uuid[])
    `)
    const [{ events }] = await sql<[{ events: CopiedEvent[] }]>`
      SELECT coalesce(json_agg(event), '[]') AS events FROM (
        SELECT ${agendaColumns(sql)}
        FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} ${withCounts(sql)}
        WHERE events.id = ANY (${arrayOf(created.map(({ id }) => id))}::uuid[])
        ORDER BY events.date, events.id
      ) AS event
    `
    return { events, isNew }
  })
}
