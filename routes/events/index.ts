import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'

import { refuseRegistrations, userOf } from '../../lib/accounts/permissions.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import {
  deleteEvent, eventsOfMemberQuery, eventsQuery, findRefusal, insertEvent, insertRegistration,
  registrationsOfEventQuery, registrationsOfUserQuery, updateEvent,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** Events of the clubs, and registrations for events. */
const events: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: {
      failure: 'Error fetching events',
      cache: 'public',
      cacheControl: 'public, s-maxage=60, stale-while-revalidate=120',
      live: queryOf,
    },
  }, async (request, reply) => {
    await reply.sendCached(...queryOf(request.query))
  })

  app.get('/mine', {
    onRequest: app.requireRole('CLUB_HEAD', 'ADMIN'),
    schema: schemas.listMine,
    config: { failure: 'Error fetching club events', cache: 'private' },
  }, async (request, reply) => {
    if (!await reply.sendCached(eventsOfMemberQuery, request.user.id)) {
      throw new HttpError(400, 'You are not associated with any club')
    }
  })

  app.post('/', {
    onRequest: app.requireRole('CLUB_HEAD'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.create,
    config: { failure: 'Error creating event' },
  }, async (request, reply) => {
    const { imageUrl, ...fields } = request.body
    if (!imageUrl) throw new HttpError(400, 'All fields are required')
    const event = await insertEvent(app.sql, app.outbox, request.user.id, { ...fields, imageUrl })
    if (!event) throw new HttpError(400, 'You must be a club head to create an event')
    reply.code(201)
    return { event }
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.update,
    config: { failure: 'Error updating event', transaction: true },
  }, async request => {
    const event = await updateEvent(app.sql, app.outbox, {
      user: request.user, id: request.params.id, changes: request.body,
    })
    return { event, message: 'Event updated successfully' as const }
  })

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.remove,
    config: { failure: 'Error deleting event', transaction: true },
  }, async request => {
    await deleteEvent(app.sql, app.outbox, request.user, request.params.id)
    audit(request, 'event-deleted', { target: request.params.id })
    return { message: 'Event deleted successfully' }
  })

  app.post<{ Params: { eventId: string } }>('/:eventId/register', {
    onRequest: app.authenticate,
    schema: schemas.register,
    config: { failure: 'Error registering for event' },
  }, async (request, reply) => {
    const registration = await insertRegistration(app.sql, app.outbox, request.user.id, request.params.eventId)
    if (!registration) throw new HttpError(400, await findRefusal(app.sql, request.user.id, request.params.eventId))
    reply.code(201)
    return { registration }
  })

  app.get('/registered', {
    onRequest: app.authenticate,
    schema: schemas.listRegistered,
    config: { failure: 'Error fetching registered events', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(registrationsOfUserQuery, request.user.id)
  })

  app.get<{ Params: { id: string } }>('/:id/registrations', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.listRegistrations,
    config: { failure: 'Error fetching event registrations', cache: 'private' },
  }, async (request, reply) => {
    const { params } = request
    const user = userOf(request)
    const isSent = await reply.sendCached(registrationsOfEventQuery, user, params.id)
    if (!isSent) await app.queues.operations.run(request, () => refuseRegistrations(app.sql, user, params.id))
  })
}

/** The cached query of this list and its arguments, for the handler and for `GET /live`. */
function queryOf ({ page, limit, sort = 'desc' }: Static<typeof schemas.list.querystring>) {
  // Without a radix, `0x10` is 16. PostgreSQL refuses a negative limit, which becomes the 500 of the contract.
  return [eventsQuery, parseInt(page ?? '') || 1, parseInt(limit ?? '') || 12, sort] as const
}

export default events
