import type { FastifyContextConfig } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response to unexpected errors: the message of the 500, or a different status and body. */
    failure?: string | Failure
    /** Sends error messages as plain text, because a person sees them in a browser. */
    plainTextErrors?: boolean
  }
}

interface Failure {
  status: number
  body: { message?: string, [field: string]: unknown }
}

/** Returns the declared response to unexpected errors. The default is 500 `Internal server error`. */
export function failureOf ({ failure = 'Internal server error' }: FastifyContextConfig): Failure {
  return typeof failure === 'string' ? { status: 500, body: { message: failure } } : failure
}

/**
 * An expected error. The error handler responds with its status, headers and `{message}` with the additional fields,
 * and does not log it.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly statusCode: number
  /** Additional fields of the body. */
  readonly fields: object
  readonly headers: Record<string, string | number>

  constructor (
    statusCode: number, message: string,
    { fields = {}, headers = {} }: Partial<Pick<HttpError, 'fields' | 'headers'>> = {}
  ) {
    super(message)
    this.statusCode = statusCode
    this.fields = fields
    this.headers = headers
  }
}

/** Error message of requests that are refused during an overload. */
export const OVERLOADED = 'The service is overloaded, please try again in a few seconds'

/** Returns the error of a request that the service refuses during an overload. */
export const overloaded = () => new HttpError(503, OVERLOADED, { headers: { 'retry-after': 2 } })

/** The error of a request whose field at this path is invalid, if its schema alone cannot tell. */
export const validationError = (path: string, message: string) =>
  new HttpError(400, 'Validation error', { fields: { errors: [{ path, message }] } })

/**
 * A request that cannot succeed, but for which the contract has no other error than the failure of the operation. For
 * example, the post to approve does not exist. It is a mistake of a client, so the log gets a warning.
 */
export class RefusedError extends Error {
  override name = 'RefusedError'
}
