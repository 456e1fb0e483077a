import { type IncomingHttpHeaders, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

interface Answer {
  status?: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Gets an answer with no other request headers than these (fetch adds some), and leaves the body as it comes. */
export function get (url: string, headers: Record<string, string> = {}) {
  return new Promise<Answer>((resolve, reject) => {
    request(url, { headers }, response => {
      buffer(response)
        .then(body => resolve({ status: response.statusCode, headers: response.headers, body }))
        .catch(reject)
    }).on('error', reject).end()
  })
}
