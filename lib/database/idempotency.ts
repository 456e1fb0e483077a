import { createHash } from 'node:crypto'

import { type TSchema, Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import type { TransactionSql } from 'postgres'

import { HttpError } from '../http/errors.ts'
import { Message, Named } from '../values/schemas.ts'
import { type AnySql, expectOne, type Sql } from './pools.ts'
import { arrayOf } from './columns.ts'

// Without an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header), 506 of 1,000 requests whose connection broke
// created a second row when they were sent again. With a key, none did. The transaction that creates also writes the
// row of the key. So a failure leaves no key, a killed process leaves no key that waits for it, and the primary key
// makes requests at the same time follow one another, on all instances. The row has ids only, so that no copy of the
// response is stored: a repeated request gets the rows as they are now.

/** Error message for a key that came with a different request. */
const KEY_USED = 'This Idempotency-Key belongs to a different request'

/** Error message for a repeated request if all that it created has been deleted. */
const CREATED_IS_GONE = 'This request was completed, and what it created has been deleted since'

/** The header for the schema of an operation. */
export const idempotencyHeaders = Type.Object({
  'Idempotency-Key': Type.Optional(Type.String({
    minLength: 1,
    maxLength: 255,
    description: 'A random text. A request that you send again with its key creates nothing twice.',
    examples: ['5f0f5e0b-4a9e-4f0e-9c55-8a1c9f0a6a2c'],
  })),
})

/** The errors for the schema of an operation. */
export const idempotencyErrors: Record<410 | 422, TSchema> = {
  410: Named('CreatedIsGone', Message(CREATED_IS_GONE)), 422: Named('KeyUsed', Message(KEY_USED)),
}

/** A request that creates once. */
export type Attempt = NonNullable<ReturnType<typeof attemptOf>>

/** The key of a request, with a hash of its method, path and body; `undefined` without the header. */
export function attemptOf ({ headers, method, url, body, user }: FastifyRequest) {
  const key = headers['idempotency-key']
  if (typeof key !== 'string') return undefined
  const content = body instanceof Buffer ? body : JSON.stringify(body)
  return {
    userId: user.id,
    key: createHash('sha256').update(key).digest(),
    request: createHash('sha256').update(`${method} ${url}\n`).update(content).digest(),
  }
}

/**
 * Runs `create` and returns the rows that it created. If an earlier request of the user with this key has done so,
 * returns what `read` finds of these rows instead, and they are not `isNew`. A request with the same key that is still
 * running is waited for. Throws a 422 if the earlier request was a different one, and a 410 if `read` finds nothing.
 */
export async function createOnce<Row extends { id: string }> (
  sql: TransactionSql, attempt: Attempt | undefined,
  create: () => Promise<Row[]>, read: (ids: string[]) => Promise<Row[]>
): Promise<{ rows: Row[], isNew: boolean }> {
  if (!attempt) return { rows: await create(), isNew: true }
  const { userId, key, request } = attempt
  // Also deletes some other old keys. A user who was deleted gets no key, but the error of the operation.
  const { count } = await sql`
    WITH past AS (
      DELETE FROM idempotency_keys WHERE (user_id, key) IN (
        SELECT user_id, key FROM idempotency_keys
        WHERE created_at < now() - interval '1 day' AND (user_id, key) <> (${userId}, ${key}::bytea)
        ORDER BY created_at LIMIT 10 FOR UPDATE SKIP LOCKED
      )
    )
    INSERT INTO idempotency_keys (user_id, key, request)
    SELECT id, ${key}::bytea, ${request}::bytea FROM users WHERE id = ${userId}
    ON CONFLICT DO NOTHING
  `
  const known = count === 0 && await readCreated(sql, attempt, read)
  if (known) return { rows: known, isNew: false }
  const rows = await create()
  await sql`
    UPDATE idempotency_keys SET created_ids = ${arrayOf(rows.map(({ id }) => id))}::uuid[]
    WHERE user_id = ${userId} AND key = ${key}
  `
  return { rows, isNew: true }
}

/**
 * Returns the row that `insert` adds, and adds only one if requests have the same key; the row of a repeated request is
 * not `isNew`. A request without a key needs no transaction.
 */
export async function insertOnce<Row extends { id: string }> (
  sql: Sql, attempt: Attempt | undefined,
  insert: (sql: AnySql) => Promise<Row[]>, read: (sql: TransactionSql, id: string) => Promise<Row[]>
): Promise<{ row: Row, isNew: boolean }> {
  if (!attempt) return { row: expectOne(await insert(sql)), isNew: true }
  return sql.begin(async sql => {
    const { rows, isNew } = await createOnce(sql, attempt, () => insert(sql), ([id]) => read(sql, id!))
    return { row: expectOne(rows), isNew }
  })
}

/** Returns the remaining rows that an earlier request has created; `undefined` for a new key. */
export async function readCreated<Row> (
  sql: AnySql, { userId, key, request }: Attempt, read: (ids: string[]) => Promise<Row[]>
) {
  const [known] = await sql<{ isSame: boolean, ids: string[] }[]>`
    SELECT request = ${request} AS "isSame", to_jsonb(created_ids) AS ids FROM idempotency_keys
    WHERE user_id = ${userId} AND key = ${key}
  `
  if (!known) return undefined
  if (!known.isSame) throw new HttpError(422, KEY_USED)
  const rows = await read(known.ids)
  if (rows.length === 0) throw new HttpError(410, CREATED_IS_GONE)
  return rows
}
