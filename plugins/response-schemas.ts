import { type TObject, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf } from '../lib/errors.ts'
import { either, Enum, Message, ResponseObject } from '../lib/schemas.ts'
import { guardOf } from './auth.ts'

const Issue = ResponseObject({
  path: Type.String({ description: 'Which field.', examples: ['email'] }),
  message: Type.String({ description: 'What is wrong with it.', examples: ['must be an email address'] }),
}, { title: 'Issue' })

const Invalid = ResponseObject({
  message: Enum(['Validation error']),
  errors: Type.Optional(Type.Array(Issue, { description: 'One for every issue of a request that breaks its schema.' })),
})

/**
 * Adds to the response schemas of a route those that its other options imply: 400 by its request schemas, 401 and 403
 * by its guard, 500 by its failure. So each route has a schema for every response, and none is repeated.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const responses: Record<number, TObject> = { ...response as object }
    const guard = guardOf(route)
    const add = (status: number, added: TObject) => { responses[status] = either(added, responses[status]) }

    if (body || params || querystring) add(400, Invalid)
    if (guard) add(401, Message('Access token required', 'Invalid or expired token'))
    if (guard && guard.roles.length > 0) add(403, Message('Forbidden'))
    if (route.config?.failure && !route.config.plainTextErrors) {
      const { status, body } = failureOf(route.config)
      if (body.message) add(status, Message(body.message))
    }
    route.schema = { ...route.schema, response: responses }
  })
}, { name: 'response-schemas', dependencies: ['auth', 'errors'] })
