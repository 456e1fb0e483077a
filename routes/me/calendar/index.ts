import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { createSecretToken, hashSecretToken } from '../../../lib/auth/secret-tokens.ts'
import { audit } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { deleteCalendar, replaceCalendar } from './queries.ts'
import * as schemas from './schemas.ts'

/** The link to the calendar of the signed-in user. */
const calendar: FastifyPluginAsyncTypebox = async app => {
  app.post('/', {
    onRequest: app.authenticate,
    schema: schemas.create,
    config: { failure: 'Error creating calendar', transaction: true },
  }, async (request, reply) => {
    const token = createSecretToken()
    const calendar = await replaceCalendar(app.sql, request.user, hashSecretToken(token))
    audit(request, 'calendar-created')
    reply.code(201)
    return { calendar: { path: `/feeds/me/${token}.ics`, ...calendar } }
  })

  app.delete('/', {
    onRequest: app.authenticate,
    schema: schemas.remove,
    config: { failure: 'Error deleting calendar' },
  }, async request => {
    if (!await deleteCalendar(app.sql, request.user.id)) throw new HttpError(404, 'Calendar not found')
    audit(request, 'calendar-deleted')
    return { message: 'Calendar deleted successfully' }
  })
}

export default calendar
