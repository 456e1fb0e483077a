import type { FastifyRequest } from 'fastify'

import { HttpError } from '../errors.ts'

/** The id of the user in the request's token. Throws 401 with this text when a valid token has no user. */
export function userIdOf ({ user }: FastifyRequest, refusal: string) {
  if (!user.id) throw new HttpError(401, refusal)
  return user.id
}
