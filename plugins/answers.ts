import { type TObject, Type } from '@sinclair/typebox'
import fp from 'fastify-plugin'

import { failureOf } from '../lib/failure.ts'
import { Answer, Message } from '../lib/schemas.ts'
import type { Guard } from './auth.ts'

const Issues = Type.Array(Answer({ path: Type.String(), message: Type.String() }))

/**
 * Adds to the answers that a route declares in its schema those that its other options imply: 400 by what it checks,
 * 401 and 403 by whom it lets in, 500 by its failure. So each schema lists every answer, and no route repeats one.
 */
export default fp(async app => {
  app.addHook('onRoute', route => {
    const { body, params, querystring, response } = route.schema ?? {}
    const answers: Record<number, TObject> = { ...response as object }
    const guard = [route.onRequest].flat().find((hook): hook is Guard => hook !== undefined && 'roles' in hook)

    if (body || params || querystring) {
      const { properties } = also(answers[400], 'Validation error')
      answers[400] = Answer({ ...properties, errors: Type.Optional(Issues) })
    }
    if (guard) answers[401] = also(answers[401], 'Access token required', 'Invalid or expired token')
    if (guard && guard.roles.length > 0) answers[403] = also(answers[403], 'Forbidden')
    if (route.config?.failure && !route.config.plainTextErrors) {
      const { status, body } = failureOf(route.config)
      if (body.message) answers[status] = also(answers[status], body.message)
    }
    route.schema = { ...route.schema, response: answers }
  })
}, { name: 'answers', dependencies: ['auth', 'errors'] })

/** The route's own answer `{message}`, other fields included, with these texts beside its own. */
function also (answer: TObject | undefined, ...texts: string[]) {
  const { message, ...fields } = answer?.properties ?? {}
  return Answer({ ...Message(...texts, ...message?.enum ?? []).properties, ...fields })
}
