import type { FastifyRequest } from 'fastify'

import type { Config } from '../config/config.ts'

/**
 * Returns the public URL of this service: PUBLIC_URL or, in development, the host of the request. Null in production
 * without PUBLIC_URL, because clients can send any host.
 */
export function serviceUrl ({ PUBLIC_URL, NODE_ENV }: Config, { protocol, host }: FastifyRequest) {
  if (!PUBLIC_URL && NODE_ENV === 'production') return null
  return PUBLIC_URL ?? `${protocol}://${host}`
}

/** Returns the path of PUBLIC_URL, which a proxy removes, without a slash at its end. */
export const pathPrefix = ({ PUBLIC_URL }: Config) => PUBLIC_URL ? new URL(PUBLIC_URL).pathname.replace(/\/$/, '') : ''
