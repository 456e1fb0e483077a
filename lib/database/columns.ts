import type { PendingQuery, Row } from 'postgres'

import type { AnySql, Sql } from './pools.ts'

// SQL columns and fragments that several resources share.

/** Ids as an array of PostgreSQL: `ANY (${arrayOf(ids)}::uuid[])`. */
export const arrayOf = (ids: string[]) => `{${ids.join()}}`

/** The column of a field: `imageUrl` is stored as `image_url`. */
export const toColumn = (field: string) => field.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

// The driver prepares each text of a statement, and each combination of types of its parameters, on each connection,
// and PostgreSQL keeps it. With a text for each subset of the given fields, 6,400 requests to change email preferences
// took 121 MB of the memory of PostgreSQL. So the text is the same for all subsets.

/** The values of these fields by their columns; null for a missing field. Other fields of the body are ignored. */
export const toColumns = <Body extends object>(body: Body, fields: readonly (keyof Body & string)[]) =>
  Object.fromEntries(fields.map(field => [toColumn(field), body[field] ?? null]))

/**
 * SQL: assignments of the given values of these fields to their columns; a missing field keeps its value. The parameter
 * for a missing field is `filler`, which must be a boolean if the fields are, because the driver sends its type.
 */
export function assignments<Field extends string> (
  sql: AnySql, body: Partial<Record<Field, string | number | boolean | null>>, fields: readonly Field[],
  filler: boolean | null = null
) {
  return fields.map(field => {
    const column = sql(toColumn(field))
    const value = body[field]
    return sql`${column} = CASE WHEN ${value !== undefined} THEN ${value ?? filler} ELSE ${column} END`
  }).reduce((all, one) => sql`${all}, ${one}`)
}

/** SQL: the bytes of the texts in these columns together. */
export const bytesOf = (sql: AnySql, ...columns: string[]) =>
  columns.map(column => sql`coalesce(octet_length(${sql(column)}), 0)`).reduce((sum, one) => sql`${sum} + ${one}`)

/** The fields of an event within other objects. */
export const eventSummary = (sql: AnySql) => sql`
  json_build_object('id', events.id, 'title', events.title, 'date', iso8601(events.date))
`

/** Number of characters of a text in a feed, so that formatting stays fast. The link leads to the full text. */
const EXCERPT = 4000

export const excerpt = (sql: AnySql, text: PendingQuery<Row[]>) => sql`
  CASE WHEN char_length(${text}) > ${EXCERPT} THEN left(${text}, ${EXCERPT}) || '…' ELSE ${text} END
`

/**
 * The URL of a user's picture. If the user has uploaded it, the URL is below `picturesUrl`, so that avatars survive a
 * move to a different domain; null if the service does not know its own URL. A URL of the identity provider stays.
 */
export const avatarOf = (sql: AnySql, picturesUrl: string | null) => sql`(
  SELECT CASE WHEN pictures.id IS NULL THEN avatar ELSE ${picturesUrl}::text || pictures.id END
  FROM (SELECT) AS one LEFT JOIN pictures ON pictures.id = (picture_ids(avatar))[1]
)`

/** A user as they see themselves, with their club. */
export const profileColumns = (sql: AnySql, picturesUrl: string | null) => sql`
  users.id, first_name AS "firstName", last_name AS "lastName", email, ${avatarOf(sql, picturesUrl)} AS avatar, role,
  CASE WHEN clubs.id IS NOT NULL
    THEN json_build_object('id', clubs.id, 'name', clubs.name, 'imageUrl', clubs.image_url)
  END AS club
`

export const clubCard = (sql: AnySql) => sql`
  json_build_object('name', clubs.name, 'imageUrl', clubs.image_url) AS club
`

/** An event with its club. Sort by `events.date`, a time with an index. The output column `date` is a text. */
export const eventColumns = (sql: AnySql) => sql`
  events.id, title, events.description, events.image_url AS "imageUrl", iso8601(date) AS date, club_id AS "clubId",
  iso8601(events.created_at) AS "createdAt", ${clubCard(sql)}
`

/** A registration, from a table with the alias `registrations`. */
export const registrationColumns = (sql: AnySql) => sql`
  registrations.id, user_id AS "userId", event_id AS "eventId", iso8601(registered_at) AS "registeredAt"
`

/** The title of a registration's event, and the name of its user. */
export const registrationDetails = (sql: AnySql) => sql`
  json_build_object('title', title) AS event, json_build_object('firstName', first_name, 'lastName', last_name) AS user
`

/** The characters that JavaScript's `trim` removes. */
const WHITESPACE = '\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a' +
  '\u2028\u2029\u202f\u205f\u3000\ufeff'

/** The first and the last name of a user, as they are stored. */
export const untrimmedName = (sql: AnySql) => sql`concat(first_name, ' ', last_name)`

/** The full name of a user, without spaces around it. */
export const fullName = (sql: AnySql) => sql`btrim(${untrimmedName(sql)}, ${WHITESPACE})`

/** The same in at most 200 characters. 4,000 names of 16 KB would make a list longer than a response may be. */
export const shortName = (sql: AnySql) => sql`left(${fullName(sql)}, 200)`

// A count that triggers keep is the sum of its slots (see migrations/20261120000007000_counts.sql). The sum of bigint
// is numeric, the count of rows is bigint. The driver reads both as strings. In JSON both are numbers, so no cast is
// needed.

export const registrationCount = (sql: AnySql, eventId = sql`events.id`) => sql`
  (SELECT coalesce(sum(count), 0) FROM event_registration_counts WHERE event_id = ${eventId})
`

export const likeCount = (sql: AnySql) => sql`
  (SELECT coalesce(sum(count), 0) FROM mentor_like_counts WHERE mentor_id = mentors.id)
`

/** Number of rows of a table, for the pagination of its list. */
export const rowCount = (sql: AnySql, table: 'events' | 'testimonials') => sql`
  (SELECT coalesce(sum(count), 0) FROM row_counts WHERE relation = ${table})
`

/** The rows of a page. Pages begin with 1. PostgreSQL refuses NaN and negative numbers. */
export const pageOf = (sql: AnySql, page: number, limit: number) => sql`LIMIT ${limit} OFFSET ${(page - 1) * limit}`

/**
 * The `pagination` of a list. The query `counted` returns the total, which must be numeric like a sum: for a bigint
 * such as `count(*)`, the number of pages would be rounded down. Returns a row only if `counted` does.
 */
export const paginationOf = (
  sql: Sql, { page, limit }: { page: number, limit: number }, counted: PendingQuery<Row[]>
) => sql`
  SELECT pagination
  FROM (
    SELECT ${page}::bigint AS page, ceil(total / ${limit}::bigint) AS pages, total, ${limit}::bigint AS limit
    FROM ${counted} AS counted (total)
  ) AS pagination
`
