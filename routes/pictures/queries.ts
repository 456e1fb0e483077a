import type { Sql } from '../../lib/database/client.ts'

/** The bytes of a picture, in its small or its large version; `undefined` if there is no such picture. */
export async function findPicture (sql: Sql, id: string, isSmall: boolean) {
  const [picture] = await sql<{ bytes: Buffer }[]>`
    SELECT ${isSmall ? sql`small` : sql`large`} AS bytes FROM pictures WHERE id = ${id}
  `
  return picture?.bytes
}
