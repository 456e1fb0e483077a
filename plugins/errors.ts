import type { FastifyError } from 'fastify'
import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import fp from 'fastify-plugin'

import { HttpError } from '../lib/http-error.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What this operation answers when something unexpected happens: the message of its 500, or another answer. */
    failure?: string | { status: number, body: object }
  }
}

/** Renders every error, in one place, as JSON `{message}`; what is not for the client goes to the log. */
export default fp(async app => {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof HttpError) {
      return reply.code(error.statusCode).send({ message: error.message })
    }
    if (error.validation) {
      return reply.code(400).send({ message: 'Validation error', errors: error.validation.map(toIssue) })
    }
    // What Fastify itself refuses: malformed JSON, too large a body, another media type.
    if (error.code?.startsWith('FST_') && error.statusCode && error.statusCode < 500) {
      return reply.code(error.statusCode).send({ message: error.message })
    }
    const { failure = 'Internal server error' } = request.routeOptions.config
    const { status, body } = typeof failure === 'string' ? { status: 500, body: { message: failure } } : failure
    request.log.error({ err: error }, 'Unexpected error')
    return reply.code(status).send(body)
  })

  app.setNotFoundHandler((_request, reply) => {
    return reply.code(404).send({ message: 'Not found' })
  })
}, { name: 'errors' })

const FORMATS: Record<string, string> = {
  email: 'must be an email address',
  text: 'must not contain the character NUL',
  url: 'must be a URL',
  'url-or-empty': 'must be a URL or empty',
}

/** Turns an issue of Ajv's into `{path, message}`: the dotted path of the field, and words for a person. */
function toIssue ({ instancePath, keyword, params, message }: FastifySchemaValidationError) {
  const path = instancePath.split('/').slice(1)
  switch (keyword) {
    case 'required': return { path: [...path, params.missingProperty].join('.'), message: 'is required' }
    case 'format': return { path: path.join('.'), message: FORMATS[String(params.format)] }
    default: return { path: path.join('.'), message }
  }
}
