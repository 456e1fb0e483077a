import { Readable } from 'node:stream'

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'

import { audit, type AuditEvent } from '../../lib/http/audit.ts'
import { findManagedEvent } from '../../lib/accounts/permissions.ts'
import { type ReadBatch, readInBatches } from '../../lib/database/keyset.ts'
import { toCsv, toFileName } from '../../lib/values/csv.ts'
import { REGISTRATIONS_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import { allUsers, registrantsOf } from './queries.ts'
import * as schemas from './schemas.ts'

/** Lists as files for spreadsheets. */
const exports: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Params: { id: string } }>('/events/:id/registrations.csv', {
    onRequest: app.requireRole('ADMIN', 'CLUB_HEAD'),
    schema: schemas.registrations,
    config: { failure: 'Error fetching event registrations', admission: 'reads' },
  }, async (request, reply) => {
    const { id } = request.params
    const event = await app.queues.operations.run(request, () =>
      findManagedEvent(app.sql, request.user, id, REGISTRATIONS_NOT_ALLOWED))
    const name = ['registrations', event.date.slice(0, 10), toFileName(event.title)].filter(Boolean).join('-')
    return send(request, reply, {
      name,
      rows: registrantsOf(id),
      columns: { name: 'name', email: 'email', time: 'registeredAt', state: 'state', answeredAt: 'answeredAt' },
      event: 'registrations-exported',
      target: id,
    })
  })

  app.get('/users.csv', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.users,
    config: { failure: 'Error fetching users', admission: 'reads' },
  }, async (request, reply) => {
    return send(request, reply, {
      name: 'users',
      rows: allUsers,
      columns: {
        email: 'email', firstName: 'firstName', lastName: 'lastName', role: 'role', club: 'club', time: 'createdAt',
      },
      event: 'users-exported',
    })
  })

  /** Sends rows as a file. HEAD gets only the headers, without reading rows. */
  async function send (
    request: FastifyRequest, reply: FastifyReply,
    { name, rows, columns, event, target }: {
      name: string
      rows: ReadBatch<object>
      columns: Record<string, string>
      event: AuditEvent
      target?: string
    }
  ) {
    reply.headers({
      'content-type': 'text/csv; charset=utf-8', 'content-disposition': `attachment; filename="${name}.csv"`,
    })
    if (request.method === 'HEAD') return reply.send(Readable.from([]))
    const batches = await readInBatches(read => app.queues.lists.run(request, () => read(app.sql)), rows)
    // After a timeout, nothing is sent.
    if (request.isWanted()) audit(request, event, { target })
    return reply.send(toCsv(batches, columns))
  }
}

export default exports
