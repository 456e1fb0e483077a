import { connect, type Socket } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

/** How long an response may take, in seconds; far more than a machine that is busy with something else needs. */
const TIMEOUT = 15

/** After how long without a reaction a client says that no more will come, in milliseconds. */
const QUIET = 30

const NEWLINE = '\r\n'

export interface RawResponse {
  status: number
  /** By name in lower case; the values of a repeated one are joined. */
  headers: Record<string, string>
  /** Without the coding that it was sent in. */
  body: string
}

const DECODERS: Record<string, (body: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync }

/** A connection on which bytes are sent as they are: no client of HTTP would send most of them. */
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
      // A connection that is reset is a closed one.
      .on('error', () => {})
      .on('end', () => this.#close())
      .on('close', () => this.#close())
  }

  /** Whether more can be sent. */
  get isOpen () {
    return !this.#isClosed
  }

  /** Sends whole messages. Returns an response to each of these methods, or fewer if the service hangs up before. */
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

  /** Sends what is no message, or less or more than one. Returns what was answered until the service hung up. */
  async provoke (bytes: Buffer, method: string, isCut: boolean): Promise<RawResponse[]> {
    this.#socket.write(bytes)
    const responses: RawResponse[] = []
    const quiet = setTimeout(() => this.#socket.end(), isCut ? 0 : QUIET)
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

  /** The next response; `undefined` when the service hangs up instead. Throws when neither happens in time. */
  async #next (method: string): Promise<RawResponse | undefined> {
    while (true) {
      const found = parse(this.#received, method, this.#isClosed)
      if (found) {
        this.#received = found.rest
        // That the service is ready to read a body is no response yet.
        if (found.response.status < 200) continue
        return found.response
      }
      if (this.#isClosed) return undefined
      await this.#activity()
    }
  }

  async #activity () {
    await new Promise<void>((resolve, reject) => {
      // Counted, because a machine that was asleep has not been waiting.
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

/** Reads an response from the beginning of these bytes; `undefined` when there is no whole one yet. */
function parse (received: Buffer, method: string, isClosed: boolean): { response: RawResponse, rest: Buffer } | undefined {
  const end = received.indexOf(NEWLINE + NEWLINE)
  if (end < 0) {
    if (isClosed && received.length > 0) throw new Error(`The response ends early: ${JSON.stringify(String(received))}`)
    return undefined
  }
  const [first = '', ...lines] = received.toString('latin1', 0, end).split(NEWLINE)
  const [, code] = /^HTTP\/1\.1 (\d{3}) /.exec(first) ?? []
  if (!code) throw new Error(`No response of HTTP: ${JSON.stringify(first)}`)
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([\w-]+): (.*)$/.exec(line) ?? []
    if (!name) throw new Error(`No header: ${JSON.stringify(line)}`)
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
    const whole = unchunk(rest)
    return whole && found(whole.body, whole.rest)
  }
  if (length !== undefined) {
    if (rest.length >= Number(length)) return found(rest.subarray(0, Number(length)), rest.subarray(Number(length)))
    if (isClosed) throw new Error(`The body has ${rest.length} bytes instead of ${length}`)
    return undefined
  }
  return isClosed ? found(rest, Buffer.alloc(0)) : undefined
}

/** Puts the chunks of a body together; `undefined` when the last one is not there yet. */
function unchunk (bytes: Buffer) {
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
