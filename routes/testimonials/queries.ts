import type { Static } from '@sinclair/typebox'
import type { CachedQuery } from '../../lib/cache/index.ts'
import { type AnySql, expectOne, type Sql } from '../../lib/database/pools.ts'
import { assignments, pageOf, rowCount } from '../../lib/database/columns.ts'
import { type Attempt, insertOnce } from '../../lib/database/idempotency.ts'
import type { create, update } from './schemas.ts'

type Testimonial = Static<typeof create.response[201]>['testimonial']
type NewTestimonial = Static<typeof create.body>

const columns = (sql: AnySql) => sql`
  id, name, image_url AS "imageUrl", batch_year AS "batchYear", content, iso8601(created_at) AS "createdAt"
`

export const testimonialsQuery = (sql: Sql, page: number, limit: number): CachedQuery => ({
  list: {
    field: 'items',
    rows: sql`
      SELECT ${columns(sql)} FROM testimonials
      ORDER BY created_at DESC, id
      ${pageOf(sql, page, limit)}
    `,
  },
  fields: sql`SELECT ${page}::bigint AS page, ${limit}::bigint AS limit, ${rowCount(sql, 'testimonials')} AS total`,
})

/** Adds a testimonial, and only one if requests have the same key. */
export const insertTestimonial = (
  sql: Sql, { name, content, batchYear, imageUrl }: NewTestimonial, attempt: Attempt | undefined
) => insertOnce(sql, attempt, sql => sql<Testimonial[]>`
  INSERT INTO testimonials (name, content, batch_year, image_url)
  VALUES (${name}, ${content}, ${batchYear}, ${imageUrl ?? null})
  RETURNING ${columns(sql)}
`, (sql, id) => sql<Testimonial[]>`
  SELECT ${columns(sql)} FROM testimonials WHERE id = ${id}
`)

/** Changes the given fields. */
export async function updateTestimonial (sql: Sql, id: string, changes: Static<typeof update.body>) {
  return expectOne(await sql<Testimonial[]>`
    UPDATE testimonials SET ${assignments(sql, changes, ['name', 'content', 'batchYear', 'imageUrl'])}
    WHERE id = ${id}
    RETURNING ${columns(sql)}
  `)
}

export async function deleteTestimonial (sql: Sql, id: string) {
  expectOne(await sql`DELETE FROM testimonials WHERE id = ${id} RETURNING id`)
}
