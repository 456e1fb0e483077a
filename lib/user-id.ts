import type { FastifyRequest } from 'fastify'

import { HttpError } from './http-error.ts'

/** The id of the user whom the request's token names. Throws 401 with this text when a valid token names nobody. */
export function userIdOf ({ user }: FastifyRequest, refusal: string) {
  if (!user.id) throw new HttpError(401, refusal)
  return user.id
}
