import { type TSchema, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf } from '../lib/errors.ts'
import { either, Enum, Message, Named, PlainText, ResponseObject, RetryAfter } from '../lib/schemas.ts'
import { OVERLOADED } from './admission.ts'
import { guardOf } from './auth.ts'
import { EMAIL_REQUIRED, FRONTEND_REQUIRED } from './email.ts'

const Issue = ResponseObject({
  path: Type.String({ description: 'The path of the field.', examples: ['email'] }),
  message: Type.String({ description: 'The problem, in words for people.', examples: ['must be an email address'] }),
}, { title: 'Issue' })

const Issues = Type.Array(Issue, {
  title: 'Issues', description: 'All issues of a request that does not match the schema.',
})

/** A 400 of a route that validates its input. */
export const Invalid = ResponseObject({
  message: Enum(['Validation error']),
  errors: Type.Optional(Issues),
})

const TokenRequired = Named('TokenRequired', Message('Access token required', 'Invalid or expired token'))
const Forbidden = Named('Forbidden', Message('Forbidden'))
const Overloaded = Named('Overloaded', Message(OVERLOADED))

/**
 * Adds the response schemas that the options of a route imply: 400 for request schemas, 401 and 403 for a guard, 501
 * for `requireEmail` and `requireEmailLinks`, and 500 and 503 for a failure. Every response then has a schema, without
 * repetition in the routes.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const responses: Record<number, TSchema> = { ...response as object }
    const guard = guardOf(route)
    const hooks = [route.onRequest].flat()
    const add = (status: number, added: TSchema) => { responses[status] = either(added, responses[status]) }

    if (body || params || querystring) add(400, Invalid)
    if (guard) add(401, TokenRequired)
    if (guard && guard.roles.length > 0) add(403, Forbidden)
    if (hooks.includes(app.requireEmail)) add(501, Message(EMAIL_REQUIRED))
    if (hooks.includes(app.requireEmailLinks)) add(501, Message(EMAIL_REQUIRED, FRONTEND_REQUIRED))
    if (route.config?.failure) {
      const { plainTextErrors } = route.config
      const { status, body } = failureOf(route.config)
      if (body.message && !plainTextErrors) add(status, Message(body.message))
      const overloaded = plainTextErrors ? PlainText(OVERLOADED) : either(Overloaded, responses[503])
      // An operation whose failure is a success also responds to an overload with this success.
      if (status >= 400) responses[503] = { ...overloaded, headers: RetryAfter } as TSchema
    }
    route.schema = { ...route.schema, response: responses }
  })
}, { name: 'response-schemas', dependencies: ['auth', 'errors', 'email'] })
