import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'

import { eraseAccount } from '../../lib/accounts/erasure.ts'
import { assertStrongPassword } from '../../lib/auth/new-passwords.ts'
import { hashPassword, PLACEHOLDER, verifyPassword } from '../../lib/auth/passwords.ts'
import {
  consume, consumeAccountEmail, failedSignInsForAccount, limitFailures, newPasswords,
} from '../../lib/auth/rate-limits.ts'
import { PER_CONNECTION } from '../../lib/database/client.ts'
import { audit, changedFields } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { knownPicturesUrlOf, picturesUrlOf } from '../../lib/pictures/urls.ts'
import { HASHING_SECONDS } from '../../lib/config/timeout.ts'
import {
  type Account, accountQuery, changePassword, findAccount, findOwnRole, insertEmailChange,
  insertVerificationEmail, revokeTokensOf, setProfile,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** Maximum age of a sign-in that confirms the deletion of an account without a password, in seconds. */
const FRESH_SECONDS = 300

/** The account of the signed-in user. */
const me: FastifyPluginAsyncTypebox = async app => {
  const { SIGN_IN_ATTEMPTS, LIMIT_WINDOW: windowSeconds } = app.config

  app.put('/password', {
    onRequest: app.authenticate,
    schema: schemas.changePassword,
    config: { failure: 'Error changing password', extraSeconds: 2 * HASHING_SECONDS },
  }, async request => {
    const { currentPassword, newPassword } = request.body
    const { id } = request.user
    const { network } = request
    const account = await findOwnAccount(request)
    await consume(app.sql, newPasswords(id, network), windowSeconds)
    await assertStrongPassword('newPassword', newPassword, account.email)
    await assertPassword(request, account, currentPassword)
    const to = await app.queues.passwords.run(request, () => hashPassword(newPassword))
    const user = await changePassword(app.sql, app.outbox, { id, from: account.password, to })
    if (!user) refusePassword(request)
    audit(request, 'password-changed', { user: id, by: 'password' })
    return { message: 'Password changed successfully', token: app.issueToken(user) }
  })

  app.put('/profile', {
    onRequest: app.authenticate,
    schema: schemas.changeProfile,
    config: { failure: 'Error changing profile', transaction: true },
  }, async request => {
    const { firstName, lastName, avatar } = request.body
    const { id } = request.user
    // To set an uploaded picture, the service must know its own URL.
    const picturesUrl = (typeof avatar === 'string' ? knownPicturesUrlOf : picturesUrlOf)(app.config, request)
    const user = await setProfile(app.sql, picturesUrl, id, { firstName, lastName, avatar })
    if (!user) throw new HttpError(401, 'Unauthorized')
    audit(request, 'profile-changed', { fields: changedFields({ firstName, lastName, avatar }) })
    return { user }
  })

  app.post('/email', {
    onRequest: [app.requireEmailLinks, app.authenticate],
    schema: schemas.changeEmail,
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

  app.delete('/', {
    onRequest: app.authenticate,
    schema: schemas.deleteAccount,
    config: { failure: 'Error deleting account', extraSeconds: HASHING_SECONDS },
  }, async request => {
    const { id, issuedAt } = request.user
    const account = await findOwnAccount(request)
    // Tokens of accounts without a password come from the identity provider.
    if (account.password !== PLACEHOLDER) await assertPassword(request, account, request.body.currentPassword ?? '')
    else if (issuedAt < Date.now() / 1000 - FRESH_SECONDS) throw new HttpError(401, schemas.SIGN_IN_AGAIN)
    const erasure = await app.queues.operations.run(request, () => eraseAccount(app.sql, app.sql`${id}::uuid`, {
      keepsAdmin: true, outbox: app.outbox, cause: request.network,
    }), PER_CONNECTION)
    // Another request may have deleted the account since.
    if (!erasure) throw new HttpError(401, 'Unauthorized')
    audit(request, 'user-deleted', { user: id })
    const { publishedBlogs, keptPictures } = erasure
    return { message: 'Account deleted successfully', kept: { publishedBlogs, pictures: keptPictures } }
  })

  app.post('/email/verification', {
    onRequest: [app.requireEmailLinks, app.authenticate],
    schema: schemas.verifyEmail,
    config: { failure: 'Error sending the email' },
  }, async (request, reply) => {
    const { network } = request
    const account = await findAccount(app.sql, request.user.id)
    if (!account) throw new HttpError(401, 'Unauthorized')
    if (account.isVerified) throw new HttpError(409, 'Email is already verified')
    await consumeAccountEmail(app.sql, account.email, network, windowSeconds)
    await insertVerificationEmail(app.sql, app.outbox, request.user.id, network)
    reply.code(202)
    return { message: 'An email is on its way' }
  })

  app.delete('/tokens', {
    onRequest: app.authenticate,
    schema: schemas.revokeTokens,
    config: { failure: 'Error signing out' },
  }, async request => {
    if (!await revokeTokensOf(app.sql, request.user.id)) throw new HttpError(401, 'Unauthorized')
    audit(request, 'tokens-revoked')
    return { message: 'Signed out everywhere' }
  })

  app.post('/token', {
    onRequest: app.authenticate,
    schema: schemas.renewToken,
    config: { failure: 'Error renewing the token' },
  }, async request => {
    return { token: app.renewToken(request.user, await findOwnRole(app.sql, request.user.id)) }
  })

  app.get('/account', {
    onRequest: app.authenticate,
    schema: schemas.readAccount,
    config: { failure: 'Error fetching account', cache: 'private' },
  }, async (request, reply) => {
    if (!await reply.sendCached(accountQuery, request.user.id)) throw new HttpError(401, 'Unauthorized')
  })

  /** Returns the account of the request. Throws a 401 if it was deleted. */
  async function findOwnAccount (request: FastifyRequest) {
    const account = await findAccount(app.sql, request.user.id)
    if (!account) throw new HttpError(401, 'Unauthorized')
    return account
  }

  /** Throws a 401 for a wrong password, and a 429 after too many. Failed sign-ins also count. */
  async function assertPassword (request: FastifyRequest, { email, password }: Account, given: string) {
    const failures = failedSignInsForAccount(email, request.network, SIGN_IN_ATTEMPTS)
    const verified = await limitFailures(app.sql, [failures], windowSeconds, () =>
      app.queues.passwords.run(request, () => verifyPassword(password, given)))
    if (!verified) refusePassword(request)
  }
}

function refusePassword (request: FastifyRequest): never {
  audit(request, 'password-refused', { network: request.network })
  throw new HttpError(401, 'Current password is wrong')
}

export default me
