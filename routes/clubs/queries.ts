import type { Static } from '@sinclair/typebox'

import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import { retryConflict } from '../../lib/database/conflicts.ts'
import type { Sql } from '../../lib/database/client.ts'
import { eventSummary } from '../../lib/database/columns.ts'
import type { create, list } from './schemas.ts'

type NewClub = Static<typeof create.response[201]>['club']

const columns = (sql: Sql) => sql`
  clubs.id, name, description, image_url AS "imageUrl", club_head_id AS "clubHeadId"
`

export const clubsQuery = (sql: Sql): CachedQuery<Body<typeof list>> => ({
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
      ORDER BY clubs.id
    `,
  },
})

/**
 * Adds a club and makes the user with this email its head and member; `undefined` when there is no such user.
 * The response has the members from before the insert: none. The user is locked first, so that an erasure at the same
 * time leaves no club with the id of nobody.
 */
export async function insertClub (
  sql: Sql, { name, description, imageUrl, clubHeadEmail }: Record<string, unknown>
) {
  // An image that is no text must fail, but its column may be null. A null name fails instead.
  const hasImage = typeof imageUrl === 'string' || imageUrl == null
  const [created] = await retryConflict(() => sql<NewClub[]>`
    WITH head AS (
      SELECT id FROM users WHERE email = ${text(clubHeadEmail)} FOR NO KEY UPDATE
    ), created AS (
      INSERT INTO clubs (name, description, image_url, club_head_id)
      SELECT ${hasImage ? text(name) : null}, ${text(description)}, ${text(imageUrl)}, id FROM head
      RETURNING *
    ), promoted AS (
      UPDATE users SET role = 'CLUB_HEAD', club_id = created.id FROM created WHERE users.id = club_head_id
    )
    SELECT ${columns(sql)}, '[]'::json AS members FROM created AS clubs
  `)
  return created
}

/** Text is stored as it is; anything else becomes null, which no name and no description may be. */
function text (value: unknown) {
  return typeof value === 'string' ? value : null
}
