import { type ServerResponse, STATUS_CODES } from 'node:http'

/** A name and a value. */
export type Header = [string, string]

/**
 * A response that is sent many times. For each response Node checks the headers, joins them, and writes them and the
 * body, a quarter of what an answer from memory takes; here all is put together once a second, for the date. What goes
 * over the connection is what Node would send.
 */
export class HttpMessage {
  readonly #status: number
  readonly #headers: Header[]
  readonly #body: Buffer
  readonly #idleTimeout: number
  /** The second since 1970 that the bytes tell. */
  #second = 0
  #bytes = Buffer.alloc(0)

  /**
   * The headers must be fit to send, and tell the length of the body unless the status allows for none. A client that
   * takes nothing of it for `idleTimeout` seconds is hung up on.
   */
  constructor (status: number, headers: Header[], body: Buffer, idleTimeout: number) {
    this.#status = status
    this.#headers = headers
    this.#body = body
    this.#idleTimeout = idleTimeout
  }

  /** Sends it as the whole of this response. */
  send (response: ServerResponse) {
    const { socket } = response
    // Behind the response to an earlier request, or as the last one of its connection, it is Node's to send.
    if (!socket?.writable || !response.shouldKeepAlive) {
      response.writeHead(this.#status, this.#headers.flat()).end(this.#body)
      return
    }
    // For whoever watches responses.
    response.statusCode = this.#status
    // This is how Node hears that a response has been sent, and that the next one may follow.
    socket.write(this.#currentBytes(), () => response.emit('finish'))
    if (socket.writableLength > 0) response.setTimeout(this.#idleTimeout * 1000)
  }

  #currentBytes () {
    const now = Date.now()
    const second = Math.floor(now / 1000)
    if (second !== this.#second) {
      this.#second = second
      const headers: Header[] = [
        ...this.#headers,
        ['Date', new Date(now).toUTCString()],
        ['Connection', 'keep-alive'],
        ['Keep-Alive', `timeout=${this.#idleTimeout}`],
      ]
      const lines = [`HTTP/1.1 ${this.#status} ${STATUS_CODES[this.#status]}`]
      for (const [name, value] of headers) lines.push(`${name}: ${value}`)
      // What is being sent may still need those of the second before.
      this.#bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), this.#body])
    }
    return this.#bytes
  }
}
