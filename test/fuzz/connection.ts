import { connect, type Socket } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

/** Timeout of a response, in seconds; long enough for a busy machine. */
const TIMEOUT = 15

/** Closes the sending side when nothing has happened for so long, in milliseconds. */
const QUIET = 30

const NEWLINE = '\r\n'

export interface RawResponse {
  status: number
  /** By lower-case name; repeated values are joined with commas. */
  headers: Record<string, string>
  /** Decoded. */
  body: string
}

const DECODERS: Record<string, (body: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync }

/** A connection that sends bytes as they are: HTTP clients would refuse to send most of them. */
export class Connection {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #isClosed = false
  #notify = () => {}

  constructor (port: number) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
      .on('data', chunk => {
        this.#received = this.#received.length > 0 ? Buffer.concat([this.#received, chunk]) : chunk
        this.#notify()
      })
      // A reset counts as a close.
      .on('error', () => {})
      .on('end', () => this.#close())
      .on('close', () => this.#close())
  }

  /** Whether more bytes can be sent. */
  get isOpen () {
    return !this.#isClosed
  }

  /** Sends requests with these methods. Returns their responses, fewer if the service closes the connection. */
  async exchange (bytes: Buffer, methods: string[]): Promise<RawResponse[]> {
    this.#socket.write(bytes)
    const responses: RawResponse[] = []
    while (responses.length < methods.length) {
      const response = await this.#next(methods[responses.length]!)
      if (!response) break
      responses.push(response)
    }
    return responses
  }

  /** Sends malformed requests. Returns all responses until the service closes the connection. */
  async sendMalformed (bytes: Buffer, method: string, isTruncated: boolean): Promise<RawResponse[]> {
    this.#socket.write(bytes)
    const responses: RawResponse[] = []
    const quiet = setTimeout(() => this.#socket.end(), isTruncated ? 0 : QUIET)
    for (let response = await this.#next(method); response; response = await this.#next(method)) {
      responses.push(response)
      this.#socket.end()
    }
    clearTimeout(quiet)
    return responses
  }

  close () {
    this.#socket.destroy()
  }

  #close () {
    this.#isClosed = true
    this.#notify()
  }

  /** The next response; `undefined` if the service closes the connection. Throws after the timeout. */
  async #next (method: string): Promise<RawResponse | undefined> {
    while (true) {
      const found = parse(this.#received, method, this.#isClosed)
      if (found) {
        this.#received = found.rest
        // Skip 100 Continue.
        if (found.response.status < 200) continue
        return found.response
      }
      if (this.#isClosed) return undefined
      await this.#activity()
    }
  }

  async #activity () {
    await new Promise<void>((resolve, reject) => {
      // Counts ticks instead of comparing clocks, because the machine may have been suspended.
      let seconds = 0
      const timer = setInterval(() => {
        if (++seconds === TIMEOUT) reject(new Error(`No response within ${TIMEOUT} s`))
      }, 1000)
      this.#notify = () => {
        clearInterval(timer)
        resolve()
      }
    })
  }
}

/** Parses the first response in these bytes; `undefined` while it is incomplete. */
function parse (received: Buffer, method: string, isClosed: boolean) {
  const end = received.indexOf(NEWLINE + NEWLINE)
  if (end < 0) {
    if (isClosed && received.length > 0) throw new Error(`Truncated response: ${JSON.stringify(String(received))}`)
    return undefined
  }
  const [first = '', ...lines] = received.toString('latin1', 0, end).split(NEWLINE)
  const [, code] = /^HTTP\/1\.1 (\d{3}) /.exec(first) ?? []
  if (!code) throw new Error(`Not an HTTP response: ${JSON.stringify(first)}`)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([\w-]+): (.*)$/.exec(line) ?? []
    if (!name) throw new Error(`Not a header: ${JSON.stringify(line)}`)
    const key = name.toLowerCase()
    headers[key] = headers[key] === undefined ? value! : `${headers[key]}, ${value}`
  }
  const status = Number(code)
  const rest = received.subarray(end + 4)
  const { 'content-length': length, 'transfer-encoding': encoding, 'content-encoding': coding } = headers
  const found = (body: Buffer, rest: Buffer) => {
    const decoded = coding && body.length > 0 ? DECODERS[coding]!(body) : body
    return { response: { status, headers, body: String(decoded) }, rest }
  }
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return found(Buffer.alloc(0), rest)
  if (encoding === 'chunked') {
    const whole = dechunk(rest)
    return whole && found(whole.body, whole.rest)
  }
  if (length !== undefined) {
    if (rest.length >= Number(length)) return found(rest.subarray(0, Number(length)), rest.subarray(Number(length)))
    if (isClosed) throw new Error(`The body has ${rest.length} bytes instead of ${length}`)
    return undefined
  }
  return isClosed ? found(rest, Buffer.alloc(0)) : undefined
}

/** Joins the chunks of a body; `undefined` while the last one is missing. */
function dechunk (bytes: Buffer) {
  const chunks: Buffer[] = []
  let position = 0
  while (true) {
    const end = bytes.indexOf(NEWLINE, position)
    if (end < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', position, end), 16)
    const start = end + NEWLINE.length
    position = start + size + NEWLINE.length
    if (bytes.length < position) return undefined
    if (size === 0) return { body: Buffer.concat(chunks), rest: bytes.subarray(position) }
    chunks.push(bytes.subarray(start, start + size))
  }
}
