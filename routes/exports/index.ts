import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'

import { HttpError } from '../../lib/errors.ts'
import { toCsv, toFileName } from './csv.ts'
import { allUsers, findManagedEvent, readInBatches, registrationsOf } from './queries.ts'
import * as schemas from './schemas.ts'

/** Lists that leave the platform, as files for spreadsheets. */
const exports: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Params: { id: string } }>('/events/:id/registrations.csv', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.registrations,
    config: { failure: 'Error fetching event registrations' },
  }, async (request, reply) => {
    const { id } = request.params
    if (!id) throw new HttpError(400, 'Event ID is required')
    const event = await app.read(sql => findManagedEvent(sql, request.user, id))
    if (!event) throw new HttpError(404, 'Event not found')
    if (!event.allowed) throw new HttpError(403, 'Not allowed to view registrations for this event')
    const rows = await readInBatches(app.read, registrationsOf(id))
    const name = ['registrations', event.date.slice(0, 10), toFileName(event.title)].filter(Boolean).join('-')
    return send(reply, name, toCsv(rows, { name: 'name', email: 'email', time: 'registeredAt' }))
  })

  app.get('/users.csv', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.users,
    config: { failure: 'Error fetching users' },
  }, async (_request, reply) => {
    const rows = await readInBatches(app.read, allUsers)
    return send(reply, 'users', toCsv(rows, {
      email: 'email', firstName: 'firstName', lastName: 'lastName', role: 'role', club: 'club', time: 'createdAt',
    }))
  })
}

function send (reply: FastifyReply, name: string, csv: NodeJS.ReadableStream) {
  reply.headers({
    'content-type': 'text/csv; charset=utf-8', 'content-disposition': `attachment; filename="${name}.csv"`,
  })
  return reply.send(csv)
}

export default exports
