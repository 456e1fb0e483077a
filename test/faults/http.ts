import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request as it is sent. */
export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  token?: string
  body?: unknown
}

/** The response to a request, or the reason why it is missing. */
export interface Outcome {
  /** 0 without a complete response. */
  status: number
  /** Parsed if it is JSON. */
  body: any
  headers: NodeJS.Dict<string | string[]>
  /** The code of the error, such as ECONNREFUSED, without a complete response. */
  error?: string
  /** Whether the connection had served a request before. */
  reused: boolean
  /** The start and the duration, in milliseconds. */
  start: number
  took: number
}

/** Opens kept-alive connections, as clients and proxies use them; `end` closes them. */
export function openClient (url: string, connections: number, timeout: number, localAddress?: string) {
  const agent = new Agent({
    keepAlive: true, maxSockets: connections, maxFreeSockets: connections, ...localAddress && { localAddress },
  })
  return { send: (request: Request) => send(url, request, agent, timeout), end: () => agent.destroy() }
}

/** Sends a request. Without a complete response after so many milliseconds, the error is TIMEOUT. */
export async function send (
  url: string, { method, path, token, body }: Request, agent?: Agent, timeout = 60_000
): Promise<Outcome> {
  const start = performance.now()
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    ...token && { authorization: `Bearer ${token}` },
    ...payload && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) },
  }
  const outgoing = request(url + path, { method, agent, headers })
  const late = () => outgoing.destroy(Object.assign(new Error('no response'), { code: 'TIMEOUT' }))
  const timer = setTimeout(late, timeout)
  const done = (rest: Partial<Outcome>): Outcome => ({
    status: 0,
    body: undefined,
    headers: {},
    reused: outgoing.reusedSocket,
    start,
    took: performance.now() - start,
    ...rest,
  })
  try {
    const outcome = await new Promise<Outcome>((resolve, reject) => {
      outgoing.on('response', async response => {
        try {
          const { statusCode: status = 0, headers } = response
          const content = await text(response)
          const isJson = headers['content-type']?.startsWith('application/json')
          resolve(done({ status, headers, body: isJson ? JSON.parse(content) : content }))
        } catch (error) {
          reject(error)
        }
      })
      outgoing.on('error', reject).end(payload)
    })
    return outcome
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return done({ error: code ?? message })
  } finally {
    clearTimeout(timer)
  }
}
