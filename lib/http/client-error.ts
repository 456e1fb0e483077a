import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

const CLIENT_ERRORS: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** How long a client has to read why its connection closes, in milliseconds. */
const LINGER = 1000

/** An error of Node's parser, with what it could not read. */
interface ClientError extends NodeJS.ErrnoException {
  rawPacket?: unknown
}

/** Responses are sent in the order of their requests: when the last one is finished, all of a connection are. */
const lastResponses = new WeakMap<Socket, ServerResponse>()

/** Tracks the responses of each connection, for `sendClientError`: a listener of the server's event `request`. */
export function trackResponse ({ socket }: IncomingMessage, response: ServerResponse) {
  lastResponses.set(socket, response)
}

/**
 * Whether a client would take an error written now for the response to the broken request. That is one after the last,
 * whose response must be finished, or the rest of the last one, whose response must not have begun.
 */
function awaitsResponse (connection: Socket) {
  const response = lastResponses.get(connection)
  if (!response) return true
  if (response.req.complete) return response.writableFinished
  // Without a socket, it waits for a response before it.
  return !response.headersSent && response.socket !== null
}

/**
 * Answers what Node's parser refuses, such as a broken request line: 400, 408 or 431 `{message}`, then closes the
 * connection. Where the client would take these bytes for another response, or a part of it, the connection closes
 * without.
 */
export function sendClientError (error: ClientError, socket: Socket) {
  // It has its response, and closes: what comes meanwhile is no request.
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
    // Only the raw bytes tell the method of a request that cannot be parsed.
    String(error.rawPacket).startsWith('HEAD ') ? '' : body,
  ].join('\r\n'))
  // Closing at once could destroy the response on its way (RFC 9112, § 9.6); without a timer, a client that keeps
  // sending would keep it open.
  setTimeout(() => socket.destroy(), LINGER).unref()
}
