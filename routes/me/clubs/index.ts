import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { currentMinute } from '../../../lib/values/formats.ts'
import { answerOffer, joinClub, leaveClub, ownClubsQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** The clubs of the signed-in user. */
const ownClubs: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.list,
    config: { failure: 'Error fetching your clubs', cache: 'private' },
  }, async (request, reply) => {
    const isUser = await reply.sendCached(ownClubsQuery, request.user.id, currentMinute())
    if (!isUser) throw new HttpError(401, 'Unauthorized')
  })

  app.put('/:clubId', {
    onRequest: app.authenticate,
    schema: schemas.join,
    config: { failure: 'Error joining club', transaction: true },
  }, async request => {
    const { user, params: { clubId }, body: { message, news } } = request
    const { club, isNew } = await joinClub(app.sql, app.outbox, { userId: user.id, clubId, message, news })
    if (isNew) audit(request, 'membership-changed', { user: user.id, club: club.clubId, state: club.state })
    return { club }
  })

  app.delete('/:clubId', {
    onRequest: app.authenticate,
    schema: schemas.leave,
    config: { failure: 'Error leaving club', transaction: true },
  }, async request => {
    const { user, params: { clubId } } = request
    const { hadOffice, newRole } = await leaveClub(app.sql, app.outbox, user.id, clubId)
    audit(request, 'membership-changed', { user: user.id, club: clubId, state: null })
    if (hadOffice) audit(request, 'office-changed', { user: user.id, club: clubId, office: null })
    if (newRole) audit(request, 'role-changed', { user: user.id, role: newRole })
    return { message: 'You have left the club' }
  })

  app.put('/:clubId/office', {
    onRequest: app.authenticate,
    schema: schemas.answerOffer,
    config: { failure: 'Error changing office', transaction: true },
  }, async request => {
    const { user, params: { clubId }, body: { accept, office } } = request
    const { club, role, isNewRole, replacedId } = await answerOffer(
      app.sql, app.outbox, { userId: user.id, clubId, accept, office })
    if (accept) audit(request, 'office-changed', { user: user.id, club: club.clubId, office: club.office })
    if (replacedId) audit(request, 'office-changed', { user: replacedId, club: club.clubId, office: 'deputy' })
    if (isNewRole) audit(request, 'role-changed', { user: user.id, role })
    return { club, token: app.renewToken(user, role) }
  })
}

export default ownClubs
