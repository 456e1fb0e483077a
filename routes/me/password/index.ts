import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { assertStrongPassword } from '../../../lib/auth/new-passwords.ts'
import { hashPassword } from '../../../lib/auth/passwords.ts'
import { consume, newPasswords } from '../../../lib/auth/rate-limits.ts'
import { HASHING_SECONDS } from '../../../lib/config/timeout.ts'
import { audit } from '../../../lib/http/audit.ts'
import { assertPassword, findOwnAccount, refusePassword } from '../own-account.ts'
import { changePassword } from './queries.ts'
import * as schemas from './schemas.ts'

/** The password of the signed-in user. */
const password: FastifyPluginAsyncTypebox = async app => {
  app.put('/', {
    onRequest: app.authenticate,
    schema: schemas.change,
    config: { failure: 'Error changing password', extraSeconds: 2 * HASHING_SECONDS },
  }, async request => {
    const { body: { currentPassword, newPassword }, user: { id }, network } = request
    const account = await findOwnAccount(request)
    await consume(app.sql, newPasswords(id, network), app.config.LIMIT_WINDOW)
    await assertStrongPassword('newPassword', newPassword, account.email)
    await assertPassword(request, account, currentPassword)
    const to = await app.queues.passwords.run(request, () => hashPassword(newPassword))
    const user = await changePassword(app.sql, app.outbox, { id, from: account.password, to })
    if (!user) refusePassword(request)
    audit(request, 'password-changed', { user: id, by: 'password' })
    return { message: 'Password changed successfully', token: app.issueToken(user) }
  })
}

export default password
