import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'

import { HttpError } from '../../lib/errors.ts'
import { SMALL } from '../../lib/pictures/stored.ts'
import { findPicture } from './queries.ts'
import * as schemas from './schemas.ts'

/** Uploaded pictures. `POST /me/pictures` adds one. */
const pictures: FastifyPluginAsyncTypebox = async app => {
  app.get<{ Params: { id: string }, Querystring: { width?: unknown } }>('/:id', {
    schema: schemas.read,
    // Its header below does not depend on the origin.
    config: { failure: 'Error fetching picture', admission: 'reads', cors: false },
  }, async ({ params, query }, reply) => {
    // Any app may read a picture, so a browser keeps a single copy, with or without the attribute `crossorigin`.
    reply.header('access-control-allow-origin', '*')
    const isSmall = parseInt(String(query.width), 10) <= SMALL
    const bytes = await reply.admitList(sql => findPicture(sql, params.id, isSmall))
    if (!bytes) throw new HttpError(404, 'Picture not found')
    // Apps of other origins can show the picture. The policy prevents scripts if a browser opens it as a page.
    reply.headers({
      'content-type': 'image/webp',
      'cache-control': 'public, max-age=31536000, immutable',
      'cross-origin-resource-policy': 'cross-origin',
    })
    return reply.send(bytes)
  })
}

export default pictures
