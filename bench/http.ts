import { type IncomingHttpHeaders, request } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface Response {
  status: number
  headers: IncomingHttpHeaders
  /** Names and values in turn, as they were sent. */
  rawHeaders: string[]
  body: Buffer
}

/** Sends a GET request with these headers only (fetch adds some), over a connection that is kept; decodes nothing. */
export function get (url: string, headers: Record<string, string> = {}) {
  return new Promise<Response>((resolve, reject) => {
    request(url, { headers }, response => {
      const { statusCode, headers, rawHeaders } = response
      buffer(response).then(body => resolve({ status: statusCode!, headers, rawHeaders, body }), reject)
    }).on('error', reject).end()
  })
}
