import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Static } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'

import { refuseRegistrations, userOf } from '../../lib/accounts/permissions.ts'
import { attemptOf } from '../../lib/database/idempotency.ts'
import { currentMinute, parseCursor } from '../../lib/values/formats.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError, validationError } from '../../lib/http/errors.ts'
import { insertCopies } from './copies.ts'
import { type MessageRoute, sendMessage } from './messages.ts'
import {
  addEvent, agendaEventQuery, agendaQuery, changeEvent, drawQuery, refuseDraw, removeSeat, seatsQuery,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** When and where events are, and their seats. */
const agenda: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: { failure: 'Error fetching events', cache: 'public', cacheControl: 'no-cache', live: queryOf },
  }, async (request, reply) => {
    await reply.sendCached(...queryOf(request.query))
  })

  app.get('/:id', {
    schema: schemas.get,
    config: { failure: 'Error fetching event', cache: 'public', cacheControl: 'no-cache' },
  }, async (request, reply) => {
    if (!await reply.sendCached(agendaEventQuery, request.params.id)) throw new HttpError(404, 'Event not found')
  })

  app.post('/', {
    onRequest: app.requireRole('CLUB_HEAD'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.create,
    config: { failure: 'Error creating event', transaction: true },
  }, async (request, reply) => {
    const { event, isDrawSet } =
      await addEvent(app.sql, app.outbox, request.user, request.body, attemptOf(request))
    if (isDrawSet) auditDraw(request, event)
    reply.code(201)
    return { event }
  })

  app.put('/:id', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.update,
    config: { failure: 'Error updating event', transaction: true },
  }, async request => {
    const { user, params: { id }, body } = request
    const { event, isDrawSet } = await changeEvent(app.sql, app.outbox, { user, id, changes: body })
    if (isDrawSet) auditDraw(request, event)
    return { event }
  })

  app.post('/:id/copies', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.copy,
    config: { failure: 'Error copying event', transaction: true },
  }, async (request, reply) => {
    const { user, params: { id }, body } = request
    const copies = copiesOf(body)
    const timeZone = app.config.MAIL_TIME_ZONE
    const { events, isNew } =
      await insertCopies(app.sql, app.outbox, { user, id, copies, timeZone, attempt: attemptOf(request) })
    if (isNew) for (const event of events) if (event.drawAt !== null) auditDraw(request, event)
    reply.code(201)
    return { events }
  })

  app.get('/:id/draw', {
    schema: schemas.getDraw,
    config: { failure: 'Error fetching draw', cache: 'public', cacheControl: 'no-cache' },
  }, async (request, reply) => {
    const { id } = request.params
    const isSent = await reply.sendCached(drawQuery, id)
    if (!isSent) await app.queues.operations.run(request, () => refuseDraw(app.sql, id))
  })

  app.get('/:id/seats', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.listSeats,
    config: { failure: 'Error fetching seats', cache: 'private' },
  }, async (request, reply) => {
    const { params } = request
    const user = userOf(request)
    const isSent = await reply.sendCached(seatsQuery, user, params.id, app.outbox.isConfigured)
    if (!isSent) await app.queues.operations.run(request, () => refuseRegistrations(app.sql, user, params.id))
  })

  app.delete('/:id/seats/:registrationId', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.removeSeat,
    config: { failure: 'Error deleting registration', transaction: true },
  }, async request => {
    const { user, params: { id, registrationId } } = request
    await removeSeat(app.sql, app.outbox, { user, id, registrationId })
    audit(request, 'registration-deleted', { target: registrationId })
    return { message: 'Registration deleted successfully' }
  })

  app.post<MessageRoute>('/:id/message', {
    onRequest: [app.requireEmail, app.requireRole('ADMIN', 'CLUB_HEAD')],
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.sendMessage,
    config: { failure: 'Error sending the message', transaction: true },
  }, sendMessage)
}

/** Logs that a draw was set, moved or cancelled. */
const auditDraw = (request: FastifyRequest, { id, drawAt }: { id: string, drawAt: string | null }) =>
  audit(request, 'draw-set', { target: id, drawAt })

/** The cached query of this list and its arguments, for the handler and for `GET /live`. */
function queryOf ({ club, from, to, limit = '20', cursor }: Static<typeof schemas.list.querystring>) {
  return [agendaQuery, {
    clubs: club === undefined ? null : [club].flat(),
    from: from === undefined ? currentMinute() : utc(from),
    to: to === undefined ? null : utc(to),
    limit: Number(limit),
    after: cursor === undefined ? null : parseCursor(cursor)!,
  }] as const
}

/** The copies that a request asks for. Throws a validation error for a date that comes twice, and for wrong ends. */
function copiesOf ({ dates, ends }: Static<typeof schemas.copy.body>) {
  const starts = dates.map(utc)
  if (new Set(starts).size < starts.length) throw validationError('dates', 'must not contain a date twice')
  if (ends && ends.length !== starts.length) throw validationError('ends', 'must have as many items as dates')
  const copies = starts.map((date, place) => ({ date, duration: ends ? between(date, ends[place]!) : null }))
  if (copies.some(({ duration }) => duration !== null && duration <= 0)) {
    throw validationError('ends', 'must be after the start of each copy')
  }
  return copies
}

/** A date-time with an offset as UTC. */
const utc = (dateTime: string) => new Date(dateTime).toISOString()

/** Milliseconds between two times. */
const between = (start: string, end: string) => Date.parse(end) - Date.parse(start)

export default agenda
