import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit, changedFields } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { knownPicturesUrlOf, picturesUrlOf } from '../../../lib/pictures/urls.ts'
import { setProfile } from './queries.ts'
import * as schemas from './schemas.ts'

/** The name and the picture of the signed-in user. */
const profile: FastifyPluginAsyncTypebox = async app => {
  app.put('/', {
    onRequest: app.authenticate,
    schema: schemas.change,
    config: { failure: 'Error changing profile', transaction: true },
  }, async request => {
    const { user: { id }, body: changes } = request
    // To set an uploaded picture, the service must know its own URL.
    const picturesUrl = (typeof changes.avatar === 'string' ? knownPicturesUrlOf : picturesUrlOf)(app.config, request)
    const user = await setProfile(app.sql, picturesUrl, id, changes)
    if (!user) throw new HttpError(401, 'Unauthorized')
    audit(request, 'profile-changed', { fields: changedFields(changes, schemas.change.body) })
    return { user }
  })
}

export default profile
