import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import { avatarOf } from '../../lib/database/columns.ts'
import type { get, list } from './schemas.ts'

const columns = (sql: Sql) => sql`
  clubs.id, clubs.name, clubs.description, clubs.image_url AS "imageUrl",
  (SELECT count(*) FROM users WHERE club_id = clubs.id) AS "memberCount"
`

/** All clubs by name. */
export const clubPagesQuery = (sql: Sql): CachedQuery<Body<typeof list>> => ({
  list: { field: 'clubs', rows: sql`SELECT ${columns(sql)} FROM clubs ORDER BY clubs.name` },
})

/** A club with its organizers, the head first. Without a row for an unknown club. */
export const clubPageQuery = (sql: Sql, id: string, picturesUrl: string | null): CachedQuery<Body<typeof get>> => ({
  fields: sql`
    SELECT row_to_json(page) AS club FROM (
      SELECT ${columns(sql)}, (
        SELECT coalesce(json_agg(json_build_object(
          'firstName', first_name, 'lastName', last_name, 'avatar', ${avatarOf(sql, picturesUrl)},
          'isHead', users.id IS NOT DISTINCT FROM club_head_id
        ) ORDER BY users.id IS DISTINCT FROM club_head_id, first_name, last_name, users.id), '[]')
        FROM users WHERE club_id = clubs.id AND role IN ('CLUB_HEAD', 'ADMIN')
      ) AS organizers
      FROM clubs WHERE clubs.id = ${id}
    ) AS page
  `,
})
