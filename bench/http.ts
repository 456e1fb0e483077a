import { type IncomingHttpHeaders, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Response {
  status: number
  headers: IncomingHttpHeaders
  /** Names and values in turn, as received. */
  rawHeaders: string[]
  body: Buffer
}

/** Sends a GET request with exactly these headers on a kept-alive connection. Does not decode the body. */
export function get (url: string, headers: Record<string, string> = {}) {
  return new Promise<Response>((resolve, reject) => {
    request(url, { headers }, response => {
      const { statusCode, headers, rawHeaders } = response
      buffer(response).then(body => resolve({ status: statusCode!, headers, rawHeaders, body }), reject)
    }).on('error', reject).end()
  })
}
