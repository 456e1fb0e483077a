import type { FastifyError, FastifyReply } from 'fastify'
import type { FastifySchemaValidationError } from 'fastify/types/schema.js'
import fp from 'fastify-plugin'

import { failureOf, HttpError } from '../lib/errors.ts'
import { audit } from '../lib/http/audit.ts'

/** Headers of a success, which no error has, whatever was set before it occurred. */
const OF_SUCCESS = ['etag', 'content-disposition', 'content-encoding', 'content-length', 'content-type']

/** Renders every error, in one place, as JSON `{message}`; what is not for the client goes to the log. */
export default fp(async app => {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    for (const name of OF_SUCCESS) reply.removeHeader(name)
    reply.header('cache-control', 'no-store')
    const { status, body } = failureOf(request.routeOptions.config)
    if (error instanceof HttpError) {
      if (error.statusCode === 403) audit(request, 'access-denied')
      // `GET /mentors` answers every failure with 200, an overload too.
      if (error.statusCode === 503 && status < 400) return respond(reply, status, body)
      return respond(reply.headers(error.headers), error.statusCode, { message: error.message, ...error.fields })
    }
    if (error.validation) {
      return reply.code(400).send({ message: 'Validation error', errors: error.validation.map(toIssue) })
    }
    // Fastify itself refuses malformed JSON, a body that is too large, or another media type.
    // A code may be a number: that of a DOMException.
    if (String(error.code).startsWith('FST_') && error.statusCode && error.statusCode < 500) {
      return reply.code(error.statusCode).send({ message: error.message })
    }
    // Whether the operation has taken effect is unknown, so the line names who asked for it. A client that has gone
    // amid its body is no error of the service, and has a line of its own.
    if (error !== request.raw.errored) {
      request.log.error({ err: error, actor: request.user?.id }, 'Unexpected error')
    }
    return respond(reply, status, body)
  })

  app.setNotFoundHandler((_request, reply) => {
    return reply.code(404).send({ message: 'Not found' })
  })
}, { name: 'errors' })

function respond (reply: FastifyReply, status: number, body: { message?: string }) {
  const { plainTextErrors } = reply.request.routeOptions.config
  // RFC 9110, § 15.5.2
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  return reply.code(status).send(plainTextErrors ? body.message : body)
}

const FORMATS: Record<string, string> = {
  email: 'must be an email address',
  password: 'must not contain the character NUL, or half of a character',
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
