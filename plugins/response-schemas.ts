import { type TObject, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf } from '../lib/errors.ts'
import { either, Enum, Message, PlainText, ResponseObject, RetryAfter } from '../lib/schemas.ts'
import { OVERLOADED } from './admission.ts'
import { guardOf } from './auth.ts'
import { EMAIL_REQUIRED } from './email.ts'

const Issue = ResponseObject({
  path: Type.String({ description: 'Which field.', examples: ['email'] }),
  message: Type.String({ description: 'What is wrong with it.', examples: ['must be an email address'] }),
}, { title: 'Issue' })

const Invalid = ResponseObject({
  message: Enum(['Validation error']),
  errors: Type.Optional(Type.Array(Issue, { description: 'One for every issue of a request that breaks its schema.' })),
})

const TokenRequired: TObject = {
  ...Message('Access token required', 'Invalid or expired token'), title: 'TokenRequired',
}

const Overloaded: TObject = { ...Message(OVERLOADED), title: 'Overloaded' }

/**
 * Adds to the response schemas of a route those that its other options imply: 400 by its request schemas, 401 and 403
 * by its guard, 501 by `requireEmail`, 500 and the 503 of an overload by its failure. So each route has a schema for
 * every response, and none is repeated.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const responses: Record<number, TObject> = { ...response as object }
    const guard = guardOf(route)
    const add = (status: number, added: TObject) => { responses[status] = either(added, responses[status]) }

    if (body || params || querystring) add(400, Invalid)
    if (guard) add(401, TokenRequired)
    if (guard && guard.roles.length > 0) add(403, Message('Forbidden'))
    if ([route.onRequest].flat().includes(app.requireEmail)) add(501, Message(EMAIL_REQUIRED))
    if (route.config?.failure) {
      const { plainTextErrors } = route.config
      const { status, body } = failureOf(route.config)
      if (body.message && !plainTextErrors) add(status, Message(body.message))
      const overloaded = plainTextErrors ? PlainText(OVERLOADED) : either(Overloaded, responses[503])
      // An operation whose failure is a success responds to an overload with that, too.
      if (status >= 400) responses[503] = { ...overloaded, headers: RetryAfter } as TObject
    }
    route.schema = { ...route.schema, response: responses }
  })
}, { name: 'response-schemas', dependencies: ['auth', 'errors', 'email'] })
