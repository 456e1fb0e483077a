import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

const CLIENT_ERRORS: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** Time for a client to read the error before its connection closes. */
const LINGER_MS = 1000

/**
 * The last response of each connection, even after this response has ended. Otherwise, the rest of a refused upload
 * would get a second response. Responses are sent in order, so if the last is finished, all are finished.
 */
const lastResponses = new WeakMap<Socket, ServerResponse>()

/** Tracks the last response of each connection for `sendClientError`. Call it for each request. */
export function trackResponse ({ socket }: IncomingMessage, response: ServerResponse) {
  lastResponses.set(socket, response)
}

/**
 * Tells whether a client would understand an error as the response to the broken request. If this is a new request, the
 * last response must be finished. If it is the rest of the last request, its response must not have begun.
 */
function awaitsResponse (connection: Socket) {
  const response = lastResponses.get(connection)
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
 * closes without a response.
 */
export function sendClientError (error: ClientError, socket: Socket) {
  // The connection already has an error response and is closing. Later data is ignored.
  if (socket.writableEnded) return
  if (!socket.writable || error.code === 'ECONNRESET' || !awaitsResponse(socket)) {
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
