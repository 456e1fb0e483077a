import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../../lib/http/errors.ts'
import { seatsOfUserQuery, setComing } from './queries.ts'
import * as schemas from './schemas.ts'

/** The seats of the signed-in user. */
const seats: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.list,
    config: { failure: 'Error fetching seats', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(seatsOfUserQuery, request.user.id)
  })

  app.put('/:eventId', {
    onRequest: app.authenticate,
    schema: schemas.set,
    config: { failure: 'Error changing seat', transaction: true },
  }, async request => {
    const { user, params: { eventId }, body: { coming } } = request
    const seat = await setComing(app.sql, app.outbox, { userId: user.id, eventId, coming })
    if (!seat) throw new HttpError(404, 'Registration not found')
    return { seat }
  })
}

export default seats
