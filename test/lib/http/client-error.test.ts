import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import type { InjectOptions } from 'fastify'

import { sendClientError } from '#lib/http/client-error.js'
import { inject, make, person } from '../../helper.ts'
import t from '../../suite.ts'

const { app } = await make(t)
/** The body of the next response of GET /stream. */
let stream: PassThrough
app.register(async app => {
  app.get('/stream', (_request, reply) => reply.send(stream))
})
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo

const NONSENSE = 'NONSENSE\r\n\r\n'

/** Sends raw bytes. Returns the first response, when the service has closed the connection. */
async function send (bytes: string) {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes, 'latin1')
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  const [statusLine, ...headers] = head.split('\r\n')
  return {
    statusLine,
    headers: Object.fromEntries(headers.map(line => line.toLowerCase().split(': '))),
    body,
  }
}

t.test('Malformed HTTP gets a JSON response, and the connection is closed', async t => {
  const cases: [what: string, bytes: string, status: number, text: string][] = [
    ['a broken request line', NONSENSE, 400, 'Bad Request'],
    ['two lengths', 'POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400,
      'Bad Request'],
    ['too many headers', `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431,
      'Request Header Fields Too Large'],
  ]
  for (const [what, bytes, status, text] of cases) {
    const response = await send(bytes)
    t.equal(response.statusLine, `HTTP/1.1 ${status} ${text}`, what)
    t.strictSame(JSON.parse(response.body), { message: text }, what)
    t.strictSame(response.headers, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(response.body.length),
      connection: 'close',
    }, what)
  }
})

t.test('A path that cannot be decoded is an unknown path', async t => {
  for (const path of ['/%zz', '/%c3%28', '/%zz?token=hunter2']) {
    const response = await inject(app, 'GET', path)
    t.equal(response.statusCode, 404, path)
    t.match(response.headers['content-type'], /^application\/json/)
    t.strictSame(Object.keys(response.json()), ['message'])
    t.type(response.json().message, 'string')

    const raw = await send(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    t.equal(raw.statusLine, 'HTTP/1.1 404 Not Found', path)
    t.strictSame(JSON.parse(raw.body), response.json())
  }
})

t.test('Parts of a request that cannot be decoded take no longer than others', async t => {
  const requests: Record<string, (part: string) => InjectOptions> = {
    path: part => ({ url: `/${part}`.repeat(4000) }),
    cookies: part => ({
      url: '/auth/me', headers: { cookie: Array.from({ length: 2000 }, (_, n) => `c${n}=${part}`).join('; ') },
    }),
    list: part => ({
      url: `/live?${new URLSearchParams({ list: `/events?sort=up${`&${part}=${part}`.repeat(2000)}` })}`,
    }),
  }
  for (const [what, request] of Object.entries(requests)) {
    /** The shortest processor time, because other work of this process takes some as well. */
    const measure = async (part: string) => {
      const times: number[] = []
      for (let n = 0; n < 5; n++) {
        const start = process.cpuUsage()
        await app.inject(request(part))
        const { user, system } = process.cpuUsage(start)
        times.push((user + system) / 1000)
      }
      return Math.min(...times)
    }
    const [usual, longer] = [await measure('%41'), await measure('%FF')]
    t.ok(longer < 1.5 * usual + 3, `${what}: ${longer} ms instead of ${usual} ms`)
  }
})

t.test('An id that cannot be decoded is an unknown id, after 401 and 403', async t => {
  const [admin, student] = [await person(app, 'ADMIN'), await person(app)]
  for (const id of ['%', '%FF', '%c3%28', 'a%zz', '%E2%82']) {
    t.equal((await inject(app, 'GET', `/blogs/${id}`)).statusCode, 404, id)
    t.equal((await inject(app, 'GET', `/blogs/${id}?x=%FF`)).statusCode, 404, id)
    t.equal((await inject(app, 'GET', `/events/${id}/registrations`)).statusCode, 401, id)
    t.equal((await student.inject('GET', `/events/${id}/registrations`)).statusCode, 403, id)
    t.equal((await admin.inject('GET', `/events/${id}/registrations`)).statusCode, 404, id)
    t.equal((await admin.inject('DELETE', `/users/${id}`)).json().message,
      (await admin.inject('DELETE', '/users/unknown')).json().message, id)
  }
})

t.test('An Expect other than 100-continue is ignored', async t => {
  const response = await send('GET /livez HTTP/1.1\r\nHost: a\r\nExpect: a wonder\r\nConnection: close\r\n\r\n')
  t.equal(response.statusLine, 'HTTP/1.1 200 OK')
  t.strictSame(JSON.parse(response.body), { message: 'Alive' })
})

t.test('Garbage after a request does not get into its response', async t => {
  for (const [what, beginning] of [['under way', 'the beginning'], ['not begun', '']] as const) {
    stream = new PassThrough()
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    const received = text(socket)
    socket.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(stream, 'resume')
    if (beginning) {
      stream.write(beginning)
      await once(socket, 'data')
    }
    socket.write(NONSENSE)
    await once(app.server, 'clientError')
    stream.end('the end')
    const [head, body = ''] = (await received).split('\r\n\r\n')
    t.match(head, beginning ? /^HTTP\/1\.1 200 OK\r\n/ : /^$/, what)
    t.notMatch(body, /HTTP/, what)
    t.match(body, beginning, what)
  }
})

t.test('Garbage in a second request does not replace the response to the first', async t => {
  const get = 'GET /testimonials HTTP/1.1\r\nHost: a\r\n\r\n'
  const chunked = 'POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
    'Transfer-Encoding: chunked\r\n\r\nNONSENSE\r\n'
  t.notMatch((await send(get + chunked)).statusLine, '400')
  t.equal((await send(chunked)).statusLine, 'HTTP/1.1 400 Bad Request', 'alone it gets a response')
})

t.test('A request that has its response gets no second response when the rest of it is garbage', async t => {
  for (const [route, status] of [['POST /blogs/submit', '401'], ['GET /testimonials', '200']] as const) {
    const socket = connect(port, '127.0.0.1')
    const received = text(socket)
    socket.write(`${route} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n')
    await once(socket, 'readable')
    socket.write('NONSENSE\r\n')
    const [first, ...others] = (await received).split('HTTP/1.1 ').slice(1)
    t.match(first, status)
    t.strictSame(others, [], route)
  }
})

t.test('Garbage after a response gets a 400', async t => {
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(socket, 'data')
  socket.write(NONSENSE)
  t.match(await text(socket), /^HTTP\/1\.1 400 Bad Request\r\n/)
})

t.test('A client that resets the connection does not get a response, and the service continues', async t => {
  const accepted = once(app.server, 'connection')
  const client = connect(port, '127.0.0.1')
  const [socket] = await accepted as [Socket]
  client.resetAndDestroy()
  await new Promise(resolve => socket.once('close', resolve))
  t.equal(socket.bytesWritten, 0)
  t.equal((await inject(app, 'GET', '/livez')).statusCode, 200)
})

t.test('An idle connection does not keep its last request', async t => {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write('POST /unknown HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n')
  await once(socket, 'data')
  const [, connection] = [...app.connections].find(([{ remotePort }]) => remotePort === socket.localPort)!
  t.ok(connection.last, 'the body has not arrived')
  for (const bytes of ['12345', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n']) {
    socket.write(bytes)
    while (connection.last) await sleep(5)
  }
})

t.test('An error without a code is a 400', async t => {
  const socket = new PassThrough()
  sendClientError({}, socket as unknown as Socket)
  t.match(await text(socket), /^HTTP\/1\.1 400 Bad Request\r\n[^]*\r\n\r\n{"message":"Bad Request"}$/)
})

t.test('A malformed HEAD gets a response without a body', async t => {
  const response = await send('HEAD /livez?\xe9 HTTP/1.1\r\nHost: a\r\n\r\n')
  t.equal(response.statusLine, 'HTTP/1.1 400 Bad Request')
  t.equal(response.headers['content-length'], '{"message":"Bad Request"}'.length.toString())
  t.equal(response.body, '')
})

t.test('HEAD to an unknown path gets a 404 before its body has arrived', async t => {
  const response = await send('HEAD /unknown HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\n')
  t.match(response.statusLine, ' 404 ')
  t.equal(response.body, '')
})

t.test('A request may have 100 headers, and one that names a host, a token or a type', async t => {
  const get = 'GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
  const cases: [headers: string, status: number, message: string][] = [
    ['X: x\r\n'.repeat(98), 200, 'Alive'],
    ['X: x\r\n'.repeat(99), 431, 'Request Header Fields Too Large'],
    ['X: x\r\n'.repeat(2000), 431, 'Request Header Fields Too Large'],
    ['HOST: a\r\n', 400, 'A request may have one Host header'],
    ['X: x\r\nHost:\r\n', 400, 'A request may have one Host header'],
    ['Authorization: Bearer a\r\nauthorization: Bearer b\r\n', 400, 'A request may have one Authorization header'],
    ['Content-Type: a/b\r\nContent-Type: a/b\r\n', 400, 'A request may have one Content-Type header'],
  ]
  for (const [headers, status, message] of cases) {
    const response = await send(`${get}${headers}\r\n`)
    t.match(response.statusLine, ` ${status} `, headers)
    t.strictSame(JSON.parse(response.body), { message }, headers)
    t.equal((await send(`${get}${headers}\r\n`.replace('GET', 'HEAD'))).body, '', `HEAD, ${headers}`)
  }
})

t.test('A request without a Host header is a 400 with {message}, for any path', async t => {
  const { token } = await person(app, 'ADMIN')
  for (const request of [
    'GET /livez', 'GET /events', 'GET /auth/me', 'GET /auth/google/callback', 'GET /docs', 'GET /openapi.json',
    'GET /nope', 'POST /auth/login', 'OPTIONS /events', `DELETE /users/${'x'.repeat(36)}`,
  ]) {
    const response = await send(`${request} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`)
    t.equal(response.statusLine, 'HTTP/1.1 400 Bad Request', request)
    t.strictSame(JSON.parse(response.body), { message: 'The Host header is required' }, request)
    t.match(response.headers, {
      'content-type': 'application/json; charset=utf-8', 'content-length': String(response.body.length),
    }, request)
  }
  // Only HTTP/1.1 requires it (RFC 9112, § 3.2), and it may be empty.
  t.equal((await send('GET /livez HTTP/1.0\r\n\r\n')).statusLine, 'HTTP/1.1 200 OK')
  const empty = 'GET /livez HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n'
  t.equal((await send(empty)).statusLine, 'HTTP/1.1 200 OK')
})
