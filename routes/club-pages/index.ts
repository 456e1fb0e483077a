import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit, changedFields } from '../../lib/http/audit.ts'
import { HttpError, validationError } from '../../lib/http/errors.ts'
import { picturesUrlOf } from '../../lib/pictures/urls.ts'
import { currentMinute } from '../../lib/values/formats.ts'
import { changeClub, changeMember, clubPageQuery, clubPagesQuery, membersQuery, refuseMembers } from './queries.ts'
import * as schemas from './schemas.ts'

/** Public pages of clubs, and the operations by which organizers change a club and its members. */
const clubPages: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: {
      failure: 'Error fetching clubs', cache: 'public', cacheControl: 'no-cache', live: () => [clubPagesQuery],
    },
  }, async (_request, reply) => {
    await reply.sendCached(clubPagesQuery)
  })

  app.get('/:id', {
    schema: schemas.get,
    config: { failure: 'Error fetching club', cache: 'public', cacheControl: 'no-cache' },
  }, async (request, reply) => {
    const isSent = await reply.sendCached(clubPageQuery, request.params.id, picturesUrlOf(app.config, request))
    if (!isSent) throw new HttpError(404, 'Club not found')
  })

  app.put('/:id', {
    onRequest: app.authenticate,
    bodyLimit: app.config.MAX_TEXT_BYTES,
    schema: schemas.update,
    config: { failure: 'Error updating club', transaction: true },
  }, async request => {
    const { user, params: { id }, body: changes } = request
    const club = await changeClub(app.sql, picturesUrlOf(app.config, request), { userId: user.id, id, changes })
    audit(request, 'club-changed', { club: club.id, fields: changedFields(changes, schemas.update.body) })
    return { club }
  })

  app.get('/:id/members', {
    onRequest: app.authenticate,
    schema: schemas.listMembers,
    config: { failure: 'Error fetching members', cache: 'private' },
  }, async (request, reply) => {
    const { user, params: { id } } = request
    const isSent = await reply.sendCached(membersQuery, user.id, id, currentMinute())
    if (!isSent) await app.queues.operations.run(request, () => refuseMembers(app.sql, user.id, id))
  })

  app.put('/:id/members/:userId', {
    onRequest: app.authenticate,
    schema: schemas.changeMember,
    config: { failure: 'Error changing member', transaction: true },
  }, async request => {
    const { user, params: { id, userId }, body: { state, reason, office } } = request
    if ((state === undefined) === (office === undefined)) {
      throw validationError('state', 'must be given, or else office')
    }
    if (reason !== undefined && state !== 'refused') throw validationError('reason', 'must come with state refused')
    const { member, changed } = await changeMember(app.sql, app.outbox, {
      actorId: user.id, clubId: id, userId, decision: state === undefined ? { office: office! } : { state, reason },
    })
    if (changed.state) audit(request, 'membership-changed', { user: userId, club: id, state: changed.state })
    if (changed.office !== undefined) {
      audit(request, 'office-changed', { user: userId, club: id, office: changed.office })
    }
    if (changed.role) audit(request, 'role-changed', { user: userId, role: changed.role })
    return { member }
  })
}

export default clubPages
