import type { TransactionSql } from 'postgres'

import type { AnySql, Sql } from '../database/pools.ts'
import { untrimmedName } from '../database/columns.ts'

// If the service did not know the uses of pictures, people would have to delete old pictures by hand after 100 changes
// of their profile picture. So the service deletes unused pictures, and keeps pictures that a page shows.

/** Limits of a list of uses, because many posts with titles of 1 MB can show a picture. */
const MAX_USES = 20
const NAME_LENGTH = 200

/** SQL: the pictures that a post uses. See migrations/20261126002000000_pictures-of-posts.sql. */
const keysOfPost = (sql: AnySql) => sql`
  picture_keys(
    picture_ids(coalesce(image_url, '') || ' ' || content), CASE WHEN status <> 'PUBLISHED' THEN author_id END
  )
`

/** SQL: the keys by which posts use `pictures.id`: published posts, and drafts of its owner. */
const keysOfPicture = (sql: AnySql) => sql`
  ARRAY[pictures.id::text, pictures.id || ' ' || pictures.user_id]
`

/**
 * SQL query: the rows that use `pictures.id`, with kind, id and name, whether they belong to its owner, and whether
 * they are published posts. Drafts of other users do not count.
 */
const pictureUses = (sql: AnySql) => sql`
  SELECT
    'avatar' AS kind, users.id, ${untrimmedName(sql)} AS name,
    users.id = pictures.user_id AS is_own, false AS is_published
  FROM users WHERE picture_ids(avatar) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'blog', blogs.id, title, author_id = pictures.user_id, status = 'PUBLISHED'
  FROM blogs WHERE ${keysOfPost(sql)} && ${keysOfPicture(sql)}
  UNION ALL
  SELECT 'club', clubs.id, clubs.name, false, false FROM clubs WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'event', events.id, title, false, false FROM events WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'mentor', mentors.id, mentors.name, false, false FROM mentors
  WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'testimonial', testimonials.id, testimonials.name, false, false
  FROM testimonials WHERE picture_ids(image_url) @> ARRAY[pictures.id]
`

/** SQL: at most MAX_USES uses of `pictures.id` as a JSON array. */
export const usesOfPicture = (sql: AnySql) => sql`
  (
    SELECT coalesce(json_agg(json_build_object('kind', kind, 'id', id, 'name', name) ORDER BY kind, id), '[]')
    FROM (
      SELECT kind, id, left(name, ${NAME_LENGTH}::integer) AS name
      FROM (${pictureUses(sql)}) AS uses LIMIT ${MAX_USES}::integer
    ) AS uses
  )
`

/** The media type of stored pictures. */
export const WEBP = 'image/webp'

/** The width of the small version for lists, in pixels. */
export const SMALL = 480

/** Counts the stored pictures and their bytes. Reads only their lengths. */
export async function countPictures (sql: Sql) {
  const [counts] = await sql<[{ count: number, bytes: number }]>`
    SELECT count(*)::int, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes FROM pictures
  `
  return counts
}

/** SQL condition: a picture has been unused for a day. */
const isLongUnused = (sql: AnySql) => sql`unused_since < now() - interval '1 day' AND NOT EXISTS (${pictureUses(sql)})`

/** Counts the pictures that `deleteUnusedPictures` would delete. */
export async function countUnusedPictures (sql: Sql) {
  const [{ count }] = await sql<[{ count: number }]>`SELECT count(*)::int FROM pictures WHERE ${isLongUnused(sql)}`
  return count
}

/**
 * Deletes pictures that have been unused for a day, and records since when pictures are unused. With a `userId`,
 * examines only the pictures of this user. Returns the number of deleted pictures.
 */
export async function deleteUnusedPictures (sql: Sql, userId?: string) {
  const examined = userId === undefined ? sql`true` : sql`user_id = ${userId}`
  await sql`
    UPDATE pictures SET unused_since = CASE WHEN unused_since IS NULL THEN now() END
    WHERE ${examined} AND (unused_since IS NULL) <> EXISTS (${pictureUses(sql)})
  `
  const { count } = await sql`
    DELETE FROM pictures WHERE ${examined} AND ${isLongUnused(sql)}
  `
  return count
}

/**
 * SQL condition: `pictures.id` outlives the account of its owner, because a page or a published post shows it. With
 * `withBlogs`, the posts of the owner are deleted.
 */
export const isKept = (sql: TransactionSql, withBlogs: boolean) => sql`
  EXISTS (
    SELECT FROM (${pictureUses(sql)}) AS uses WHERE NOT is_own OR (is_published AND NOT ${withBlogs}::boolean)
  )
`

/** Removes a picture from the profile of its owner, and from their posts except from their texts. */
export async function removeFromOwner (sql: TransactionSql, id: string) {
  await sql`UPDATE users SET avatar = NULL WHERE picture_ids(avatar) @> ARRAY[${id}::uuid]`
  await sql`
    UPDATE blogs SET image_url = NULL FROM pictures
    WHERE pictures.id = ${id} AND author_id = user_id AND ${keysOfPost(sql)} && ${keysOfPicture(sql)}
      AND picture_ids(image_url) @> ARRAY[pictures.id]
  `
}
