import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import { HttpError } from '../errors.ts'
import { FairQueue } from '../fair-queue.ts'
import type { Client } from '../http/client-network.ts'
import { PICTURE_WAIT_SECONDS } from '../timeout.ts'
import { convertPicture, type Picture } from './convert.ts'
import { tooManyPictures, tooManyUploads } from './refusals.ts'
import { deleteUnusedPictures } from './stored.ts'

/** An uploaded file. */
export interface Upload {
  bytes: Buffer
  userId: string
  client: Client
}

/** A picture without its URL, which depends on the address of the service. */
export interface StoredPicture {
  id: string
  width: number
  height: number
  createdAt: string
}

/** Maximum number of waiting uploads. The memory budget counts their bytes. */
export const QUEUE_LENGTH = 20

/** Runs one conversion at a time, and is fair by network. */
const queue = new FairQueue({
  concurrency: 1,
  maxLength: QUEUE_LENGTH,
  maxWaitMs: PICTURE_WAIT_SECONDS * 1000,
  createError: tooManyUploads,
})

/** Rejects with a 503 if no upload of this client can be taken, so that refused uploads do not hold memory. */
export const assertRoomForUpload = (client: Client) => queue.assertNotFull(client)

/** Converts and stores an uploaded picture of a user. Rejects with the errors that `POST /me/pictures` declares. */
export async function storePicture (sql: Sql, config: Config, { bytes, userId, client }: Upload) {
  const { MAX_PICTURE_BYTES, PICTURES_PER_USER, PICTURE_MB_PER_USER } = config
  const picture = await queue.run(client, () => convertPicture(bytes, MAX_PICTURE_BYTES))
  await deleteUnusedPictures(sql, userId)
  const stored = await insertPicture(sql, userId, picture, {
    count: PICTURES_PER_USER, bytes: PICTURE_MB_PER_USER * 1_000_000,
  })
  if (!stored) throw new HttpError(401, 'Unauthorized')
  if (stored === 'quota') throw new HttpError(409, tooManyPictures(PICTURES_PER_USER, PICTURE_MB_PER_USER))
  return stored
}

/** Maximum number of pictures per account, and their maximum total size in bytes. */
interface Quota {
  count: number
  bytes: number
}

/** Stores a picture. Returns the picture, `quota` if the quota is used up, or `undefined` for an unknown user. */
export function insertPicture (
  sql: Sql, userId: string, { large, small, width, height }: Picture, quota: Quota
): Promise<StoredPicture | 'quota' | undefined> {
  return sql.begin(async transaction => {
    // Parallel uploads of an account wait here, so that the next statement counts all pictures.
    const { count: users } = await transaction`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    if (users === 0) return undefined
    const [stored] = await transaction<[Quota]>`
      SELECT count(*)::float8, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes
      FROM pictures WHERE user_id = ${userId}
    `
    if (stored.count >= quota.count || stored.bytes + large.length + small.length > quota.bytes) return 'quota'
    const [picture] = await transaction<[StoredPicture]>`
      INSERT INTO pictures (user_id, large, small, width, height)
      VALUES (${userId}, ${large}, ${small}, ${width}, ${height})
      RETURNING id, width, height, iso8601(created_at) AS "createdAt"
    `
    return picture
  })
}
