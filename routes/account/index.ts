import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { eraseAccount } from '../../lib/accounts/erasure.ts'
import { assertStrongPassword } from '../../lib/auth/new-passwords.ts'
import { hashPassword } from '../../lib/auth/passwords.ts'
import { consume, consumeAccountEmail, newPasswords } from '../../lib/auth/rate-limits.ts'
import { hashSecretToken } from '../../lib/auth/secret-tokens.ts'
import { PER_CONNECTION } from '../../lib/database/pools.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { FRONTEND_REQUIRED } from '../../lib/values/schemas.ts'
import { HASHING_SECONDS } from '../../lib/config/timeout.ts'
import {
  findAccountOfToken, findNotification, insertResetEmail, resetPassword, turnOff, verifyEmail,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** Time of a response about a forgotten password: longer than it takes to enqueue the email. */
const FORGOTTEN_MS = 500

/** Operations by links in emails, without a sign-in, and the erasure of an account by an admin. */
const account: FastifyPluginAsyncTypebox = async app => {
  const { LIMIT_WINDOW: windowSeconds } = app.config

  app.delete('/:id', {
    onRequest: app.requireRole('ADMIN'),
    schema: schemas.erase,
    config: { failure: 'Error erasing account', transaction: true },
  }, async request => {
    const { id } = request.params
    const erasure = await eraseAccount(app.sql, app.sql`${id}::uuid`, {
      keepsAdmin: true, outbox: app.outbox, cause: request.user.id,
    })
    if (!erasure) throw new HttpError(404, 'User not found')
    audit(request, 'user-deleted', { user: id })
    const { publishedBlogs, keptPictures } = erasure
    return { message: 'Account erased successfully' as const, kept: { publishedBlogs, pictures: keptPictures } }
  })

  app.post('/password/forgot', {
    onRequest: app.requireEmailLinks,
    schema: schemas.forgotPassword,
    config: { failure: 'Error sending the email', extraSeconds: FORGOTTEN_MS / 1000 },
  }, async (request, reply) => {
    const { email } = request.body
    const { network } = request
    await consumeAccountEmail(app.sql, email, network, windowSeconds)
    // Enqueuing an email takes time, which would disclose whether the address has an account.
    const written = insertResetEmail(app.sql, app.outbox, email, network)
    const [user] = await Promise.all([written, sleep(FORGOTTEN_MS)])
    audit(request, 'password-forgotten', { user, network })
    reply.code(202)
    return { message: 'If this email has an account, an email is on its way' }
  })

  app.post('/password/reset', {
    schema: schemas.resetPassword,
    config: { failure: 'Error setting the password', extraSeconds: HASHING_SECONDS },
  }, async request => {
    const hash = hashSecretToken(request.body.token)
    const { network } = request
    const account = await findAccountOfToken(app.sql, hash)
    if (!account) throw new HttpError(400, schemas.INVALID_LINK)
    await consume(app.sql, newPasswords(account.id, network), windowSeconds)
    await assertStrongPassword('password', request.body.password, account.email)
    const password = await app.queues.passwords.run(request, () => hashPassword(request.body.password))
    const user = await app.queues.operations.run(request, () =>
      resetPassword(app.sql, app.outbox, hash, { password, network }), PER_CONNECTION)
    if (!user) throw new HttpError(400, schemas.INVALID_LINK)
    audit(request, 'password-changed', { user, network, by: 'email' })
    return { message: 'Password set successfully' }
  })

  app.post('/email/verify', {
    schema: schemas.verifyEmail,
    config: { failure: 'Error verifying the email', transaction: true },
  }, async request => {
    const { network } = request
    const account = await verifyEmail(app.sql, app.outbox, hashSecretToken(request.body.token), network)
    if (!account) throw new HttpError(400, schemas.INVALID_LINK)
    const event = account.hasChanged ? 'email-changed' : 'email-verified'
    audit(request, event, { user: account.id, network })
    return { message: 'Email verified successfully' }
  })

  // A GET must not change anything: a person opens the link in List-Unsubscribe, or a program checks it.
  app.get<{ Params: { token: string } }>('/unsubscribe/:token', { schema: { hide: true } }, async (request, reply) => {
    const [frontend] = app.config.FRONTEND_URL
    if (!frontend) throw new HttpError(501, FRONTEND_REQUIRED)
    return reply.redirect(`${frontend}/unsubscribe#token=${encodeURIComponent(request.params.token)}`)
  })

  // Email programs send a form with fixed content (RFC 8058).
  app.post<{ Params: { token: string } }>('/unsubscribe/:token', {
    schema: schemas.unsubscribe,
    config: { failure: 'Error turning off emails' },
  }, async request => {
    const email = await findNotification(app.sql, { JWT_SECRET: app.jwtSecret }, request.params.token)
    if (!email) throw new HttpError(404, 'Link not found')
    const { userId: user, template } = email
    if (await turnOff(app.sql, email)) audit(request, 'notifications-changed', { user, template, by: 'email' })
    return { message: "You're unsubscribed from these emails" }
  })
}

export default account
