import type { User } from '../../../lib/accounts/permissions.ts'
import type { Body, CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/client.ts'
import { pictureUses } from '../../../lib/pictures/stored.ts'
import type { list } from './schemas.ts'

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
