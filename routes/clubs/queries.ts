import type { Static } from '@sinclair/typebox'
import type { CachedQuery } from '../../lib/cache/index.ts'
import type { AnySql, Sql } from '../../lib/database/pools.ts'
import { eventSummary } from '../../lib/database/columns.ts'
import { type Attempt, insertOnce } from '../../lib/database/idempotency.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { create } from './schemas.ts'

type NewClub = Static<typeof create.response[201]>['club']

const columns = (sql: AnySql) => sql`
  clubs.id, name, description, image_url AS "imageUrl", club_head_id AS "clubHeadId"
`

/** The most bytes of JSON for a byte of text: the letter U+0001 becomes the six letters \u0001. */
const JSON_BYTES = 6

/**
 * SQL condition: the titles of all events need at most so many bytes of JSON. Reads the titles only if their lengths
 * leave a doubt.
 */
const titlesFit = (sql: AnySql, bytes: number) => sql`
  CASE
    WHEN (SELECT coalesce(sum(octet_length(title)), 0) <= ${Math.floor(bytes / JSON_BYTES)} FROM events) THEN true
    WHEN (SELECT sum(octet_length(title)) > ${bytes} FROM events) THEN false
    ELSE (SELECT sum(octet_length(to_json(title)::text)) <= ${bytes} FROM events)
  END
`

/**
 * All clubs. A row contains all events of a club, so it would arrive before its bytes are counted. Therefore, there is
 * no row if the titles alone exceed so many bytes.
 */
export const clubsQuery = (sql: Sql, maxBytes: number): CachedQuery => ({
  list: {
    field: 'clubs',
    rows: sql`
      SELECT
        ${columns(sql)},
        (
          SELECT coalesce(json_agg(json_build_object(
            'id', id, 'firstName', first_name, 'lastName', last_name, 'email', email, 'role', role
          ) ORDER BY id), '[]')
          FROM users WHERE club_id = clubs.id
        ) AS members,
        (
          SELECT coalesce(json_agg(${eventSummary(sql)} ORDER BY date DESC, id), '[]')
          FROM events WHERE club_id = clubs.id
        ) AS events
      FROM clubs
      WHERE ${titlesFit(sql, maxBytes)}
      ORDER BY clubs.id
    `,
  },
  fields: sql`SELECT WHERE ${titlesFit(sql, maxBytes)}`,
})

/** The members before the insert. */
const noMembers = (sql: AnySql) => sql`'[]'::json AS members`

/**
 * Adds a club, and makes the user with this email address its head and a member. Adds only one if requests have the
 * same key. Throws a 404 for an unknown address.
 */
export const insertClub = (sql: Sql, fields: Record<string, unknown>, attempt: Attempt | undefined) =>
  insertOnce(sql, attempt, sql => insertNewClub(sql, fields), (sql, id) => sql<NewClub[]>`
    SELECT ${columns(sql)}, ${noMembers(sql)} FROM clubs WHERE id = ${id}
  `)

/** The user is locked first, so that a parallel erasure cannot leave a club with an unknown head. */
async function insertNewClub (
  sql: AnySql, { name, description, imageUrl, clubHeadEmail }: Record<string, unknown>
) {
  // An image that is not a string must fail, but its column accepts null. Therefore, the name becomes null, which
  // fails.
  const hasImage = typeof imageUrl === 'string' || imageUrl == null
  const created = await sql<NewClub[]>`
    WITH head AS (
      SELECT id FROM users WHERE email = ${text(clubHeadEmail)} FOR NO KEY UPDATE
    ), created AS (
      INSERT INTO clubs (name, description, image_url, club_head_id)
      SELECT ${hasImage ? text(name) : null}, ${text(description)}, ${text(imageUrl)}, id FROM head
      RETURNING *
    ), promoted AS (
      UPDATE users SET role = 'CLUB_HEAD', club_id = created.id FROM created WHERE users.id = club_head_id
    )
    SELECT ${columns(sql)}, ${noMembers(sql)} FROM created AS clubs
  `
  if (created.length === 0) throw new HttpError(404, 'Club head not found')
  return created
}

/** Returns a string unchanged. Other values become null, which the columns of name and description refuse. */
function text (value: unknown) {
  return typeof value === 'string' ? value : null
}
