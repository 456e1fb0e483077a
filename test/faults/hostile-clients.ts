// Clients that nobody wrote: random combinations of operations, bodies, framing, pauses, pipelining, slow reading,
// aborts and networks. As a worker thread this file runs them.
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

import fc from 'fast-check'

import { PNG } from '../fixtures.ts'

/** The operations of the contract and beyond, as `GET /events/{id}`. */
const { paths } = JSON.parse(await readFile(new URL('openapi.json', import.meta.resolve('#package.json')), 'utf8'))
const OPERATIONS = Object.entries<object>(paths).flatMap(([path, methods]) =>
  Object.keys(methods).map(method => `${method.toUpperCase()} ${path}`))

/** What costs most comes as often as everything else together. */
const HEAVY = [
  'POST /auth/login', 'POST /auth/register', 'POST /blogs/submit', 'POST /me/pictures', 'GET /me/export',
  'GET /blogs/me',
  'GET /events?limit=9999', 'GET /events?limit={n}', 'GET /blogs/{id}', 'GET /clubs', 'GET /feeds/events.ics',
  'GET /live?list=/events&list=/clubs', 'GET /live?list=/events%3Flimit={n}', 'GET /auth/me', 'GET /openapi.json',
  'GET /docs/json', 'GET /docs/yaml', 'GET /docs/static/swagger-ui-bundle.js', 'GET /livez', 'OPTIONS /events',
]

/** Bodies of about so many bytes, with the fields of all operations. */
const BODIES: Record<string, (bytes: number) => string | Buffer> = {
  'a long text': bytes => withFields(JSON.stringify('x'.repeat(bytes))),
  'many small values': bytes => withFields(`[${'0,'.repeat(bytes / 2)}0]`),
  'many small objects': bytes => withFields(`[${'{},'.repeat(bytes / 3)}{}]`),
  'many keys': bytes => withFields(`{${Array.from({ length: bytes / 10 }, (_, n) => `"k${n}":0,`).join('')}"z":0}`),
  'nested arrays': bytes => withFields(`${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`),
  'escapes and surrogates': bytes => withFields(`"${'\\ud800'.repeat(bytes / 6)}"`),
  'without its end': bytes => withFields(JSON.stringify('x'.repeat(bytes))).slice(0, -1),
  'a prototype': () => withFields('0,"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}'),
  'a picture': bytes => Buffer.concat([PNG, Buffer.alloc(bytes)]),
}

const withFields = (value: string) => '{"title":"T","name":"N","description":"D","email":"a@example.org",' +
  `"password":"correct horse","firstName":"A","lastName":"B","content":${value}}`

/** Further headers of requests, including headers of published attacks on Node.js and Fastify. */
const HEADERS: Record<string, string> = {
  none: '',
  'as many as are allowed': Array.from({ length: 90 }, (_, n) => `X-${n}: ${'x'.repeat(150)}\r\n`).join(''),
  'more than are allowed': 'X: y\r\n'.repeat(500),
  'many cookies': `Cookie: ${'a=b; '.repeat(2800)}\r\n`,
  'a prototype as type': 'Content-Type: constructor\r\n',
  'a tab in the type': 'Content-Type: application/json\ta\r\n',
  'a long type': `Content-Type: application/json;${' '.repeat(14_000)}x\r\n`,
  'many ranges': `Range: bytes=${'0-0,'.repeat(3000)}0-0\r\n`,
  'many entity tags': `If-None-Match: ${'"a",'.repeat(3000)}"b"\r\n`,
  'many encodings': `Accept-Encoding: ${'br;q=0.1,'.repeat(1500)}gzip\r\nAccept: ${'a/b,'.repeat(500)}\r\n`,
  'a pattern as host': `X-Forwarded-Host: ${"$'".repeat(7000)}\r\n`,
  'many forwarders': `X-Forwarded-For: ${'1.2.3.4,'.repeat(1700)}\r\n`,
  'an expectation': 'Expect: 100-continue\r\n',
  'an upgrade': 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
}

const TOKENS = ['none', 'student', 'author', 'forged'] as const

/** A kind of hostile clients, which all do the same. */
const CLIENTS = fc.record({
  operation: fc.oneof(fc.constantFrom(...OPERATIONS), fc.constantFrom(...HEAVY)),
  token: fc.constantFrom(...TOKENS),
  headers: fc.oneof(fc.constant('none'), fc.constantFrom(...Object.keys(HEADERS))),
  body: fc.constantFrom(...Object.keys(BODIES)),
  bytes: fc.constantFrom(0, 100, 10_000, 100_000, 1_000_000),
  /** Bytes of an HTTP chunk; 0 for a body with Content-Length. */
  chunk: fc.constantFrom(0, 0, 1, 100, 10_000),
  /** Characters after the size of a chunk. */
  extension: fc.constantFrom(0, 0, 0, 10, 10_000),
  /** Requests that are sent without waiting for a response. */
  pipelined: fc.constantFrom(1, 1, 1, 4, 16, 200),
  /** Bytes that are written at once; 0 for all. */
  piece: fc.constantFrom(0, 0, 0, 1, 1000, 60_000),
  /** Milliseconds between writes. */
  pause: fc.constantFrom(1, 5, 20, 500),
  reads: fc.constantFrom('all', 'slowly', 'nothing'),
  /** Milliseconds until a connection closes; 0 for never. */
  leaves: fc.constantFrom(0, 0, 1, 50, 500),
  connections: fc.constantFrom(1, 8, 50, 134, 400),
  networks: fc.constantFrom(1, 1, 2, 26, 400),
})
export type Clients = typeof CLIENTS extends fc.Arbitrary<infer Value> ? Value : never

/** What hostile clients do at the same time. The same seed is the same recipe. */
export const recipeOf = (seed: number) =>
  fc.sample(fc.array(CLIENTS, { minLength: 1, maxLength: 3 }), { seed, numRuns: 1 })[0]!

/** The service, the id of a row and the tokens. */
export interface Target {
  port: number
  id: string
  tokens: Record<typeof TOKENS[number], string>
}

/** Bytes that a connection has under way at most. */
const MAX_UNDER_WAY = 2_000_000

/** Runs the clients until it is terminated. It posts a message when they have begun. */
export const startHostile = (recipe: Clients[], target: Target) =>
  new Worker(new URL(import.meta.url), { workerData: { recipe, target } })

if (!isMainThread) {
  const { recipe, target } = workerData as { recipe: Clients[], target: Target }
  for (const clients of recipe) {
    const message = messageOf(clients, target)
    for (let n = 0; n < clients.connections; n++) stayConnected(clients, message, target.port, n)
  }
  await sleep(200)
  parentPort!.postMessage('begun')
}

/** The bytes that a connection sends again and again: as many requests as are pipelined, unless they are large. */
function messageOf (clients: Clients, target: Target) {
  const first = requestOf(clients, target, 0)
  const others = Math.min(clients.pipelined - 1, Math.floor(MAX_UNDER_WAY / first.length))
  return Buffer.concat([first, ...Array.from({ length: others }, (_, n) => requestOf(clients, target, n + 1))])
}

function requestOf (
  { operation, token, headers, body, bytes, chunk, extension }: Clients, { id, tokens }: Target, n: number
) {
  const [method, path] = operation.split(' ') as [string, string]
  const payload = /^(GET|OPTIONS)/.test(method) ? undefined : Buffer.from(BODIES[body]!(bytes))
  const head = [`${method} ${path.replace('{n}', String(1000 + n)).replace(/\{\w+\}/g, id)} HTTP/1.1`, 'Host: a']
  if (tokens[token]) head.push(`Authorization: Bearer ${tokens[token]}`)
  if (payload && !HEADERS[headers]!.includes('Content-Type')) {
    head.push(`Content-Type: ${body === 'a picture' ? 'image/png' : 'application/json'}`)
  }
  if (payload) head.push(chunk ? 'Transfer-Encoding: chunked' : `Content-Length: ${payload.length}`)
  const end = Buffer.from(`${head.join('\r\n')}\r\n${HEADERS[headers]}\r\n`)
  return Buffer.concat([end, ...payload && chunk ? chunksOf(payload, chunk, extension) : [payload ?? '']].map(part =>
    Buffer.from(part)))
}

/** The body in at most 100,000 chunks, which this process can hold. */
function chunksOf (payload: Buffer, size: number, extension: number) {
  const each = Math.ceil(Math.max(size, payload.length * (1 + extension) / 3_000_000, payload.length / 100_000))
  const chunks: (Buffer | string)[] = []
  for (let start = 0; start < payload.length; start += each) {
    const chunk = payload.subarray(start, start + each)
    chunks.push(`${chunk.length.toString(16)}${extension ? `;${'x'.repeat(extension)}` : ''}\r\n`, chunk, '\r\n')
  }
  return [...chunks, '0\r\n\r\n']
}

/** Sends the message again and again, on a new connection after the last one has closed. */
async function stayConnected (
  { networks, piece, pause, reads, leaves }: Clients, message: Buffer, port: number, n: number
) {
  const size = piece || message.length
  const network = n % networks
  for (;;) {
    const socket = new Socket().on('error', () => {})
    // `once` of node:events would reject when the service resets the connection.
    const closed = new Promise(resolve => socket.on('close', resolve))
    socket.connect({ port, host: '127.0.0.1', localAddress: `127.2.${network >> 8}.${network & 255}` })
    if (reads === 'all') socket.resume()
    if (reads === 'slowly') {
      const timer = setInterval(() => socket.read(1000), 50)
      socket.on('close', () => clearInterval(timer))
    }
    if (leaves > 0) socket.on('connect', () => setTimeout(() => socket.destroy(), leaves))
    while (!socket.destroyed) {
      for (let start = 0; start < message.length && !socket.destroyed; start += size) {
        const written = new Promise(resolve => socket.write(message.subarray(start, start + size), resolve))
        await Promise.race([written, closed])
        await sleep(pause)
      }
      await sleep(1)
    }
    await closed
    await sleep(50)
  }
}
