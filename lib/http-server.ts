import { createServer, type RequestListener } from 'node:http'

import type { Config } from './config.ts'

/** How often connections are looked at that took too long, in milliseconds: by so much they may exceed their time. */
const CHECK_INTERVAL = 1000

/** Makes the HTTP server. No client holds a connection by sending slowly, by not reading, or by doing nothing. */
export function createHttpServer (config: Config, listener: RequestListener) {
  const { MAX_HEADER_BYTES, REQUEST_TIMEOUT, IDLE_TIMEOUT } = config
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: REQUEST_TIMEOUT * 1000,
    requestTimeout: REQUEST_TIMEOUT * 1000,
    keepAliveTimeout: IDLE_TIMEOUT * 1000,
    connectionsCheckingInterval: CHECK_INTERVAL,
  }, listener)
  // What a client expects beyond 100-continue may be ignored (RFC 9110, § 10.1.1); Node would answer 417, and no JSON.
  server.on('checkExpectation', listener)
  return server.setTimeout(IDLE_TIMEOUT * 1000)
}
