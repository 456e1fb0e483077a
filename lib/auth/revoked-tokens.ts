import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'

/**
 * The statement that revokes all tokens of some users. `users` is a query that finds their `id`s and locks the rows, so
 * that a request that is creating a calendar waits. The statement returns the `epoch` of each user's next tokens. It is
 * a CTE of the statement that sets a password, so that both are committed or neither.
 */
export const revokeTokens = (sql: Sql | TransactionSql, users: PendingQuery<Row[]>) => sql`
  INSERT INTO revoked_tokens (user_id) SELECT id FROM (${users}) AS users
  ON CONFLICT (user_id) DO UPDATE SET epoch = excluded.epoch, revoked_at = excluded.revoked_at
  RETURNING user_id, epoch
`

/**
 * Revokes the secret URL of a user's calendar, in the transaction that revoked the user's tokens. The statement that
 * revoked them could not do it: while it waited for the lock on the user, another request may have created a calendar,
 * which that statement would not see.
 */
export async function revokeCalendar (sql: TransactionSql, userId: string) {
  await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
}

/** A column with the epoch of a user's tokens, for the statement that reads the user's credentials. */
export const epochOf = (sql: Sql) => sql`(SELECT epoch FROM revoked_tokens WHERE user_id = users.id)`

/** A column with the epochs of the users whose tokens were revoked: a JSON object by user id, or null. */
export const epochsOf = (sql: Sql, userIds: string[]) => sql`(
  SELECT json_object_agg(user_id, epoch) FROM revoked_tokens WHERE user_id = ANY (${`{${userIds.join()}}`}::uuid[])
)`
