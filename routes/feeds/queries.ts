import type { PendingQuery, Row } from 'postgres'

import { calendarColumns, withDetails } from '../../lib/agenda/details.ts'
import { inLineSince, isTentative, withAnswers, withSeat } from '../../lib/agenda/seats.ts'
import type { CachedQuery } from '../../lib/cache/index.ts'
import type { AnySql, Sql } from '../../lib/database/pools.ts'
import { excerpt, untrimmedName } from '../../lib/database/columns.ts'
import { atom } from './atom.ts'
import { icalendar } from './icalendar.ts'

/** Number of posts in the feed. */
const NEWEST = 50

/**
 * A calendar of these events since 1900, because common calendar apps do not show earlier dates. The query `events` has
 * a WHERE clause, to which a condition is added. `link` is the app's page of events, and the page of each event is
 * below it.
 */
const calendarQuery = (
  sql: Sql, link: string | undefined, name: PendingQuery<Row[]>, events: PendingQuery<Row[]>
): CachedQuery => ({
  list: { field: 'events', rows: sql`${events} AND date >= '1900-01-01 00:00:00+00' ORDER BY events.date, events.id` },
  fields: name,
  format: icalendar(link),
})

/** All events. */
export const eventsCalendarQuery = (sql: Sql, link: string | undefined) => calendarQuery(sql, link, sql`
  SELECT 'Events' AS name
`, sql`
  SELECT ${calendarColumns(sql)} FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)} WHERE true
`)

/** The events of a club. Without a row for an unknown club. */
export const clubCalendarQuery = (sql: Sql, link: string | undefined, clubId: string) => calendarQuery(sql, link, sql`
  SELECT name FROM clubs WHERE id = ${clubId}
`, sql`
  SELECT ${calendarColumns(sql)} FROM events JOIN clubs ON clubs.id = club_id ${withDetails(sql)}
  WHERE club_id = ${clubId}
`)

/**
 * SQL: when an event, or the seat of a registration, last changed. When a person got a seat is not stored. A second
 * later than while the person waited is enough: an app updates an entry whose time is later.
 */
const entryUpdatedAt = (sql: AnySql) => sql`
  greatest(events.updated_at, ${inLineSince(sql)})
    + CASE WHEN seat ->> 'state' = 'seated' THEN interval '1 second' ELSE interval '0' END
`

/**
 * The events that the owner of a token comes to, waits for, or takes part in the draw of. Without a row for an unknown
 * token.
 */
export const ownCalendarQuery = (sql: Sql, link: string | undefined, tokenHash: string) => calendarQuery(sql, link, sql`
  SELECT 'My events' AS name FROM calendar_tokens WHERE token_hash = ${tokenHash}
`, sql`
  SELECT
    ${calendarColumns(sql, entryUpdatedAt(sql))}, ${isTentative(sql)} AS "isTentative",
    CASE WHEN seat ->> 'state' = 'seated' THEN online_url END AS "onlineUrl"
  FROM calendar_tokens
    JOIN event_registrations AS registrations USING (user_id)
    JOIN events ON events.id = registrations.event_id
    JOIN clubs ON clubs.id = club_id
    ${withDetails(sql)}
    ${withAnswers(sql)}
    ${withSeat(sql)}
  WHERE token_hash = ${tokenHash} AND seat ->> 'state' <> 'declined'
`)

/** The most recently published posts. `link` is the app's page of posts, and the page of each post is below it. */
export const blogsFeedQuery = (sql: Sql, link: string | undefined, self: string | null): CachedQuery => ({
  list: {
    field: 'blogs',
    rows: sql`
      SELECT
        blogs.id, ${excerpt(sql, sql`title`)} AS title, ${excerpt(sql, sql`content`)} AS content,
        ${untrimmedName(sql)} AS author,
        iso8601(published_at) AS "publishedAt", iso8601(blogs.updated_at) AS "updatedAt"
      FROM blogs JOIN users ON users.id = author_id
      WHERE status = 'PUBLISHED'
      ORDER BY published_at DESC, blogs.id
      LIMIT ${NEWEST}
    `,
  },
  fields: sql`
    SELECT iso8601(max(updated_at)) AS updated FROM (
      SELECT updated_at FROM blogs WHERE status = 'PUBLISHED' ORDER BY published_at DESC, id LIMIT ${NEWEST}
    ) AS newest
  `,
  format: atom(link, self),
})
