import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'

import { ENCODED } from '#lib/values/schemas.js'
import {
  bearer, bearerOfJson, buildWithRoutes, createDatabase, inject, MAIL, make, nameOf, person,
} from '../helper.ts'
import t from '../suite.ts'

const MAX_BODY_BYTES = 32 * 1024 * 1024

const DATABASE_URL = await createDatabase()
const { app } = await make(t, { DATABASE_URL, MAX_BODY_BYTES: String(MAX_BODY_BYTES) })
/** The latest request for a response that does not end. */
let streaming: FastifyRequest | undefined
app.register(async app => {
  app.route({
    method: ['POST', 'PUT', 'DELETE'],
    url: '/body',
    schema: { checkedByHandler: { body: Type.Object({}) } },
    bodyLimit: MAX_BODY_BYTES,
    handler: async ({ body }) => ({ none: body === undefined, body, keys: Object.keys(body ?? {}) }),
  })
  app.get('/stream', async (request, reply) => {
    streaming = request
    const stream = new PassThrough()
    stream.write('x')
    return reply.send(stream)
  })
  app.post<{ Body: string }>('/length', {
    schema: { checkedByHandler: { body: Type.Object({}) } }, bodyLimit: MAX_BODY_BYTES,
  }, async ({ body: { length } }) => ({ length }))
})
await app.ready()

async function portOf (app: FastifyInstance) {
  if (!app.server.listening) await app.listen()
  return (app.server.address() as AddressInfo).port
}

const METHODS = ['POST', 'PUT', 'DELETE'] as const
const TYPES = ['application/json', 'application/json; charset=utf-8', 'Application/JSON']
const OTHER_TYPES = [
  'application/x-www-form-urlencoded', 'text/plain;charset=UTF-8', 'multipart/form-data', 'nonsense', '*',
]

async function send (method: typeof METHODS[number], type: string | undefined, payload?: string) {
  const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
  const response = await app.inject({ method, url: '/body', headers, payload })
  return [response.statusCode, response.json()]
}

for (const method of METHODS) {
  t.test(`${method}: an empty body counts as none`, async t => {
    for (const type of [undefined, ...TYPES, ...OTHER_TYPES]) {
      t.strictSame(await send(method, type), [200, { none: true, keys: [] }], type ?? 'no media type')
      t.strictSame(await send(method, type, ''), [200, { none: true, keys: [] }], type ?? 'no media type')
    }
    for (const header of [{ 'content-length': '0' }, { 'transfer-encoding': 'chunked' }]) {
      for (const type of ['application/json', 'text/plain']) {
        const response = await app.inject({ method, url: '/body', headers: { 'content-type': type, ...header } })
        t.strictSame([response.statusCode, response.json()], [200, { none: true, keys: [] }], JSON.stringify(header))
      }
    }
  })

  t.test(`${method}: a body of another type is a 415`, async t => {
    for (const type of OTHER_TYPES) {
      t.strictSame(await send(method, type, 'a=1'), [415, { message: 'Unsupported Media Type' }], type)
    }
    const response = await app.inject({
      method, url: '/body', headers: { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }, payload: 'a',
    })
    t.equal(response.statusCode, 415)
  })

  t.test(`${method}: an encoded body is a 415 that names what is accepted`, async t => {
    const send = (coding: string, more = {}, payload?: Buffer | string) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': coding, ...more }
      return app.inject({ method, url: '/body', headers, payload })
    }
    const cases: [coding: string, headers: object, payload: Buffer | string][] = [
      ['gzip', {}, gzipSync('{}')], ['br', {}, '{}'], ['Identity, gzip', {}, '{}'],
      ['gzip', { 'transfer-encoding': 'chunked' }, ''], ['deflate', { 'content-type': 'text/plain' }, 'a'],
    ]
    for (const [coding, headers, payload] of cases) {
      const response = await send(coding, headers, payload)
      t.strictSame([response.statusCode, response.json()], [415, { message: ENCODED }], coding)
      t.equal(response.headers['accept-encoding'], 'identity')
    }
    for (const coding of ['identity', 'IDENTITY', '']) t.equal((await send(coding, {}, '{}')).statusCode, 200, coding)
    t.equal((await send('gzip')).statusCode, 200, 'without a body')
  })

  t.test(`${method}: other bodies are parsed`, async t => {
    for (const body of [{}, { a: [1, 'é', null] }, [], 'text', '', 7, null, false]) {
      for (const type of TYPES) {
        t.strictSame(await send(method, type, JSON.stringify(body)),
          [200, { none: false, body, keys: Object.keys(body ?? {}) }])
      }
    }
  })
}

t.test('A body that is not UTF-8 is a 400, and a byte order mark is no part of it', async t => {
  const send = async (payload: Buffer) => {
    const headers = { 'content-type': 'application/json' }
    const { statusCode, json } = await app.inject({ method: 'POST', url: '/body', headers, payload })
    return [statusCode, json().message ?? json().body]
  }
  const text = '{"password":"pässwörter"}'
  for (const encoding of ['latin1', 'utf16le'] as const) {
    t.equal((await send(Buffer.from(text, encoding)))[0], 400, encoding)
  }
  t.strictSame(await send(Buffer.from(text, 'latin1')), [400, 'JSON must be UTF-8'])
  t.strictSame(await send(Buffer.from('"\xed\xa0\x80"', 'latin1')), [400, 'JSON must be UTF-8'], 'a surrogate')
  t.strictSame(await send(Buffer.from(`\ufeff${text}`)), [200, JSON.parse(text)])
})

t.test('On an unknown path a body of any type is a 404', async t => {
  const headers = { 'content-type': 'text/plain' }
  t.equal((await app.inject({ method: 'POST', url: '/unknown', headers, payload: 'a=1' })).statusCode, 404)
})

t.test('An operation that takes no body ignores the one that comes, of any type', async t => {
  const { app, routes } = await buildWithRoutes(t, { ...MAIL, DATABASE_URL })
  const bodies: [type: string | undefined, payload: string][] = [
    ...OTHER_TYPES.map(type => [type, 'a=1'] as [string, string]),
    [undefined, 'a=1'], ['text/plain', 'x'.repeat(16_384)],
    ...['{}', '{"id": "x"}', '[]', 'null', '"x"', '{', '['.repeat(10_000), '{"__proto__": null}', '\u0000', '\ufeff{}']
      .map(payload => ['application/json', payload] as [string, string]),
  ]
  const operations = routes.filter(({ method, schema }) =>
    method !== 'GET' && !schema?.hide && !schema?.body && !schema?.checkedByHandler?.body)
  for (const { method, url } of operations as { method: 'POST', url: string }[]) {
    t.test(nameOf({ method, url }), async t => {
      // Each request comes from a person of its own: some operations differ when repeated.
      const send = async (headers: Record<string, string> = {}, payload?: string) => {
        const { token } = await person(app, 'ADMIN')
        const response = await app.inject({ method, url, payload, headers: { ...bearer(token), ...headers } })
        return [response.statusCode, response.json().message]
      }
      const without = await send()
      for (const [type, payload] of bodies) {
        const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
        t.strictSame(await send(headers, payload), without, `${type}: ${payload.slice(0, 20)}`)
      }
      const chunks = { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }
      t.strictSame(await send(chunks, 'a=1'), without, 'in chunks')
      t.strictSame(await send({ 'content-type': 'text/plain' }, 'x'.repeat(16_385)),
        [413, 'Request body is too large'])
    })
  }
})

t.test('On a route with a schema, no body is an empty object', async t => {
  for (const headers of [{}, { 'content-type': 'text/plain' }]) {
    const register = await app.inject({ method: 'POST', url: '/auth/register', headers })
    t.strictSame([register.statusCode, register.json().errors.map(({ path }: { path: string }) => path).toSorted()],
      [400, ['email', 'firstName', 'lastName', 'password']])
    const { id } = await person(app, 'ADMIN')
    const admin = { ...bearer(app.issueToken({ id, role: 'ADMIN' })), ...headers }
    const update = await app.inject({ method: 'PUT', url: `/users/${id}`, headers: admin })
    t.equal(update.statusCode, 200)
  }
})

t.test('Keys that would reach a prototype are removed', async t => {
  t.strictSame(await send('POST', 'application/json', '{"a": 1, "__proto__": {"b": 2}}'),
    [200, { none: false, body: { a: 1 }, keys: ['a'] }])
  t.strictSame(await send('POST', 'application/json', '{"a": 1, "constructor": {"prototype": {"b": 2}}}'),
    [200, { none: false, body: { a: 1 }, keys: ['a'] }])
})

t.test('A body that is nested too deeply is a 400', async t => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  t.equal((await send('POST', 'application/json', nested(32)))[0], 200)
  t.strictSame(await send('POST', 'application/json', nested(33)), [400, { message: 'JSON may be 32 levels deep' }])
  t.equal((await send('POST', 'application/json', nested(300_000)))[0], 400)
})

t.test('A body of too many values is a 400', async t => {
  const values = (count: number) => send('POST', 'application/json', JSON.stringify(Array(count).fill(0)))
  t.equal((await values(1000))[0], 200)
  t.strictSame(await values(1002), [400, { message: 'JSON may have 1000 values' }])
})

t.test('A body of MAX_BODY_BYTES is read, with any content', async t => {
  const send = async (payload: string) => {
    const headers = { 'content-type': 'application/json' }
    const { statusCode, body } = await app.inject({ method: 'POST', url: '/length', headers, payload })
    return [statusCode, JSON.parse(body)]
  }
  const length = MAX_BODY_BYTES - 2
  t.strictSame(await send(`"${'x'.repeat(length)}"`), [200, { length }])
  t.strictSame(await send(`"${'\\"'.repeat(length / 2)}"`), [200, { length: length / 2 }])
  t.strictSame(await send('['.repeat(length)), [400, { message: 'JSON may be 32 levels deep' }])
  t.equal((await send('x'.repeat(MAX_BODY_BYTES + 1)))[0], 413)
})

t.test('The maximum length of a body depends on its operation', async t => {
  // Does not use `build`, which requires declared responses: common errors are described once, as `4XX`.
  const { app } = await make(t, { DATABASE_URL })
  const { app: small } = await make(t, { DATABASE_URL, MAX_BODY_BYTES: '2000' })
  await Promise.all([app.ready(), small.ready()])
  const admin = await person(app, 'ADMIN')
  const { statusCode } = await inject(small, 'POST', '/blogs', { name: 'x'.repeat(2000) }, bearer(admin.token))
  t.equal(statusCode, 413, 'MAX_BODY_BYTES also limits shorter bodies')
  const cases: [limit: number, method: 'POST' | 'PUT', ...urls: string[]][] = [
    [16_384, 'POST', '/auth/register', '/auth/login', '/auth/google', '/mentors/1/like', '/me/calendar', '/nowhere'],
    [16_384, 'PUT', '/users/1', '/users/1/role', '/users/1/club'],
    [262_144, 'POST', '/clubs', '/events', '/mentors', '/testimonials'],
    [262_144, 'PUT', '/events/1', '/mentors/1', '/testimonials/1', '/club-pages/1'],
    [1_048_576, 'POST', '/blogs', '/blogs/submit'],
    [1_048_576, 'PUT', '/blogs/1'],
  ]
  for (const [limit, method, ...urls] of cases) {
    for (const url of urls) {
      const { token } = url === '/events' ? await person(app, 'CLUB_HEAD') : admin
      const send = async (length: number) => {
        const payload = JSON.stringify('x'.repeat(length - 2))
        const response = await app.inject({ method, url, headers: bearerOfJson(token), payload })
        return [response.statusCode, response.json().message]
      }
      t.not((await send(limit))[0], 413, `${limit} bytes to ${method} ${url}`)
      t.strictSame(await send(limit + 1), [413, 'Request body is too large'], `one more to ${method} ${url}`)
    }
  }
})

t.test('A body that comes during a response in parts is not kept', async t => {
  const port = await portOf(app)
  for (const [header, before, after] of [
    ['Transfer-Encoding: chunked', '2000\r\n', '\r\n'], ['Content-Length: 16384', '', ''],
  ] as const) {
    const socket = connect(port)
    t.teardown(() => socket.destroy())
    const part = before + 'x'.repeat(8192) + after
    socket.write(`GET /stream HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${part}`)
    await once(socket, 'data')
    const { joinedBody, raw } = streaming!
    const { bytesRead } = raw.socket
    socket.write(part)
    while (raw.socket.bytesRead === bytesRead || joinedBody!.readableLength > 0) await setImmediate()
  }
})

t.test('A body of more than 1,000 tiny chunks closes the connection', async t => {
  const port = await portOf(app)
  // New connections of a network that has flooded are closed.
  const send = async (localAddress: string, path: string, chunk: string, headers = '') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).setEncoding('utf8').on('error', () => {})
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
      `Transfer-Encoding: chunked\r\nConnection: close\r\n${headers}\r\n`)
    const text = JSON.stringify('x'.repeat(1100 * chunk.length)).slice(1)
    socket.write('1\r\n"\r\n')
    for (let start = 0; start < text.length; start += chunk.length) {
      const part = text.slice(start, start + chunk.length)
      socket.write(`${part.length.toString(16)}\r\n${part}\r\n`)
    }
    socket.write('0\r\n\r\n')
    let response = ''
    socket.on('data', data => { response += data })
    await new Promise(resolve => socket.once('close', resolve))
    return response.slice(0, 12)
  }
  t.equal(await send('127.0.0.2', '/length', 'x'.repeat(20)), 'HTTP/1.1 200')
  t.equal(await send('127.0.0.2', '/length', 'x'), '')
  t.equal(await send('127.0.0.3', '/unknown', 'x'), '', 'a body that nobody reads')
  const { args } = t.capture(app.connections, 'closeFlood', app.connections.closeFlood)
  t.equal(await send('127.0.0.4', '/length', 'x', 'X: y\r\n'.repeat(101)), 'HTTP/1.1 431')
  t.ok(args().length > 0, 'a request with too many headers')
})
