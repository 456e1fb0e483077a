import type { PendingQuery, Row } from 'postgres'

import { jsonArray, nextRows, type Reader, readInBatches } from './keyset.ts'

/** A cached query with `list.keys`, see lib/cache/cached-query.ts. `nextRows` takes its keys. */
interface LongList {
  list?: { field: string, rows: PendingQuery<Row[]>, keys?: PendingQuery<Row[]> | undefined }
  fields?: PendingQuery<Row[]>
}

/**
 * Reads a body in batches, and returns the bytes that the cache would send, in pieces. The first batch is read before
 * the promise resolves, so that most errors occur before the response starts. Without a row of `fields`, the result is
 * `undefined`.
 */
export async function readLongList (read: Reader, { list, fields }: LongList) {
  const { field, rows, keys } = list!
  const [others] = await read(sql => sql<{ json: string }[]>`
    SELECT row_to_json(fields)::text AS json FROM (${fields ?? sql`SELECT`}) AS fields
  `)
  if (!others) return undefined
  const { json } = others
  // For a join instead of the subquery, PostgreSQL would read and sort all rows again for each batch.
  const items = await readInBatches<{ item: string }>(read, (sql, last) => sql`
    SELECT time, id, (SELECT row_to_json(item)::text FROM (${rows}) AS item WHERE item.id = batch.id) AS item
    FROM (${nextRows(sql, last, keys!)}) AS batch ORDER BY at DESC, id
  `)
  return pieces()

  async function * pieces () {
    yield `{"${field}":`
    yield * jsonArray(items)
    yield json === '{}' ? '}' : `,${json.slice('{'.length)}`
  }
}
