import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { findManagedEvent } from '../../../lib/accounts/permissions.ts'
import { consume, type RateLimit } from '../../../lib/auth/rate-limits.ts'
import { attemptOf } from '../../../lib/database/idempotency.ts'
import { audit } from '../../../lib/http/audit.ts'
import { REGISTRATIONS_NOT_ALLOWED } from '../../../lib/values/schemas.ts'
import { insertMessage } from './queries.ts'
import type { EventMessage } from './schemas.ts'
import * as schemas from './schemas.ts'

/** Maximum number of messages to event attendees within LIMIT_WINDOW. */
const MESSAGES_PER_USER = 5

/** Messages to everybody who comes to an event. */
const events: FastifyPluginAsyncTypebox = async app => {
  app.post<{ Params: { id: string }, Body: EventMessage }>('/:id/message', {
    onRequest: [app.requireEmail, app.requireRole('ADMIN', 'CLUB_HEAD')],
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.sendMessage,
    config: { failure: 'Error sending the message', transaction: true },
  }, async (request, reply) => {
    const { user, params: { id }, body } = request
    await findManagedEvent(app.sql, user, id, REGISTRATIONS_NOT_ALLOWED)
    const messages: RateLimit = {
      name: 'event-messages', key: user.id, max: MESSAGES_PER_USER, message: schemas.TOO_MANY_MESSAGES,
    }
    const reach = await insertMessage(
      app.sql, app.outbox, { user, eventId: id, message: body, attempt: attemptOf(request) },
      // A repeated request is not a new message.
      async transaction => {
        await consume(transaction, messages, app.config.LIMIT_WINDOW)
        audit(request, 'message-sent', { target: id })
      }
    )
    reply.code(202)
    return { message: 'The message is on its way', reach }
  })
}

export default events
