import type { Config } from '../config/config.ts'
import { type AnySql, expectOne, PER_CONNECTION, type Sql } from '../database/pools.ts'
import { type Attempt, createOnce, readCreated } from '../database/idempotency.ts'
import type { Client, FairQueue } from '../http/fair-queue.ts'
import { HttpError } from '../http/errors.ts'
import type { Convert, Picture } from './convert.ts'
import { tooManyPictures, tooManyUploads } from './refusals.ts'
import { deleteUnusedPictures } from './uses.ts'

/** A picture without its URL, which depends on the URL of the service. */
export interface StoredPicture {
  id: string
  width: number
  height: number
  createdAt: string
}

/** Maximum number of pictures per account, and their maximum total size in bytes. */
interface Quota {
  count: number
  bytes: number
}

/**
 * If uploads were converted at once, six of eight pictures with 40 megapixels would be lost in a process with 512 MB.
 * Creates a function that stores uploads one after the other, and a function that ends their waits. Statements wait for
 * a place of operations, whose holders never wait for an upload.
 */
export function createPictureStore (
  sql: Sql, { pictures, operations }: Record<'pictures' | 'operations', FairQueue>, config: Config, convert: Convert
) {
  const quota = { count: config.PICTURES_PER_USER, bytes: config.PICTURE_MB_PER_USER * 1_000_000 }
  let isStopping = false

  return { storePicture, endWaits }

  /**
   * Converts and stores a picture. Rejects with 401 for an unknown user, 409 beyond the quota, 503 if the wait ends,
   * and the errors of `convertPicture`.
   */
  function storePicture (
    client: Client, { userId, attempt, bytes }: { userId: string, attempt: Attempt | undefined, bytes: Buffer }
  ) {
    const isWanted = () => client.isWanted() && !isStopping
    return pictures.run({ network: client.network, isWanted }, async () => {
      const stored = await operations.run(client, async () => {
        const known = attempt && await readCreated(sql, attempt, ids => findPicture(sql, ids))
        if (known) return known[0]
        await deleteUnusedPictures(sql, userId)
        // Otherwise, uploads beyond the quota would cost a conversion each.
        await assertRoom(sql, userId, quota, 1)
        return undefined
      })
      if (stored) return stored
      if (!isWanted()) throw tooManyUploads()
      const picture = await convert(bytes, config.MAX_PICTURE_BYTES)
      return operations.run(client, () => insertPicture(sql, userId, picture, quota, attempt), PER_CONNECTION)
    })
  }

  /** Refuses uploads that wait, and uploads from now on. */
  function endWaits () {
    isStopping = true
    pictures.check()
  }
}

/**
 * Stores a picture, and only one if uploads have the same key. Rejects with 401 for an unknown user, and 409 beyond the
 * quota.
 */
function insertPicture (
  sql: Sql, userId: string, { large, small, width, height }: Picture, quota: Quota, attempt: Attempt | undefined
): Promise<StoredPicture> {
  return sql.begin(async sql => expectOne(await createOnce(sql, attempt, async () => {
    // Parallel uploads of an account wait here, so that the next statement counts all pictures.
    await sql`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    await assertRoom(sql, userId, quota, large.length + small.length)
    return sql<StoredPicture[]>`
      INSERT INTO pictures (user_id, large, small, width, height)
      VALUES (${userId}, ${large}, ${small}, ${width}, ${height})
      RETURNING ${columns(sql)}
    `
  }, ids => findPicture(sql, ids))))
}

const columns = (sql: AnySql) => sql`id, width, height, iso8601(created_at) AS "createdAt"`

const findPicture = (sql: AnySql, [id]: string[]) => sql<StoredPicture[]>`
  SELECT ${columns(sql)} FROM pictures WHERE id = ${id!}
`

/** Rejects with 401 for an unknown user, and 409 if the quota has no room for another picture of so many bytes. */
async function assertRoom (sql: AnySql, userId: string, quota: Quota, bytes: number) {
  const [used] = await sql<Quota[]>`
    SELECT
      count(pictures.id)::float8, coalesce(sum(octet_length(large) + octet_length(small)), 0)::float8 AS bytes
    FROM users LEFT JOIN pictures ON user_id = users.id WHERE users.id = ${userId} GROUP BY users.id
  `
  if (!used) throw new HttpError(401, 'Unauthorized')
  if (used.count >= quota.count || used.bytes + bytes > quota.bytes) {
    throw new HttpError(409, tooManyPictures(quota.count, quota.bytes / 1_000_000))
  }
}
