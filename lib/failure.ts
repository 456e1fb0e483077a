import type { FastifyContextConfig } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What this operation answers when something unexpected happens: the message of its 500, or another answer. */
    failure?: string | Failure
    /** This operation's errors are read by a person in a browser: their message is sent as plain text. */
    plainTextErrors?: boolean
  }
}

interface Failure {
  status: number
  body: { message?: string, [field: string]: unknown }
}

/** The answer that an operation declares for what is unexpected; by default 500 `Internal server error`. */
export function failureOf ({ failure = 'Internal server error' }: FastifyContextConfig): Failure {
  return typeof failure === 'string' ? { status: 500, body: { message: failure } } : failure
}
