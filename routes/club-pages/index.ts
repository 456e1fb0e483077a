import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../lib/http/errors.ts'
import { picturesUrl } from '../../lib/pictures/stored.ts'
import { clubPageQuery, clubPagesQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** Clubs for everybody, without the names and email addresses of their members. */
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
}

export default clubPages
