import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A request that is sent as it stands. */
export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  token?: string
  body?: unknown
}

/** What came of a request. */
export interface Outcome {
  /** 0 when there was no whole answer. */
  status: number
  /** The JSON of the answer. */
  body: any
  headers: NodeJS.Dict<string | string[]>
  /** Why there was no answer, such as ECONNREFUSED. */
  error?: string
  /** Whether the connection had been used for another request before. */
  reused: boolean
  /** When it was sent, and how long it took, in milliseconds. */
  start: number
  took: number
}

/** Connections that are kept, which is how clients and proxies have them; `end` closes them. */
export function openClient (url: string, connections: number, patience: number, localAddress?: string) {
  const agent = new Agent({
    keepAlive: true, maxSockets: connections, maxFreeSockets: connections, ...localAddress && { localAddress },
  })
  return { send: (request: Request) => send(url, request, agent, patience), end: () => agent.destroy() }
}

/** Sends a request and gives up after so many milliseconds without the whole answer: then the error is HUNG. */
export async function send (
  url: string, { method, path, token, body }: Request, agent?: Agent, patience = 60_000
): Promise<Outcome> {
  const start = performance.now()
  const payload = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    ...token && { authorization: `Bearer ${token}` },
    ...payload && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) },
  }
  const outgoing = request(url + path, { method, agent, headers })
  const timer = setTimeout(() => outgoing.destroy(Object.assign(new Error('no answer'), { code: 'HUNG' })), patience)
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
    const answered = await new Promise<Outcome>((resolve, reject) => {
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
    return answered
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return done({ error: code ?? message })
  } finally {
    clearTimeout(timer)
  }
}
