import type { Static } from '@sinclair/typebox'

import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import { isOrganizer, joiningOf, managesClub, memberCount } from '../../lib/clubs/members.ts'
import type { Sql } from '../../lib/database/client.ts'
import { avatarOf, toColumns } from '../../lib/database/columns.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { CLUB_NOT_ALLOWED, type get, type list, NAME_TAKEN, NOT_RENAMED, type update } from './schemas.ts'

type ClubPage = Static<typeof get.response[200]>['club']

const columns = (sql: Sql) => sql`
  clubs.id, clubs.name, clubs.description, clubs.image_url AS "imageUrl", ${joiningOf(sql)} AS joining,
  ${memberCount(sql)} AS "memberCount"
`

/** All clubs by name. */
export const clubPagesQuery = (sql: Sql): CachedQuery<Body<typeof list>> => ({
  list: { field: 'clubs', rows: sql`SELECT ${columns(sql)} FROM clubs ORDER BY clubs.name` },
})

/** SQL query: a club with its organizers as JSON in the column `club`, the head first. */
const clubPage = (sql: Sql, id: string, picturesUrl: string | null) => sql`
  SELECT row_to_json(page) AS club FROM (
    SELECT ${columns(sql)}, (
      SELECT coalesce(json_agg(json_build_object(
        'firstName', first_name, 'lastName', last_name, 'avatar', ${avatarOf(sql, picturesUrl)},
        'isHead', users.id IS NOT DISTINCT FROM club_head_id
      ) ORDER BY users.id IS DISTINCT FROM club_head_id, first_name, last_name, users.id), '[]')
      FROM users WHERE club_id = clubs.id AND ${isOrganizer(sql)}
    ) AS organizers
    FROM clubs WHERE clubs.id = ${id}
  ) AS page
`

/** A club with its organizers. Without a row for an unknown club. */
export const clubPageQuery = (sql: Sql, id: string, picturesUrl: string | null): CachedQuery<Body<typeof get>> => ({
  fields: clubPage(sql, id, picturesUrl),
})

/**
 * Changes the given fields of a club, and returns its page. Throws an HttpError if the user or the club is unknown, the
 * user may not do this, or a different club has the name.
 */
export async function changeClub (
  sql: Sql, picturesUrl: string | null,
  { userId, id, changes }: { userId: string, id: string, changes: Static<typeof update.body> }
): Promise<ClubPage> {
  const { name, joining } = changes
  const fields = toColumns(changes, ['name', 'description', 'imageUrl'])
  return sql.begin(async transaction => {
    // Waits for an end of the office that is running.
    const { count } = await transaction`SELECT FROM users WHERE id = ${userId} FOR SHARE`
    if (count === 0) throw new HttpError(401, 'Unauthorized')
    // Waits for people who are joining, see `joinClub`.
    const [club] = await transaction<{ name: string }[]>`
      SELECT name FROM clubs WHERE id = ${id} FOR NO KEY UPDATE
    `
    if (!club) throw new HttpError(404, 'Club not found')
    const [user] = await transaction<[{ isAdmin: boolean, manages: boolean }]>`
      SELECT role = 'ADMIN' AS "isAdmin", ${managesClub(sql)} AS manages
      FROM users CROSS JOIN clubs WHERE users.id = ${userId} AND clubs.id = ${id}
    `
    if (!user.manages) throw new HttpError(403, CLUB_NOT_ALLOWED)
    if (name !== undefined && name !== club.name && !user.isAdmin) throw new HttpError(403, NOT_RENAMED)
    if (Object.keys(fields).length > 0) await transaction`UPDATE clubs SET ${sql(fields)} WHERE id = ${id}`
    if (joining !== undefined) {
      await transaction`
        INSERT INTO club_details (club_id, joining) VALUES (${id}, ${joining})
        ON CONFLICT (club_id) DO UPDATE SET joining = excluded.joining
      `
    }
    const [page] = await transaction<[{ club: ClubPage }]>`${clubPage(sql, id, picturesUrl)}`
    return page.club
  }).catch((error: { code?: string }) => {
    throw error.code === EXCLUSION_VIOLATION ? new HttpError(409, NAME_TAKEN) : error
  })
}

/** SQLSTATE if a different club has the name. */
const EXCLUSION_VIOLATION = '23P01'
