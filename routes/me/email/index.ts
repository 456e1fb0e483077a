import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { consumeAccountEmail } from '../../../lib/auth/rate-limits.ts'
import { HASHING_SECONDS } from '../../../lib/config/timeout.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { assertPassword, findOwnAccount } from '../own-account.ts'
import { insertEmailChange, insertVerificationEmail } from './queries.ts'
import * as schemas from './schemas.ts'

/** The email address of the signed-in user. */
const email: FastifyPluginAsyncTypebox = async app => {
  const { LIMIT_WINDOW: windowSeconds } = app.config

  app.post('/', {
    onRequest: [app.requireEmailLinks, app.authenticate],
    schema: schemas.change,
    config: { failure: 'Error sending the email', extraSeconds: HASHING_SECONDS },
  }, async (request, reply) => {
    const { body: { email, currentPassword }, network } = request
    const account = await findOwnAccount(request)
    if (account.isLinked) throw new HttpError(409, schemas.PROVIDER_EMAIL)
    if (email === account.email) throw new HttpError(409, schemas.OWN_EMAIL)
    await assertPassword(request, account, currentPassword)
    await consumeAccountEmail(app.sql, email, network, windowSeconds)
    await insertEmailChange(app.sql, app.outbox, request.user.id, email, network)
    reply.code(202)
    return { message: 'An email is on its way' }
  })

  app.post('/verification', {
    onRequest: [app.requireEmailLinks, app.authenticate],
    schema: schemas.verify,
    config: { failure: 'Error sending the email' },
  }, async (request, reply) => {
    const { network } = request
    const account = await findOwnAccount(request)
    if (account.isVerified) throw new HttpError(409, 'Email is already verified')
    await consumeAccountEmail(app.sql, account.email, network, windowSeconds)
    await insertVerificationEmail(app.sql, app.outbox, request.user.id, network)
    reply.code(202)
    return { message: 'An email is on its way' }
  })
}

export default email
