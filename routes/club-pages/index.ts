import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { audit, changedFields } from '../../lib/http/audit.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { picturesUrl } from '../../lib/pictures/stored.ts'
import { changeClub, clubPageQuery, clubPagesQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** Clubs for everybody, without the names and email addresses of their members, and what their organizers change. */
const clubPages: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    schema: schemas.list,
    config: {
      failure: 'Error fetching clubs', cache: 'public', cacheControl: 'no-cache', list: () => [clubPagesQuery],
    },
  }, async (_request, reply) => {
    await reply.sendCached(clubPagesQuery)
  })

  app.get('/:id', {
    schema: schemas.get,
    config: { failure: 'Error fetching club', cache: 'public', cacheControl: 'no-cache' },
  }, async (request, reply) => {
    const isSent = await reply.sendCached(clubPageQuery, request.params.id, picturesUrl(app.config, request))
    if (!isSent) throw new HttpError(404, 'Club not found')
  })

  app.put('/:id', {
    onRequest: app.authenticate,
    schema: schemas.update,
    config: { failure: 'Error updating club', transaction: true },
  }, async request => {
    const { user, params: { id }, body: { name, description, imageUrl, joining } } = request
    const changes = { name, description, imageUrl, joining }
    const club = await changeClub(app.sql, picturesUrl(app.config, request), {
      userId: user.id, id, changes: request.body,
    })
    audit(request, 'club-changed', { target: club.id, fields: changedFields(changes) })
    return { club }
  })
}

export default clubPages
