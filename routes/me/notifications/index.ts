import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit, changedFields } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { notificationsQuery, setNotifications } from './queries.ts'
import * as schemas from './schemas.ts'

/** The email preferences of the signed-in user. */
const notifications: FastifyPluginAsyncTypebox = async app => {
  const reminderHours = app.outbox.isConfigured ? app.config.REMINDER_HOURS : 0

  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.list,
    config: { failure: 'Error fetching notifications', cache: 'private' },
  }, async (request, reply) => {
    const isUser = await reply.sendCached(notificationsQuery, request.user.id, reminderHours)
    if (!isUser) throw new HttpError(401, 'Unauthorized')
  })

  app.put('/', {
    onRequest: app.authenticate,
    schema: schemas.set,
    config: { failure: 'Error changing notifications', transaction: true },
  }, async request => {
    const wanted = request.body.notifications
    const notifications = await setNotifications(app.sql, request.user.id, wanted)
    if (!notifications) throw new HttpError(401, 'Unauthorized')
    audit(request, 'notifications-changed', { fields: changedFields(wanted, schemas.NotificationSwitches) })
    return { notifications }
  })
}

export default notifications
