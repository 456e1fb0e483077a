import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

import type { FastifyContextConfig } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response of this operation to an unexpected error: the message of its 500, or another status and body. */
    failure?: string | Failure
    /** This operation's errors are read by a person in a browser: their message is sent as plain text. */
    plainTextErrors?: boolean
  }
}

interface Failure {
  status: number
  body: { message?: string, [field: string]: unknown }
}

/** The response that a route declares for unexpected errors; 500 `Internal server error` by default. */
export function failureOf ({ failure = 'Internal server error' }: FastifyContextConfig): Failure {
  return typeof failure === 'string' ? { status: 500, body: { message: failure } } : failure
}

interface HttpErrorOptions {
  /** Fields of the body beside its message. */
  fields?: object
  headers?: Record<string, string | number>
}

/**
 * An error that the contract names. The error handler responds with its status, its headers and `{message}` with the
 * further fields, and logs nothing.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly statusCode: number
  readonly fields: object
  readonly headers: Record<string, string | number>

  constructor (statusCode: number, message: string, { fields = {}, headers = {} }: HttpErrorOptions = {}) {
    super(message)
    this.statusCode = statusCode
    this.fields = fields
    this.headers = headers
  }
}

/**
 * Keeps the service or a command from starting: a wrong variable, a database out of reach, a taken port. A person can
 * fix it, so its message is printed without a stack trace.
 */
export class StartupError extends Error {
  override name = 'StartupError'
}

/**
 * How long a connection is tried with one of the addresses of a host before the next, in milliseconds. By Node's 250 no
 * server is reached that is further away, if its other addresses do not answer.
 */
const ATTEMPT_MS = 2000

/**
 * Runs an entry point. A StartupError prints its message on standard error, any other error its stack trace as well;
 * both end with exit code 1.
 */
export async function runMain (main: () => Promise<void>) {
  setDefaultAutoSelectFamilyAttemptTimeout(ATTEMPT_MS)
  try {
    await main()
  } catch (error) {
    console.error(error instanceof StartupError ? error.message : error)
    process.exitCode = 1
  }
}
