import { type TObject, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf } from '../lib/failure.ts'
import { Answer, either, Enum, Message } from '../lib/schemas.ts'
import { guardOf } from './auth.ts'

const Issue = Answer({
  path: Type.String({ description: 'Which field.', examples: ['email'] }),
  message: Type.String({ description: 'What is wrong with it.', examples: ['must be an email address'] }),
}, { title: 'Issue' })

const Invalid = Answer({
  message: Enum(['Validation error']),
  errors: Type.Optional(Type.Array(Issue, { description: 'One for every issue of a request that breaks its schema.' })),
})

/**
 * Adds to the answers that a route declares in its schema those that its other options imply: 400 by what it checks,
 * 401 and 403 by whom it lets in, 500 by its failure. So each schema lists every answer, and no route repeats one.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const answers: Record<number, TObject> = { ...response as object }
    const guard = guardOf(route)
    const add = (status: number, answer: TObject) => { answers[status] = either(answer, answers[status]) }

    if (body || params || querystring) add(400, Invalid)
    if (guard) add(401, Message('Access token required', 'Invalid or expired token'))
    if (guard && guard.roles.length > 0) add(403, Message('Forbidden'))
    if (route.config?.failure && !route.config.plainTextErrors) {
      const { status, body } = failureOf(route.config)
      if (body.message) add(status, Message(body.message))
    }
    route.schema = { ...route.schema, response: answers }
  })
}, { name: 'answers', dependencies: ['auth', 'errors'] })
