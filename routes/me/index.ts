import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { createCalendarToken, hashCalendarToken } from '../../lib/auth/calendar-tokens.ts'
import { removePastEnds } from '../../lib/auth/ended-tokens.ts'
import { HttpError } from '../../lib/errors.ts'
import { audit } from '../../lib/http/audit.ts'
import { deleteCalendar, endTokensOf, exportQuery, replaceCalendar } from './queries.ts'
import * as schemas from './schemas.ts'

/** What belongs to the user who is signed in. */
const me: FastifyPluginAsyncTypebox = async app => {
  app.post('/calendar', {
    onRequest: app.authenticate,
    schema: schemas.createCalendar,
    config: { failure: 'Error creating calendar' },
  }, async (request, reply) => {
    const token = createCalendarToken()
    const calendar = await replaceCalendar(app.sql, request.user.id, hashCalendarToken(token))
    if (!calendar) throw new HttpError(401, 'Unauthorized')
    audit(request, 'calendar-created')
    reply.code(201)
    return { calendar: { path: `/feeds/me/${token}.ics`, ...calendar } }
  })

  app.delete('/calendar', {
    onRequest: app.authenticate,
    schema: schemas.deleteCalendar,
    config: { failure: 'Error deleting calendar' },
  }, async request => {
    if (!await deleteCalendar(app.sql, request.user.id)) throw new HttpError(404, 'Calendar not found')
    audit(request, 'calendar-deleted')
    return { message: 'Calendar deleted successfully' }
  })

  app.delete('/tokens', {
    onRequest: app.authenticate,
    schema: schemas.endTokens,
    config: { failure: 'Error signing out' },
  }, async request => {
    await removePastEnds(app.sql, app.config.JWT_EXPIRES_IN)
    if (!await endTokensOf(app.sql, request.user.id)) throw new HttpError(401, 'Unauthorized')
    audit(request, 'tokens-ended')
    return { message: 'Signed out everywhere' }
  })

  app.get('/export', {
    onRequest: app.authenticate,
    schema: schemas.exportData,
    config: { failure: 'Error exporting data', cache: 'private' },
  }, async (request, reply) => {
    reply.header('content-disposition', 'attachment; filename="personal-data.json"')
    if (!await reply.cached(exportQuery, request.user.id)) throw new HttpError(401, 'Unauthorized')
  })
}

export default me
