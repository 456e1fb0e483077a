import type { FastifyRequest } from 'fastify'

import type { Config } from '../config/config.ts'
import { HttpError } from '../http/errors.ts'
import { serviceUrl } from '../http/service-url.ts'
import { PUBLIC_URL_REQUIRED } from './refusals.ts'

/** Returns the base URL of the pictures of this service; null if the service does not know its own URL. */
export function picturesUrlOf (config: Config, request: FastifyRequest) {
  const url = serviceUrl(config, request)
  return url && `${url}/pictures/`
}

/** Returns the base URL of the pictures like `picturesUrlOf`. Throws a 501 if the service does not know its own URL. */
export function knownPicturesUrlOf (config: Config, request: FastifyRequest) {
  const url = picturesUrlOf(config, request)
  if (!url) throw new HttpError(501, PUBLIC_URL_REQUIRED)
  return url
}
