import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { type MessageRoute, sendMessage } from '../../agenda/messages.ts'
import * as schemas from './schemas.ts'

/** The path that version 1.0.0 has for `POST /agenda/:id/message`. */
const events: FastifyPluginAsyncTypebox = async app => {
  app.post<MessageRoute>('/:id/message', {
    onRequest: [app.requireEmail, app.requireRole('ADMIN', 'CLUB_HEAD')],
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.sendEventMessage,
    config: { failure: 'Error sending the message', transaction: true },
  }, sendMessage)
}

export default events
