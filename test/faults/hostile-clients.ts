// Clients that nobody wrote: random combinations of operations, query strings, bodies, framing, pauses, pipelining,
// slow reading, aborts and networks. As a worker thread this file runs them.
import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

import fc from 'fast-check'

import { PNG } from '../fixtures.ts'
import { PASSWORD } from './fixture.ts'

const { paths, components } =
  JSON.parse(await readFile(new URL('openapi.json', import.meta.resolve('#package.json')), 'utf8'))

/** The operations of the contract and beyond, as `GET /events/{id}`, each with examples of its fields. */
const OPERATIONS: Record<string, object> = Object.fromEntries(Object.entries<any>(paths).flatMap(([path, methods]) =>
  Object.entries<any>(methods).map(([method, { requestBody }]) => {
    const schema = requestBody?.content['application/json']?.schema.$ref.split('/').pop()
    const fields = Object.entries<any>(components.schemas[schema]?.properties ?? {})
    const examples = fields.map(([name, field]) => [name, field.examples?.[0] ?? field.enum?.[0]])
    return [`${method.toUpperCase()} ${path}`, Object.fromEntries(examples)]
  })))

/** What costs most comes as often as everything else together. */
const HEAVY = [
  'POST /auth/login', 'POST /auth/register', 'POST /blogs/submit', 'POST /me/pictures', 'GET /me/export',
  'GET /blogs/me',
  'GET /events?limit=9999', 'GET /events?limit={n}', 'GET /blogs/{id}', 'GET /clubs', 'GET /feeds/events.ics',
  'GET /live?list=/events&list=/clubs', 'GET /live?list=/events%3Flimit={n}', 'GET /auth/me', 'GET /openapi.json',
  'GET /docs/json', 'GET /docs/yaml', 'GET /docs/static/swagger-ui-bundle.js', 'GET /livez', 'OPTIONS /events',
  'POST /agenda/{id}/copies', 'PUT /me/seats/{eventId}', 'GET /agenda/{id}/seats', 'GET /exports/users.csv',
  'GET /exports/events/{id}/registrations.csv', 'GET /pictures/{id}',
]

/** The kinds of ids in paths that name them differently. */
const KINDS: Record<string, string> = { agenda: 'events', 'club-pages': 'clubs', account: 'users' }

const DATES = Array.from({ length: 52 }, (_, n) => new Date(Date.UTC(2031, 0, 1 + n)).toISOString())

/** Values of about so many bytes in JSON. */
const VALUES: Record<string, (bytes: number) => string> = {
  'a long text': bytes => JSON.stringify('x'.repeat(bytes)),
  'many small values': bytes => `[${'0,'.repeat(bytes / 2)}0]`,
  'many small objects': bytes => `[${'{},'.repeat(bytes / 3)}{}]`,
  'many keys': bytes => `{${Array.from({ length: bytes / 10 }, (_, n) => `"k${n}":0,`).join('')}"z":0}`,
  'nested arrays': bytes => `${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}`,
  'escapes and surrogates': bytes => `"${'\\ud800'.repeat(bytes / 6)}"`,
  'a text without its end': bytes => `"${'x'.repeat(bytes)}`,
  'a prototype': () => '0,"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}',
}
const PICTURE = 'a picture'

/** Query strings. */
const QUERIES: Record<string, string> = {
  none: '',
  'a long value': `list=${'x'.repeat(14_000)}`,
  'a long number': `limit=${'9'.repeat(14_000)}`,
  'many parameters': Array.from({ length: 1500 }, (_, n) => `k${n}=&`).join(''),
  'many values': 'page=1&limit=2&'.repeat(900),
  'many lists': 'list=/events&'.repeat(1000),
  'escapes that cannot be decoded': `cursor=${'%FF'.repeat(4500)}`,
  'escaped escapes': `list=/events%3Fpage=1${'%2526'.repeat(2500)}`,
  'a prototype': '__proto__[a]=1&constructor=1&__proto__=1',
}

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
  'a key of a retry': 'Idempotency-Key: 5f0f5e0b-4a9e-4f0e-9c55-8a1c9f0a6a2c\r\n',
  'an expectation': 'Expect: 100-continue\r\n',
  'an upgrade': 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n',
}

const TOKENS = ['none', 'student', 'author', 'head', 'admin', 'forged'] as const

/** A kind of hostile clients, which all do the same. */
const CLIENTS = fc.record({
  operation: fc.oneof(fc.constantFrom(...Object.keys(OPERATIONS)), fc.constantFrom(...HEAVY)),
  token: fc.constantFrom(...TOKENS),
  query: fc.oneof(fc.constant('none'), fc.constant('none'), fc.constantFrom(...Object.keys(QUERIES))),
  headers: fc.oneof(fc.constant('none'), fc.constantFrom(...Object.keys(HEADERS))),
  body: fc.constantFrom(...Object.keys(VALUES), PICTURE),
  /** The place of the field that has this value, in the order of openapi.json. Other fields have examples. */
  field: fc.nat(15),
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

/** The service, what clients know of its rows, and their tokens. */
export interface Target {
  port: number
  /** Ids by their kind, a calendar token and the email address of the student. */
  known: Record<string, string>
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

function requestOf (clients: Clients, { known, tokens }: Target, n: number) {
  const { operation, token, query, headers, body, chunk, extension } = clients
  const [method, path] = operation.split(' ') as [string, string]
  const payload = /^(GET|OPTIONS)/.test(method) ? undefined : bodyOf(clients, known, n)
  const url = path.replace('{n}', String(1000 + n)).replace(/([\w-]+)\/\{(\w+)\}/g, (_, part, name) =>
    `${part}/${known[name === 'id' ? KINDS[part] ?? part : name.replace(/Id$/, 's')]}`)
  const separator = query === 'none' ? '' : url.includes('?') ? '&' : '?'
  const head = [`${method} ${url}${separator}${QUERIES[query]} HTTP/1.1`, 'Host: a']
  if (tokens[token]) head.push(`Authorization: Bearer ${tokens[token]}`)
  if (payload && !HEADERS[headers]!.includes('Content-Type')) {
    head.push(`Content-Type: ${body === PICTURE ? 'image/png' : 'application/json'}`)
  }
  if (payload) head.push(chunk ? 'Transfer-Encoding: chunked' : `Content-Length: ${payload.length}`)
  const end = Buffer.from(`${head.join('\r\n')}\r\n${HEADERS[headers]}\r\n`)
  return Buffer.concat([end, ...payload && chunk ? chunksOf(payload, chunk, extension) : [payload ?? '']].map(part =>
    Buffer.from(part)))
}

/** A picture, or the fields of an operation. Every second request to it has a different answer. */
function bodyOf ({ operation, body, bytes, field }: Clients, known: Target['known'], n: number) {
  if (body === PICTURE) return Buffer.concat([PNG, Buffer.alloc(bytes)])
  const values: Record<string, unknown> = {
    ...{ clubId: known.clubs, clubHeadEmail: known.email, coming: n % 2 === 1, dates: DATES },
    ...{ password: PASSWORD, currentPassword: PASSWORD, newPassword: PASSWORD },
    ...{ newRole: 'CLUB_HEAD', notifications: {} },
    ...operation !== 'POST /auth/register' && { email: known.email },
  }
  const fields = Object.entries(OPERATIONS[operation] ?? {}).map(([name, example]): [string, string | undefined] =>
    [name, JSON.stringify(name in values ? values[name] : example)])
  const name = fields[field]?.[0] ?? 'content'
  const all = [...fields.filter(([other, value]) => other !== name && value), [name, VALUES[body]!(bytes)]]
  return Buffer.from(`{${all.map(([name, value]) => `"${name}":${value}`).join(',')}}`)
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
