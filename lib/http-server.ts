import { createServer, type IncomingMessage, type RequestListener, ServerResponse } from 'node:http'

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
    ServerResponse: limitedResponse(IDLE_TIMEOUT * 1000),
  }, listener)
  // What a client expects beyond 100-continue may be ignored (RFC 9110, § 10.1.1); Node would answer 417, and no JSON.
  server.on('checkExpectation', listener)
  return server
}

/**
 * Makes responses whose connection is closed when the client takes nothing of them for so many milliseconds. The
 * `timeout` of Node's server does that too, by timers for every request, also for those whose answer is taken at once.
 */
function limitedResponse (idle: number): typeof ServerResponse {
  return class <Request extends IncomingMessage> extends ServerResponse<Request> {
    override write (...args: unknown[]) {
      const isTaken = super.write(...args as Parameters<ServerResponse['write']>)
      if (this.writableLength > 0) this.setTimeout(idle)
      return isTaken
    }

    override end (...args: unknown[]) {
      super.end(...args as Parameters<ServerResponse['end']>)
      if (this.writableLength > 0) this.setTimeout(idle)
      return this
    }
  }
}
