import type { Config } from '../config/config.ts'
import { type AnySql, expectOne, type Sql } from '../database/pools.ts'
import { type Attempt, createOnce, readCreated } from '../database/idempotency.ts'
import { HttpError } from '../http/errors.ts'
import type { Picture } from './convert.ts'
import { tooManyPictures } from './refusals.ts'
import { deleteUnusedPictures } from './uses.ts'

/** A picture without its URL, which depends on the URL of the service. */
export interface StoredPicture {
  id: string
  width: number
  height: number
  createdAt: string
}

/**
 * Returns the picture that an earlier upload with the same key has stored. Without one, rejects like `insertPicture`,
 * because uploads beyond the quota would otherwise cost a conversion each.
 */
export async function prepareUpload (sql: Sql, userId: string, config: Config, attempt: Attempt | undefined) {
  const known = attempt && await readCreated(sql, attempt, ids => findPicture(sql, ids))
  if (known) return known[0]
  await deleteUnusedPictures(sql, userId)
  await assertRoom(sql, userId, config, 1)
  return undefined
}

/**
 * Stores a picture, and only one if uploads have the same key. Rejects with 401 for an unknown user, and 409 beyond the
 * quota.
 */
export function insertPicture (
  sql: Sql, userId: string, { large, small, width, height }: Picture, config: Config, attempt: Attempt | undefined
): Promise<StoredPicture> {
  return sql.begin(async sql => expectOne((await createOnce(sql, attempt, async () => {
    // Parallel uploads of an account wait here, so that the next statement counts all pictures.
    await sql`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    await assertRoom(sql, userId, config, large.length + small.length)
    return sql<StoredPicture[]>`
      INSERT INTO pictures (user_id, large, small, width, height)
      VALUES (${userId}, ${large}, ${small}, ${width}, ${height})
      RETURNING ${columns(sql)}
    `
  }, ids => findPicture(sql, ids))).rows))
}

const columns = (sql: AnySql) => sql`id, width, height, iso8601(created_at) AS "createdAt"`

const findPicture = (sql: AnySql, [id]: string[]) => sql<StoredPicture[]>`
  SELECT ${columns(sql)} FROM pictures WHERE id = ${id!}
`

/** Rejects with 401 for an unknown user, and 409 if the quota has no room for another picture of so many bytes. */
async function assertRoom (
  sql: AnySql, userId: string, { PICTURES_PER_USER, PICTURE_MB_PER_USER }: Config, bytes: number
) {
  const [used] = await sql<{ count: number, bytes: number }[]>`
    SELECT
      count(pictures.id)::float8, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes
    FROM users LEFT JOIN pictures ON user_id = users.id WHERE users.id = ${userId} GROUP BY users.id
  `
  if (!used) throw new HttpError(401, 'Unauthorized')
  if (used.count >= PICTURES_PER_USER || used.bytes + bytes > PICTURE_MB_PER_USER * 1_000_000) {
    throw new HttpError(409, tooManyPictures(PICTURES_PER_USER, PICTURE_MB_PER_USER))
  }
}
