import type { Static } from '@sinclair/typebox'
import type { TransactionSql } from 'postgres'

import { isManagedBy } from '../../../lib/accounts/permissions.ts'
import { comingTo } from '../../../lib/agenda/seats.ts'
import type { Sql } from '../../../lib/database/client.ts'
import { arrayOf, type Attempt, createOnce } from '../../../lib/database/idempotency.ts'
import { reachOf } from '../../../lib/email/notifications.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import type { Role } from '../../../lib/values/roles.ts'
import type { Reach } from '../../../lib/values/schemas.ts'
import type { EventMessage } from './schemas.ts'

/** A message with the number of people whom it reaches. */
interface SentMessage {
  id: string
  reach: Static<typeof Reach>
}

/**
 * Enqueues a message to everybody who comes to an event, and only one if requests have the same key. Returns how many
 * people it reaches. `onNew` runs in the transaction, and only if this is not a repeated request. Throws a 404 if the
 * event does not exist any more or the user may not manage it. Deletes some messages older than 60 days, whose emails
 * no longer exist.
 */
export async function insertMessage (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>,
  { user, eventId, message: { subject, text }, attempt }: {
    user: { id: string, role: Role }, eventId: string, message: EventMessage, attempt: Attempt | undefined
  },
  onNew: (transaction: TransactionSql) => Promise<void>
) {
  const [sent] = await sql.begin(async transaction => {
    // The lock order of an erasure prevents a deadlock.
    await transaction`SELECT FROM users WHERE id = ${user.id} FOR KEY SHARE`
    return createOnce(transaction, attempt, async () => {
      await onNew(transaction)
      const messages = await transaction<SentMessage[]>`
        WITH past AS (
          DELETE FROM event_messages WHERE id IN (
            SELECT id FROM event_messages WHERE created_at < now() - interval '60 days'
            ORDER BY created_at LIMIT 10 FOR UPDATE SKIP LOCKED
          )
        ), message AS (
          INSERT INTO event_messages (event_id, sender_id, subject, text)
          SELECT events.id, users.id, ${subject}, ${text} FROM events CROSS JOIN users
          WHERE events.id = ${eventId} AND users.id = ${user.id} AND ${isManagedBy(sql, user)}
          RETURNING id, event_id
        ), emailed AS (${outbox.enqueueBatch('event-message', sql`
          SELECT
            NULL AS key, jsonb_build_object('message', id) AS data, NULL::uuid AS event_id,
            ${comingTo(sql, sql`message.event_id`)} AS user_ids
          FROM message
        `, user.id)})
        SELECT id, ${reachOf(sql, 'event-message', sql`message.event_id`)} AS reach FROM message
      `
      if (messages.length === 0) throw new HttpError(404, 'Event not found')
      return messages
    }, ids => transaction<SentMessage[]>`
      SELECT id, ${reachOf(sql, 'event-message', sql`event_messages.event_id`)} AS reach FROM event_messages
      WHERE id = ANY (${arrayOf(ids)}::uuid[])
    `)
  })
  return sent!.reach
}
