import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { findOwnRole } from '../own-account.ts'
import * as schemas from './schemas.ts'

/** The token of the request. */
const token: FastifyPluginAsyncTypebox = async app => {
  app.post('/', {
    onRequest: app.authenticate,
    schema: schemas.renew,
    config: { failure: 'Error renewing the token' },
  }, async request => {
    return { token: app.renewToken(request.user, await findOwnRole(app.sql, request.user.id)) }
  })
}

export default token
