import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

import type { Connection } from './connections.ts'

const CLIENT_ERRORS: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** Time for a client to read the error before its connection closes. */
const LINGER_MS = 1000

/**
 * Tells whether a client would understand an error as the response to the broken request. If this is a new request, the
 * last response must be finished. Responses are sent in order, so then all are finished. If it is the rest of the last
 * request, its response must not have begun.
 */
function awaitsResponse (response: Connection['last']) {
  if (!response) return true
  if (response.req.complete) return response.writableFinished
  // A response without a socket waits for an earlier response.
  return !response.headersSent && response.socket !== null
}

/** An error of Node's HTTP parser, with the bytes that it could not parse. */
interface ClientError {
  code?: string | undefined
  rawPacket?: unknown
}

/**
 * Responds to a request that Node's parser or the server refuses, for example because of a broken request line: sends
 * 400, 408 or 431 `{message}` and closes the connection. If the client could mistake this for part of another response,
 * closes without a response. `last` is the last response of the connection.
 */
export function sendClientError (error: ClientError, socket: Socket, last?: Connection['last']) {
  // The connection already has an error response and is closing. Later data is ignored.
  if (socket.writableEnded) return
  if (!socket.writable || error.code === 'ECONNRESET' || !awaitsResponse(last)) {
    socket.destroy()
    return
  }
  const status = CLIENT_ERRORS[error.code ?? ''] ?? 400
  const body = JSON.stringify({ message: STATUS_CODES[status] })
  socket.end([
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    // Only the raw bytes contain the method of an unparsable request.
    String(error.rawPacket).startsWith('HEAD ') ? '' : body,
  ].join('\r\n'))
  // Closing at once could lose the response (RFC 9112, § 9.6). Without a timer, a client that keeps sending would keep
  // the connection open.
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
