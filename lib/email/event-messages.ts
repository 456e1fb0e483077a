import type { TransactionSql } from 'postgres'

/**
 * Removes the sender from the messages about events that still wait to be sent, and deletes the other messages of this
 * user. Call it before you delete the user, because the foreign key would delete all of them.
 */
export async function releaseMessages (sql: TransactionSql, senderId: string) {
  await sql`
    UPDATE event_messages SET sender_id = NULL WHERE sender_id = ${senderId} AND (
      EXISTS (SELECT FROM email_batches WHERE due_at <> 'infinity' AND data ->> 'message' = event_messages.id::text)
      -- An operator can send a failed email again.
      OR EXISTS (SELECT FROM emails WHERE status <> 'sent' AND data ->> 'message' = event_messages.id::text)
    )
  `
}
