import { Readable } from 'node:stream'

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'

import { readPersonalData } from '../../../lib/accounts/personal-data.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { picturesUrlOf } from '../../../lib/pictures/urls.ts'
import * as schemas from './schemas.ts'

/** The personal data of the signed-in user. */
const exports: FastifyPluginAsyncTypebox = async app => {
  app.get('/', {
    onRequest: app.authenticate,
    schema: schemas.exportData,
    config: { failure: 'Error exporting data', admission: 'reads' },
  }, async (request, reply: FastifyReply) => {
    const data = await readPersonalData(
      read => app.queues.lists.run(request, () => read(app.sql)), request.user.id, picturesUrlOf(app.config, request)
    )
    if (!data) throw new HttpError(401, 'Unauthorized')
    reply.headers({
      'content-type': 'application/json; charset=utf-8',
      'content-disposition': 'attachment; filename="personal-data.json"',
    })
    return reply.send(Readable.from(request.method === 'HEAD' ? [] : data, { objectMode: false }))
  })
}

export default exports
