import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyError } from 'fastify'

import { HttpError } from '../../../lib/errors.ts'
import { audit } from '../../../lib/http/audit.ts'
import {
  assertPictureQueue, convertPicture, NOT_A_PICTURE, OTHER_TYPE, PICTURE_TYPES, tooLarge,
} from '../../../lib/pictures/convert.ts'
import { deleteUnusedPictures, picturesUrl } from '../../../lib/pictures/stored.ts'
import { PICTURE_SECONDS } from '../../../lib/timeout.ts'
import { deletePicture, insertPicture, picturesOfUserQuery } from './queries.ts'
import * as schemas from './schemas.ts'

/** The pictures that the signed-in user has uploaded. */
const pictures: FastifyPluginAsyncTypebox = async app => {
  const { MAX_PICTURE_BYTES, PICTURES_PER_USER, PICTURE_MB_PER_USER } = app.config

  app.register(async app => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser(PICTURE_TYPES, { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.setErrorHandler<FastifyError>(error => {
      if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') throw new HttpError(413, tooLarge(MAX_PICTURE_BYTES))
      if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') throw new HttpError(415, OTHER_TYPE)
      throw error
    })

    app.post('/', {
      onRequest: app.authenticate,
      bodyLimit: MAX_PICTURE_BYTES,
      schema: schemas.upload,
      config: { failure: 'Error uploading picture', extraSeconds: PICTURE_SECONDS },
      // Checked before the body arrives, so that refused uploads do not hold memory.
      preParsing: async request => {
        picturesUrl(app.config, request)
        await assertPictureQueue(request)
      },
    }, async (request, reply) => {
      const { body, user } = request
      if (!(body instanceof Buffer)) throw new HttpError(400, NOT_A_PICTURE)
      const converted = await convertPicture(body, MAX_PICTURE_BYTES, request)
      await deleteUnusedPictures(app.sql, user.id)
      const picture = await insertPicture(app.sql, user.id, converted, {
        count: PICTURES_PER_USER, bytes: PICTURE_MB_PER_USER * 1_000_000,
      })
      if (!picture) throw new HttpError(401, 'Unauthorized')
      if (picture === 'quota') throw new HttpError(409, schemas.tooMany(PICTURES_PER_USER, PICTURE_MB_PER_USER))
      reply.code(201)
      return { picture: { ...picture, url: picturesUrl(app.config, request) + picture.id } }
    })
  })

  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.list,
    config: { failure: 'Error fetching pictures', cache: 'private' },
  }, async (request, reply) => {
    await reply.sendCached(picturesOfUserQuery, request.user.id, picturesUrl(app.config, request))
  })

  app.delete<{ Params: { id: string } }>('/:id', {
    onRequest: app.authenticate,
    schema: schemas.remove,
    config: { failure: 'Error deleting picture' },
  }, async request => {
    const { id } = request.params
    if (!await deletePicture(app.sql, request.user, id)) throw new HttpError(404, 'Picture not found')
    audit(request, 'picture-deleted', { target: id })
    return { message: 'Picture deleted successfully' }
  })
}

export default pictures
