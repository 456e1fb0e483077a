import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { revokeTokensOf } from './queries.ts'
import * as schemas from './schemas.ts'

/** All tokens of the signed-in user. */
const tokens: FastifyPluginAsyncTypebox = async app => {
  app.delete('/', {
    onRequest: app.authenticate,
    schema: schemas.revoke,
    config: { failure: 'Error signing out' },
  }, async request => {
    if (!await revokeTokensOf(app.sql, request.user.id)) throw new HttpError(401, 'Unauthorized')
    audit(request, 'tokens-revoked')
    return { message: 'Signed out everywhere' }
  })
}

export default tokens
