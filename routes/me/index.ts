import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { eraseAccount } from '../../lib/accounts/erasure.ts'
import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { HASHING_SECONDS } from '../../lib/config/timeout.ts'
import { PER_CONNECTION } from '../../lib/database/pools.ts'
import { audit } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { assertPassword, findOwnAccount } from './own-account.ts'
import * as schemas from './schemas.ts'

/** Maximum age of a sign-in that confirms the deletion of an account without a password, in seconds. */
const FRESH_SECONDS = 300

/** Deletes the account of the signed-in user. Each folder is a part of the account. */
const me: FastifyPluginAsyncTypebox = async app => {
  app.delete('/', {
    onRequest: app.authenticate,
    schema: schemas.remove,
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
}

export default me
