import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'

import { attemptOf } from '../lib/database/idempotency.ts'
import { HttpError } from '../lib/http/errors.ts'
import { loadConverter } from '../lib/pictures/load-converter.ts'
import { CANNOT_CONVERT, PUBLIC_URL_REQUIRED } from '../lib/pictures/refusals.ts'
import { createPictureStore, type StoredPicture } from '../lib/pictures/store.ts'
import { knownPicturesUrlOf } from '../lib/pictures/urls.ts'
import { Message, type RefusingHook } from '../lib/values/schemas.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Responds with 501 if this machine cannot convert pictures or the service does not know its own URL. Use it in
     * `onRequest`, so that the body of a refused upload holds no memory.
     */
    requireUploads: onRequestHookHandler & RefusingHook
    /** Stores an uploaded picture of the signed-in user. Rejects with the errors of `storePicture`. */
    storePicture (request: FastifyRequest, bytes: Buffer): Promise<StoredPicture>
  }
}

/**
 * Stores uploaded pictures. A stop refuses uploads that wait, because its timeouts leave time for one conversion, not
 * for a queue.
 */
export default fp(async app => {
  const convert = await loadConverter().catch(error => {
    app.log.warn(`Uploads of pictures get a 501, because ${error.message}`)
  })

  app.decorate('requireUploads', Object.assign(async (request: FastifyRequest) => {
    if (!convert) throw new HttpError(501, CANNOT_CONVERT)
    knownPicturesUrlOf(app.config, request)
  }, { responses: { 501: Message(CANNOT_CONVERT, PUBLIC_URL_REQUIRED) } }))

  // `requireUploads` refuses uploads without `convert`.
  const store = createPictureStore(app.sql, app.queues, app.config, convert!)
  app.decorate('storePicture', (request, bytes) =>
    store.storePicture(request, { userId: request.user.id, attempt: attemptOf(request), bytes }))
  app.addHook('preClose', async () => store.endWaits())
}, { name: 'pictures', dependencies: ['admission'] })
