import type { Static } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { findManagedEvent, isManagedBy, type User } from '../../lib/accounts/permissions.ts'
import { comingTo } from '../../lib/agenda/seats.ts'
import { consume } from '../../lib/auth/rate-limits.ts'
import type { Sql } from '../../lib/database/pools.ts'
import { arrayOf } from '../../lib/database/columns.ts'
import { type Attempt, attemptOf, createOnce } from '../../lib/database/idempotency.ts'
import { reachOf } from '../../lib/email/notifications.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { type Reach, REGISTRATIONS_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import { type sendMessage as schema, TOO_MANY_MESSAGES } from './schemas.ts'

/** Maximum number of messages to event attendees within LIMIT_WINDOW. */
const MESSAGES_PER_USER = 5

/** A message to everyone who comes to the event in the path. */
export interface MessageRoute {
  Params: { id: string }
  Body: Static<typeof schema.body>
}

/** The handler of `POST /agenda/:id/message`, and of the path of version 1.0.0. */
export async function sendMessage (request: FastifyRequest<MessageRoute>, reply: FastifyReply) {
  const { server: { sql, outbox, config }, user, params: { id }, body } = request
  await findManagedEvent(sql, user, id, REGISTRATIONS_NOT_ALLOWED)
  const { reach, isNew } = await insertMessage(sql, outbox, {
    user, eventId: id, message: body, attempt: attemptOf(request), windowSeconds: config.LIMIT_WINDOW,
  })
  if (isNew) audit(request, 'message-sent', { target: id })
  reply.code(202)
  return { message: 'The message is on its way', reach } as const
}

/** A message with the number of people whom it reaches. */
interface SentMessage {
  id: string
  reach: Static<typeof Reach>
}

/**
 * Enqueues a message to the attendees of an event, and only one if requests have the same key. Returns how many people
 * it reaches, and whether this is not a repeated request. Throws a 429 after too many new messages of the user, and a
 * 404 if the event does not exist any more or the user may not manage it. Deletes some messages older than 60 days,
 * whose emails no longer exist.
 */
function insertMessage (
  sql: Sql, outbox: Outbox,
  { user, eventId, message: { subject, text }, attempt, windowSeconds }: {
    user: User, eventId: string, message: MessageRoute['Body'], attempt: Attempt | undefined, windowSeconds: number
  }
) {
  return sql.begin(async sql => {
    // The lock order of an erasure prevents a deadlock.
    await sql`SELECT FROM users WHERE id = ${user.id} FOR KEY SHARE`
    const { rows: [sent], isNew } = await createOnce(sql, attempt, async () => {
      await consume(sql, {
        name: 'event-messages', key: user.id, max: MESSAGES_PER_USER, message: TOO_MANY_MESSAGES,
      }, windowSeconds)
      const inserted = await sql<SentMessage[]>`
        WITH past AS (
          DELETE FROM event_messages WHERE id IN (
            SELECT id FROM event_messages WHERE created_at < now() - interval '60 days'
            ORDER BY created_at LIMIT 10 FOR UPDATE SKIP LOCKED
          )
        ), message AS (
          INSERT INTO event_messages (event_id, sender_id, subject, text)
          SELECT events.id, users.id, ${subject}, ${text} FROM events CROSS JOIN users
          WHERE events.id = ${eventId} AND users.id = ${user.id} AND ${isManagedBy(sql, user)}
          -- Waits for a deletion that is running, so that it is a 404.
          FOR KEY SHARE OF events
          RETURNING id, event_id
        ), emailed AS (${outbox.enqueueBatch('event-message', sql`
          SELECT
            NULL AS key, jsonb_build_object('message', id) AS data, NULL::uuid AS event_id,
            ${comingTo(sql, sql`message.event_id`)} AS user_ids
          FROM message
        `, user.id)})
        SELECT id, ${reachOf(sql, 'event-message', sql`message.event_id`)} AS reach FROM message
      `
      if (inserted.length === 0) throw new HttpError(404, 'Event not found')
      return inserted
    }, ids => sql<SentMessage[]>`
      SELECT id, ${reachOf(sql, 'event-message', sql`event_messages.event_id`)} AS reach FROM event_messages
      WHERE id = ANY (${arrayOf(ids)}::uuid[])
    `)
    return { reach: sent!.reach, isNew }
  })
}
