import type { BodyFormat, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/pools.ts'
import { WEBP } from '../../lib/pictures/uses.ts'

const format: BodyFormat<{ bytes: string }> = {
  contentType: WEBP,
  * write ({ bytes }) { yield Buffer.from(bytes, 'base64') },
}

/** Reads the small version of a picture. */
export const smallPictureQuery = (sql: Sql, id: string): CachedQuery => ({
  fields: sql`SELECT encode(small, 'base64') AS bytes FROM pictures WHERE id = ${id}`,
  format,
})

/**
 * Returns the large version of a picture; `undefined` for an unknown picture. Base64 is shorter than the hexadecimal
 * digits of the driver, which cannot read other values of `bytea_output`.
 */
export async function findLargePicture (sql: Sql, id: string) {
  const [picture] = await sql<{ bytes: string }[]>`
    SELECT encode(large, 'base64') AS bytes FROM pictures WHERE id = ${id}
  `
  return picture && Buffer.from(picture.bytes, 'base64')
}
