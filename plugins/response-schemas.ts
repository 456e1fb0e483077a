import { type TSchema, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf, OVERLOADED } from '../lib/http/errors.ts'
import {
  either, Enum, Message, Named, PlainText, type RefusingHook, ResponseObject, RetryAfter,
} from '../lib/values/schemas.ts'

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

const Overloaded = Named('Overloaded', Message(OVERLOADED))

/**
 * Adds the response schemas that the options of a route imply: 400 for request schemas, the responses of its hooks (a
 * guard sends 401 and 403), and 500 and 503 for a failure. Every response then has a schema, without repetition in the
 * routes.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const responses: Record<number, TSchema> = { ...response as object }
    const add = (status: number, added: TSchema) => { responses[status] = either(added, responses[status]) }

    if (body || params || querystring) add(400, Invalid)
    for (const hook of [route.onRequest ?? []].flat() as Partial<RefusingHook>[]) {
      for (const [status, refusal] of Object.entries(hook.responses ?? {})) add(Number(status), refusal)
    }
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
}, { name: 'response-schemas', dependencies: ['errors'] })
