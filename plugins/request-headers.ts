import type { IncomingMessage } from 'node:http'

import fp from 'fastify-plugin'

/**
 * Headers that a request may have once. If one is repeated, Node takes the first, but a proxy may take the last. Node
 * itself refuses a repeated Content-Length.
 */
const SINGLE = new Map([
  ['host', 'Host'], ['authorization', 'Authorization'], ['content-type', 'Content-Type'],
])

/**
 * Refuses a request that repeats one of these headers, or lacks the Host header that HTTP/1.1 requires (RFC 9112,
 * § 3.2).
 */
export default fp(async app => {
  app.addHook('onRequest', ({ raw }, reply, done) => {
    const message = problemOf(raw)
    if (message) reply.code(400).send({ message })
    else done()
  })
}, { name: 'request-headers' })

function problemOf ({ rawHeaders, httpVersion }: IncomingMessage) {
  const found = new Set<string>()
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = SINGLE.get(rawHeaders[n]!.toLowerCase())
    if (!name) continue
    if (found.has(name)) return `A request may have one ${name} header`
    found.add(name)
  }
  return httpVersion === '1.1' && !found.has('Host') ? 'The Host header is required' : undefined
}
