import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'

import { attemptOf } from '../lib/database/idempotency.ts'
import { PER_CONNECTION } from '../lib/database/pools.ts'
import { HttpError } from '../lib/http/errors.ts'
import { loadConverter } from '../lib/pictures/load-converter.ts'
import { CANNOT_CONVERT, PUBLIC_URL_REQUIRED, tooManyUploads } from '../lib/pictures/refusals.ts'
import { insertPicture, prepareUpload, type StoredPicture } from '../lib/pictures/store.ts'
import { knownPicturesUrlOf } from '../lib/pictures/urls.ts'
import { Message, type RefusingHook } from '../lib/values/schemas.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Responds with 501 if this machine cannot convert pictures or the service does not know its own URL. Use it in
     * `onRequest`, so that the body of a refused upload holds no memory.
     */
    requireUploads: onRequestHookHandler & RefusingHook
    /**
     * Converts and stores an uploaded picture of the signed-in user. Rejects with the errors of `convertPicture` and
     * `insertPicture`, and with 503 if the wait ends.
     */
    storePicture (request: FastifyRequest, bytes: Buffer): Promise<StoredPicture>
  }
}

/**
 * Stores uploaded pictures one after the other. If they were converted at once, six of eight pictures with 40
 * megapixels would be lost in a process with 512 MB. A stop refuses uploads that wait, because its timeouts leave time
 * for one conversion, not for a queue.
 */
export default fp(async app => {
  const { sql, config, queues: { pictures, operations } } = app
  const convert = await loadConverter().catch(error => {
    app.log.warn(`Uploads of pictures get a 501, because ${error.message}`)
  })
  let isStopping = false

  app.decorate('requireUploads', Object.assign(async (request: FastifyRequest) => {
    if (!convert) throw new HttpError(501, CANNOT_CONVERT)
    knownPicturesUrlOf(config, request)
  }, { responses: { 501: Message(CANNOT_CONVERT, PUBLIC_URL_REQUIRED) } }))

  app.decorate('storePicture', (request, bytes) => {
    const { network, user: { id } } = request
    const attempt = attemptOf(request)
    const isWanted = () => request.isWanted() && !isStopping
    return pictures.run({ network, isWanted }, async () => {
      // Statements wait for a place of operations, whose holders never wait for an upload.
      const stored = await operations.run(request, () => prepareUpload(sql, id, config, attempt))
      if (stored) return stored
      if (!isWanted()) throw tooManyUploads()
      // `requireUploads` refuses uploads without `convert`.
      const picture = await convert!(bytes, config.MAX_PICTURE_BYTES)
      return operations.run(request, () => insertPicture(sql, id, picture, config, attempt), PER_CONNECTION)
    })
  })
  app.addHook('preClose', async () => {
    isStopping = true
    pictures.check()
  })
}, { name: 'pictures', dependencies: ['admission'] })
