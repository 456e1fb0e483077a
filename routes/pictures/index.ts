import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../lib/http/errors.ts'
import { SMALL, WEBP } from '../../lib/pictures/uses.ts'
import { findLargePicture, smallPictureQuery } from './queries.ts'
import * as schemas from './schemas.ts'

const CACHE_CONTROL = 'public, max-age=31536000, immutable'

/** Uploaded pictures. `POST /me/pictures` adds one. */
const pictures: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Params: { id: string }, Querystring: { width?: unknown } }>('/:id', {
    schema: schemas.read,
    // Its header below does not depend on the origin.
    config: { failure: 'Error fetching picture', cache: 'public', cacheControl: CACHE_CONTROL, cors: false },
  }, async (request, reply) => {
    const { params: { id }, query } = request
    reply.headers({
      // Any app may read a picture, so a browser keeps a single copy, with or without the attribute `crossorigin`.
      'access-control-allow-origin': '*',
      // Apps of other origins can show the picture. The policy prevents scripts if a browser opens it as a page.
      'cross-origin-resource-policy': 'cross-origin',
    })
    // A page of cards shows many small pictures. Large pictures would displace lists in the cache.
    if (parseInt(String(query.width), 10) <= SMALL) {
      if (await reply.sendCached(smallPictureQuery, id)) return
      throw new HttpError(404, 'Picture not found')
    }
    const bytes = await app.queues.lists.run(request, () => findLargePicture(app.sql, id))
    if (!bytes) throw new HttpError(404, 'Picture not found')
    reply.headers({ 'content-type': WEBP, 'cache-control': CACHE_CONTROL })
    return reply.send(bytes)
  })
}

export default pictures
