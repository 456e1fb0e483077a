import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyError } from 'fastify'

import { audit } from '../../../lib/http/audit.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { NOT_A_PICTURE, OTHER_TYPE, PICTURE_TYPES, tooLarge } from '../../../lib/pictures/refusals.ts'
import { knownPicturesUrlOf } from '../../../lib/pictures/urls.ts'
import { CONVERSION_SECONDS } from '../../../lib/config/timeout.ts'
import { deletePicture, picturesOfUserQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** The pictures that the signed-in user has uploaded. */
const pictures: FastifyPluginAsyncTypebox = async app => {
  const { MAX_PICTURE_BYTES, REQUEST_TIMEOUT } = app.config

  // A scope of its own, because only the upload takes pictures instead of JSON.
  app.register(async app => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser(PICTURE_TYPES, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.setErrorHandler<FastifyError>(error => {
      if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') throw new HttpError(413, tooLarge(MAX_PICTURE_BYTES))
      if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') throw new HttpError(415, OTHER_TYPE)
      throw error
    })

    app.post('/', {
      onRequest: [app.authenticate, app.requireUploads],
      bodyLimit: MAX_PICTURE_BYTES,
      schema: schemas.upload,
      config: { failure: 'Error uploading picture', extraSeconds: CONVERSION_SECONDS, waitSeconds: REQUEST_TIMEOUT },
    }, async (request, reply) => {
      const { body } = request
      const picturesUrl = knownPicturesUrlOf(app.config, request)
      if (!(body instanceof Buffer)) throw new HttpError(400, NOT_A_PICTURE)
      const picture = await app.storePicture(request, body)
      reply.code(201)
      return { picture: { ...picture, url: picturesUrl + picture.id } }
    })
  })

  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.list,
    config: { failure: 'Error fetching pictures', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(picturesOfUserQuery, request.user.id, knownPicturesUrlOf(app.config, request))
  })

  app.delete<{ Params: { id: string }, Querystring: { force?: unknown } }>('/:id', {
    onRequest: app.authenticate,
    schema: schemas.remove,
    config: { failure: 'Error deleting picture', transaction: true },
  }, async request => {
    const { user, params: { id }, query } = request
    const force = query.force === 'true'
    const uses = await deletePicture(app.sql, user, id, force)
    if (!uses) throw new HttpError(404, 'Picture not found')
    if (uses.length > 0 && !force) throw new HttpError(409, schemas.IN_USE, { fields: { uses } })
    audit(request, 'picture-deleted', { target: id })
    return { message: 'Picture deleted successfully' }
  })
}

export default pictures
