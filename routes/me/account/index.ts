import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../../lib/http/errors.ts'
import { accountQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** The state of the account of the signed-in user. */
const account: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.read,
    config: { failure: 'Error fetching account', cache: 'private' },
  }, async (request, reply) => {
    if (!await reply.sendCached(accountQuery, request.user.id)) throw new HttpError(401, 'Unauthorized')
  })
}

export default account
