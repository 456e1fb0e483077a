import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { findManagedEvent } from '../../../lib/accounts/permissions.ts'
import { consume, type RateLimit } from '../../../lib/auth/rate-limits.ts'
import { attemptOf, readCreated } from '../../../lib/database/idempotency.ts'
import { audit } from '../../../lib/http/audit.ts'
import { REGISTRATIONS_NOT_ALLOWED } from '../../../lib/schemas.ts'
import { insertMessage, readMessages } from './queries.ts'
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
    const attempt = attemptOf(request)
    // A repeated request does not count as a message.
    const [known] = (attempt && await readCreated(app.sql, attempt, ids => readMessages(app.sql, ids))) ?? []
    if (known) return reply.code(202).send({ message: 'The message is on its way', reach: known.reach })
    const messages: RateLimit = {
      name: 'event-messages', key: user.id, max: MESSAGES_PER_USER, message: schemas.TOO_MANY_MESSAGES,
    }
    await consume(app.sql, messages, app.config.LIMIT_WINDOW)
    const [sent] = await insertMessage(app.sql, app.outbox, { user, eventId: id, message: body, attempt })
    audit(request, 'message-sent', { target: id })
    return reply.code(202).send({ message: 'The message is on its way', reach: sent!.reach })
  })
}

export default events
