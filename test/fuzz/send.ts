import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import type { Message } from './requests.ts'

/** How long a response may take, in milliseconds; long enough for a busy machine. */
const TIMEOUT = 15_000

export interface Response {
  status: number
  headers: NodeJS.Dict<string | string[]>
  /** Decoded. */
  body: string
}

const DECODERS: Record<string, (body: Buffer) => Buffer> = { br: brotliDecompressSync, gzip: gunzipSync }

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Reads the first bytes of a stream that does not end, and closes it. */
async function firstBytes (stream: Readable): Promise<Buffer> {
  const [bytes] = await once(stream, 'data')
  stream.destroy()
  return bytes
}

/** Sends a request with exactly these headers. Throws unless there is a complete response in time. */
export async function send (port: number, message: Message): Promise<Response> {
  const { method, target, headers, payload } = message
  let reused = false
  try {
    return await new Promise<Response>((resolve, reject) => {
      const outgoing = request({
        port,
        host: '127.0.0.1',
        agent,
        method,
        path: target,
        timeout: TIMEOUT,
        headers: ['Host', 'localhost', ...headers.flat()],
      }, async response => {
        const { statusCode: status = 0, headers } = response
        const isStream = headers['content-type'] === 'text/event-stream'
        const body = await (isStream ? firstBytes(response) : buffer(response))
        const decode = body.length > 0 && DECODERS[headers['content-encoding'] ?? '']
        resolve({ status, headers, body: String(decode ? decode(body) : body) })
      })
      outgoing.on('timeout', () => outgoing.destroy(new Error('No response in time')))
      outgoing.on('error', error => {
        reused = outgoing.reusedSocket
        reject(error)
      })
      outgoing.end(payload)
    })
  } catch (error) {
    // The service has closed the connection after an earlier response.
    if (reused && (error as NodeJS.ErrnoException).code === 'ECONNRESET') return send(port, message)
    throw error
  }
}
