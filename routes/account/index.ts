import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { assertHardToGuess } from '../../lib/auth/new-passwords.ts'
import { assertNotBusy, hashPassword } from '../../lib/auth/passwords.ts'
import { newPasswords, takeAccountMail, takeUse, throwIfReached } from '../../lib/auth/rate-limits.ts'
import { hashSecretToken } from '../../lib/auth/secret-tokens.ts'
import { HttpError } from '../../lib/errors.ts'
import { audit } from '../../lib/http/audit.ts'
import { clientNetwork } from '../../lib/http/client-network.ts'
import { TOO_MANY_MAILS, TOO_MANY_PASSWORDS } from '../../lib/schemas.ts'
import { HASHING_SECONDS } from '../../lib/timeout.ts'
import { FRONTEND_REQUIRED } from '../../plugins/mail.ts'
import {
  findAccountOfToken, findNotification, insertResetMail, resetPassword, turnOff, verifyEmail,
} from './queries.ts'
import * as schemas from './schemas.ts'

/** The time of a response about a forgotten password, in milliseconds: longer than it takes to write the mail. */
const FORGOTTEN_TIME = 500

const INVALID_LINK = 'Invalid or expired link'

/** Operations on an account by the links of its mails, without a sign-in. */
const account: FastifyPluginAsyncTypebox = async app => {
  const { SIGN_IN_WINDOW: windowSeconds } = app.config

  app.post('/password/forgot', {
    onRequest: app.requireMail,
    schema: schemas.forgotPassword,
    config: { failure: 'Error sending the mail', extraTime: FORGOTTEN_TIME / 1000 },
  }, async (request, reply) => {
    if (!app.mail.canLink) throw new HttpError(501, FRONTEND_REQUIRED)
    const { email } = request.body
    const network = clientNetwork(request.ip)
    throwIfReached(TOO_MANY_MAILS, await takeAccountMail(app.sql, email, network, windowSeconds))
    // Only an account gets a mail, and a commit takes its time.
    const written = insertResetMail(app.sql, app.mail, email, network)
    const [user] = await Promise.all([written, sleep(FORGOTTEN_TIME)])
    audit(request, 'password-forgotten', { user, network })
    reply.code(202)
    return { message: 'If this email has an account, a mail is on its way' }
  })

  app.post('/password/reset', {
    schema: schemas.resetPassword,
    config: { failure: 'Error setting the password', extraTime: HASHING_SECONDS },
  }, async request => {
    const hash = hashSecretToken(request.body.token)
    const network = clientNetwork(request.ip)
    await assertNotBusy(network)
    const account = await findAccountOfToken(app.sql, hash)
    if (!account) throw new HttpError(400, INVALID_LINK)
    throwIfReached(TOO_MANY_PASSWORDS, await takeUse(app.sql, newPasswords(account.id, network), windowSeconds))
    await assertHardToGuess('password', request.body.password, account.email)
    const password = await hashPassword(request.body.password, network)
    const user = await resetPassword(app.sql, app.mail, hash, { password, network })
    if (!user) throw new HttpError(400, INVALID_LINK)
    audit(request, 'password-changed', { user, network, by: 'mail' })
    return { message: 'Password set successfully' }
  })

  app.post('/email/verify', {
    schema: schemas.verifyEmail,
    config: { failure: 'Error verifying the email' },
  }, async request => {
    const user = await verifyEmail(app.sql, hashSecretToken(request.body.token))
    if (!user) throw new HttpError(400, INVALID_LINK)
    audit(request, 'email-verified', { user, network: clientNetwork(request.ip) })
    return { message: 'Email verified successfully' }
  })

  // A person opens the link of the header List-Unsubscribe, or a program looks what is there: nothing changes.
  app.get<{ Params: { token: string } }>('/unsubscribe/:token', { schema: { hide: true } }, async (request, reply) => {
    const [frontend] = app.config.FRONTEND_URL
    if (!frontend) throw new HttpError(501, FRONTEND_REQUIRED)
    return reply.redirect(`${frontend}/unsubscribe#token=${encodeURIComponent(request.params.token)}`)
  })

  // RFC 8058 has mail programs send a form, whose only content is that it is one.
  app.post<{ Params: { token: string } }>('/unsubscribe/:token', {
    schema: schemas.unsubscribe,
    config: { failure: 'Error turning off mails' },
  }, async request => {
    const mail = await findNotification(app.sql, hashSecretToken(request.params.token))
    if (!mail) throw new HttpError(404, 'Link not found')
    const { userId: user, kind } = mail
    if (await turnOff(app.sql, mail)) audit(request, 'notifications-changed', { user, kind, by: 'mail' })
    return { message: 'You get no more mails of this kind' }
  })
}

export default account
