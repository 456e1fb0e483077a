import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { maxBodyBytes } from '../../lib/config/config.ts'
import { attemptOf } from '../../lib/database/idempotency.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError, RefusedError } from '../../lib/http/errors.ts'
import { clubsQuery, insertClub } from './queries.ts'
import * as schemas from './schemas.ts'

/** Clubs with their members and events. */
const clubs: FastifyPluginAsyncTypebox = async app => {
  const query: [typeof clubsQuery, number] = [clubsQuery, maxBodyBytes(app.config)]

  app.get('/', {
    schema: schemas.list,
    config: { failure: 'Error fetching clubs', cache: 'public', live: () => query },
  }, async (_request, reply) => {
    if (!await reply.sendCached(...query)) throw new RefusedError('The titles of events exceed half of MAX_HELD_BYTES')
  })

  app.post('/', {
    onRequest: app.requireRole('ADMIN'),
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.create,
    config: { failure: 'Error creating club', transaction: true },
  }, async (request, reply) => {
    const fields = Object(request.body) as Record<string, unknown>
    if (!fields.name || !fields.description) throw new HttpError(400, 'Name and description are required')
    const { clubHeadEmail } = fields
    if (clubHeadEmail !== undefined && typeof clubHeadEmail !== 'string') {
      throw new RefusedError('clubHeadEmail is not a string')
    }
    const { row: club, isNew } = await insertClub(app.sql, fields, attemptOf(request))
    // A repeated request changes nothing.
    if (isNew) {
      audit(request, 'role-changed', { user: club.clubHeadId, role: 'CLUB_HEAD' })
      audit(request, 'membership-changed', { user: club.clubHeadId, club: club.id })
    }
    reply.code(201)
    return { club }
  })
}

export default clubs
