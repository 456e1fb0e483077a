import type { Sql } from '../../lib/database/client.ts'

/** Returns the bytes of the small or large version of a picture; `undefined` for an unknown picture. */
export async function findPicture (sql: Sql, id: string, isSmall: boolean) {
  const [picture] = await sql<{ bytes: Buffer }[]>`
    SELECT ${isSmall ? sql`small` : sql`large`} AS bytes FROM pictures WHERE id = ${id}
  `
  return picture?.bytes
}
