import type { FastifyError, FastifyReply, FastifySchemaValidationError } from 'fastify'
import fp from 'fastify-plugin'
import postgres from 'postgres'

import { isRefusal } from '../lib/database/conflicts.ts'
import { FORMATS } from '../lib/values/formats.ts'
import { audit } from '../lib/http/audit.ts'
import { failureOf, HttpError, RefusedError } from '../lib/http/errors.ts'

/** Maximum number of issues in a response. No operation takes more than a hundred values. */
const MAX_ISSUES = 200

/** Headers of successes, which are removed from errors. */
const OF_SUCCESS = ['etag', 'content-disposition', 'content-encoding', 'content-length', 'content-type']

/**
 * Renders all errors as JSON `{message}`. Details that clients must not see go to the log: a mistake of a client as a
 * warning, and everything else as an error with its stack, for the operator.
 */
export default fp(async app => {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    for (const name of OF_SUCCESS) reply.removeHeader(name)
    reply.header('cache-control', 'no-store')
    const { status, body } = failureOf(request.routeOptions.config)
    if (error instanceof HttpError) {
      if (error.statusCode === 403) audit(request, 'access-denied')
      // `GET /mentors` responds to every failure with 200, including an overload.
      if (error.statusCode === 503 && status < 400) return respond(reply, status, body)
      return respond(reply.headers(error.headers), error.statusCode, { message: error.message, ...error.fields })
    }
    if (error.validation) {
      const issues = error.validation.slice(0, MAX_ISSUES)
      return reply.code(400).send({ message: 'Validation error', errors: issues.map(toIssue) })
    }
    // Fastify refuses malformed JSON, large bodies and other media types. `String`, because the code of
    // a DOMException is a number.
    if (String(error.code).startsWith('FST_') && error.statusCode && error.statusCode < 500) {
      return reply.code(error.statusCode).send({ message: error.message })
    }
    const actor = request.user?.id
    if (error instanceof RefusedError || (error instanceof postgres.PostgresError && isRefusal(error))) {
      request.log.warn({ cause: error.message, code: error.code, actor }, 'Request refused')
      return respond(reply, status, body)
    }
    // The operation may or may not have taken effect, so the line names the user. If the client disconnected while it
    // sent its body, a separate line is logged instead.
    if (error !== request.raw.errored) {
      request.log.error({ err: error, actor }, 'Unexpected error')
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

/** Converts an issue of Ajv to `{path, message}`, with the dotted path of the field and a message for people. */
function toIssue ({ instancePath, keyword, params, message }: FastifySchemaValidationError) {
  const path = instancePath.split('/').slice(1)
  switch (keyword) {
    case 'required': return { path: [...path, params.missingProperty].join('.'), message: 'is required' }
    case 'format': return { path: path.join('.'), message: FORMATS[String(params.format)]?.message ?? message }
    default: return { path: path.join('.'), message }
  }
}
