import type { FastifyRequest } from 'fastify'

import type { Config } from '../config.ts'
import type { TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'
import { HttpError } from '../errors.ts'
import { PUBLIC_URL_REQUIRED } from './refusals.ts'

/**
 * Returns the base URL of the pictures of this service: below PUBLIC_URL or, in development, below the host of the
 * request. Throws a 501 in production without PUBLIC_URL, because clients can send any host.
 */
export function picturesUrl ({ PUBLIC_URL, NODE_ENV }: Config, { protocol, host }: FastifyRequest) {
  if (!PUBLIC_URL && NODE_ENV === 'production') throw new HttpError(501, PUBLIC_URL_REQUIRED)
  return `${PUBLIC_URL ?? `${protocol}://${host}`}/pictures/`
}

/**
 * SQL query: the rows that use `pictures.id`, with kind, id and name, and whether the owner of the picture may see this
 * use. Drafts and avatars of other users are hidden.
 */
export const pictureUses = (sql: Sql | TransactionSql) => sql`
  SELECT
    'avatar' AS kind, users.id, concat_ws(' ', first_name, last_name) AS name,
    users.id = pictures.user_id AS is_visible
  FROM users WHERE picture_ids(avatar) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'blog', blogs.id, title, status = 'PUBLISHED' OR author_id = pictures.user_id
  FROM blogs WHERE picture_ids(image_url) @> ARRAY[pictures.id] OR picture_ids(content) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'club', clubs.id, clubs.name, true FROM clubs WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'event', events.id, title, true FROM events WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'mentor', mentors.id, mentors.name, true FROM mentors WHERE picture_ids(image_url) @> ARRAY[pictures.id]
  UNION ALL
  SELECT 'testimonial', testimonials.id, testimonials.name, true
  FROM testimonials WHERE picture_ids(image_url) @> ARRAY[pictures.id]
`

/** Counts the stored pictures and their bytes. Reads only their lengths. */
export async function countPictures (sql: Sql) {
  const [counts] = await sql<[{ count: number, bytes: number }]>`
    SELECT count(*)::int, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes FROM pictures
  `
  return counts
}

/** SQL condition: a picture has been unused for a day. */
const isPast = (sql: Sql) => sql`unused_since < now() - interval '1 day' AND NOT EXISTS (${pictureUses(sql)})`

/** Counts the pictures that `deleteUnusedPictures` would delete. */
export async function countUnusedPictures (sql: Sql) {
  const [{ count }] = await sql<[{ count: number }]>`SELECT count(*)::int FROM pictures WHERE ${isPast(sql)}`
  return count
}

/**
 * Deletes pictures that have been unused for a day, and records since when pictures are unused. With a `userId`,
 * examines only the pictures of this user and pictures without an owner. Returns the number of deleted pictures.
 */
export async function deleteUnusedPictures (sql: Sql, userId?: string) {
  const examined = userId === undefined ? sql`true` : sql`(user_id = ${userId} OR user_id IS NULL)`
  await sql`
    UPDATE pictures SET unused_since = CASE WHEN unused_since IS NULL THEN now() END
    WHERE ${examined} AND (unused_since IS NULL) <> EXISTS (${pictureUses(sql)})
  `
  const { count } = await sql`
    DELETE FROM pictures WHERE ${examined} AND ${isPast(sql)}
  `
  return count
}

/** Deletes the pictures of a user, except pictures that are used elsewhere than as the user's avatar. */
export async function deletePicturesOf (sql: TransactionSql, userId: string) {
  await sql`
    DELETE FROM pictures WHERE user_id = ${userId} AND NOT EXISTS (
      SELECT FROM (${pictureUses(sql)}) AS uses WHERE kind <> 'avatar' OR uses.id <> pictures.user_id
    )
  `
}
