import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'

/**
 * The statement that ends all tokens of the users whose `id` a query finds, and locks, so that a calendar that is being
 * made waits. It returns a row for each, with the `epoch` of the tokens that are issued from now on. As a CTE of the
 * statement that sets a password, both are committed or neither.
 */
export const endTokens = (sql: Sql, users: PendingQuery<Row[]>) => sql`
  INSERT INTO ended_tokens (user_id) SELECT id FROM (${users}) AS users
  ON CONFLICT (user_id) DO UPDATE SET epoch = excluded.epoch, ended_at = excluded.ended_at
  RETURNING user_id, epoch
`

/**
 * Ends the address of the user's calendar, in the transaction that has ended their tokens. Not in the same statement,
 * which would not see the calendar of a request that it waited for to lock the user.
 */
export async function endCalendar (sql: TransactionSql, userId: string) {
  await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
}

/** The column with the epoch of the tokens of the user at hand, to be read with what the user is recognized by. */
export const epochOf = (sql: Sql) => sql`(SELECT epoch FROM ended_tokens WHERE user_id = users.id)`

/** The column with the epochs of these users, if their tokens were ended: a JSON object by id, or null. */
export const epochsOf = (sql: Sql, userIds: string[]) => sql`(
  SELECT json_object_agg(user_id, epoch) FROM ended_tokens WHERE user_id = ANY (${`{${userIds.join()}}`}::uuid[])
)`
