import type { Sql } from '../database/pools.ts'
import { NIL_UUID } from '../values/formats.ts'

/** The columns that contain URLs of pictures as people sent them. Avatars are ids. */
const COLUMNS = {
  blogs: ['image_url', 'content'],
  clubs: ['image_url'],
  events: ['image_url'],
  mentors: ['image_url'],
  testimonials: ['image_url'],
}

/** Maximum number of rows per transaction, so that nobody waits long for a locked row. */
const BATCH_ROWS = 250

/**
 * Replaces the base URL of pictures in all rows, after the service has moved to a different URL. Returns the number of
 * rows. A dry run only counts. If it is interrupted, a second call changes the rest.
 */
export async function movePictures (sql: Sql, { from, to, dryRun }: { from: string, to: string, dryRun: boolean }) {
  const [before, after] = [`${from}/pictures/`, `${to}/pictures/`]
  let moved = 0
  for (const [table, columns] of Object.entries(COLUMNS)) {
    const isFound = columns.map(column => sql`strpos(${sql(column)}, ${before}) > 0`)
      .reduce((all, one) => sql`${all} OR ${one}`)
    if (dryRun) {
      const [{ count }] = await sql<[{ count: number }]>`SELECT count(*)::int FROM ${sql(table)} WHERE ${isFound}`
      moved += count
      continue
    }
    const changes = columns.map(column => sql`${sql(column)} = replace(${sql(column)}, ${before}, ${after})`)
      .reduce((all, one) => sql`${all}, ${one}`)
    for (let last: string | undefined = NIL_UUID; last;) {
      const rows: { id: string }[] = await sql`
        WITH found AS (
          SELECT id FROM ${sql(table)} WHERE id > ${last} AND (${isFound}) ORDER BY id LIMIT ${BATCH_ROWS} FOR UPDATE
        ), changed AS (
          UPDATE ${sql(table)} SET ${changes} WHERE id IN (SELECT id FROM found)
        )
        SELECT id FROM found ORDER BY id
      `
      moved += rows.length
      last = rows.at(-1)?.id
    }
  }
  return moved
}
