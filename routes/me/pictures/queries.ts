import type { User } from '../../../lib/accounts/permissions.ts'
import type { Body, CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/client.ts'
import type { Picture } from '../../../lib/pictures/convert.ts'
import { pictureUses } from '../../../lib/pictures/stored.ts'
import type { list, StoredPicture } from './schemas.ts'

/** Maximum number of pictures per account, and their maximum total size in bytes. */
interface Quota {
  count: number
  bytes: number
}

/** Stores a picture. Returns the picture, `quota` if the quota is used up, or `undefined` for an unknown user. */
export function insertPicture (
  sql: Sql, userId: string, { large, small, width, height }: Picture, quota: Quota
): Promise<Omit<StoredPicture, 'url'> | 'quota' | undefined> {
  return sql.begin(async transaction => {
    // Parallel uploads of an account wait here, so that the next statement counts all pictures.
    const { count: users } = await transaction`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    if (users === 0) return undefined
    const [stored] = await transaction<[Quota]>`
      SELECT count(*)::float8, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes
      FROM pictures WHERE user_id = ${userId}
    `
    if (stored.count >= quota.count || stored.bytes + large.length + small.length > quota.bytes) return 'quota'
    const [picture] = await transaction<[Omit<StoredPicture, 'url'>]>`
      INSERT INTO pictures (user_id, large, small, width, height)
      VALUES (${userId}, ${large}, ${small}, ${width}, ${height})
      RETURNING id, width, height, iso8601(created_at) AS "createdAt"
    `
    return picture
  })
}

/** The pictures of a user with their uses. `baseUrl` is the base URL of all pictures. */
export const picturesOfUserQuery = (sql: Sql, userId: string, baseUrl: string): CachedQuery<Body<typeof list>> => ({
  list: {
    field: 'pictures',
    rows: sql`
      SELECT
        id, ${baseUrl}::text || id AS url, width, height, iso8601(created_at) AS "createdAt",
        (
          SELECT coalesce(json_agg(json_build_object('kind', kind, 'id', id, 'name', name) ORDER BY kind, id), '[]')
          FROM (${pictureUses(sql)}) AS uses WHERE is_visible
        ) AS uses
      FROM pictures WHERE user_id = ${userId}
      ORDER BY created_at DESC, id
    `,
  },
  fields: sql`SELECT`,
})

/** Deletes a picture of this user, or any picture if the user is an admin. Returns whether it existed. */
export async function deletePicture (sql: Sql, user: User, id: string) {
  const { count } = await sql`
    DELETE FROM pictures WHERE id = ${id} AND (user_id = ${user.id} OR ${user.role === 'ADMIN'})
  `
  return count > 0
}
