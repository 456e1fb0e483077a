import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { AnySql } from '../database/pools.ts'
import { arrayOf } from '../database/columns.ts'

/**
 * SQL statement that revokes all tokens of some users. The query `users` selects their `id`s and locks the rows, so
 * that requests that create a calendar wait. Returns the `epoch` of each user's next tokens. Use it as a CTE of the
 * statement that sets a password, so that both commit together.
 */
export const revokeTokens = (sql: AnySql, users: PendingQuery<Row[]>) => sql`
  INSERT INTO revoked_tokens (user_id) SELECT id FROM (${users}) AS users
  ON CONFLICT (user_id) DO UPDATE SET epoch = excluded.epoch, revoked_at = excluded.revoked_at
  RETURNING user_id, epoch
`

/**
 * Revokes a user's calendar link, in the transaction that revoked the user's tokens. It needs a second statement: while
 * `revokeTokens` waited for the lock, a parallel request may have created a calendar that its snapshot does not
 * contain.
 */
export async function revokeCalendar (sql: TransactionSql, userId: string) {
  await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
}

/** SQL column: the epoch of a user's tokens, for the statement that reads the user's credentials. */
export const epochOf = (sql: AnySql) => sql`(SELECT epoch FROM revoked_tokens WHERE user_id = users.id)`

/** SQL column: the epochs of users with revoked tokens, as a JSON object by user id, or null. */
export const epochsOf = (sql: AnySql, userIds: string[]) => sql`(
  SELECT json_object_agg(user_id, epoch) FROM revoked_tokens WHERE user_id = ANY (${arrayOf(userIds)}::uuid[])
)`
