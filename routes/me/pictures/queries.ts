import type { User } from '../../../lib/accounts/permissions.ts'
import type { CachedQuery } from '../../../lib/cache/index.ts'
import type { Sql } from '../../../lib/database/pools.ts'
import { removeFromOwner, usesOfPicture } from '../../../lib/pictures/uses.ts'
import type { PictureUse } from './schemas.ts'

/** The pictures of a user with their uses. `picturesUrl` is the base URL of all pictures. */
export const picturesOfUserQuery = (sql: Sql, userId: string, picturesUrl: string): CachedQuery => ({
  list: {
    field: 'pictures',
    rows: sql`
      SELECT
        id, ${picturesUrl}::text || id AS url, width, height, iso8601(created_at) AS "createdAt",
        ${usesOfPicture(sql)} AS uses
      FROM pictures WHERE user_id = ${userId}
      ORDER BY created_at DESC, id
    `,
  },
})

/**
 * Deletes a picture of this user, or any picture if the user is an admin. Returns its uses; `undefined` for an unknown
 * picture. A picture with uses stays, unless `force` is set. Then it disappears from the avatar and posts of its owner.
 */
export function deletePicture (sql: Sql, user: User, id: string, force: boolean): Promise<PictureUse[] | undefined> {
  return sql.begin(async sql => {
    // The lock order of an erasure prevents a deadlock.
    await sql`
      SELECT FROM users WHERE id = (SELECT user_id FROM pictures WHERE id = ${id}) FOR NO KEY UPDATE
    `
    const { count } = await sql`
      SELECT FROM pictures WHERE id = ${id} AND (user_id = ${user.id} OR ${user.role === 'ADMIN'}) FOR UPDATE
    `
    if (count === 0) return undefined
    // Reads the uses after the locks, because a statement that waits for a lock does not see newer rows.
    const [{ uses }] = await sql<[{ uses: PictureUse[] }]>`
      SELECT ${usesOfPicture(sql)} AS uses FROM pictures WHERE id = ${id}
    `
    if (force || uses.length === 0) {
      if (force) await removeFromOwner(sql, id)
      await sql`DELETE FROM pictures WHERE id = ${id}`
    }
    return uses
  })
}
