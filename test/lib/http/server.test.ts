import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'

import { buildApp } from '#lib/app.js'
import { createDatabase, testConfig } from '../../helper.ts'
import t from '../../suite.ts'

// Cleartext responses of the whole size, so that they do not fit into socket buffers.
const app = buildApp(testConfig({
  DATABASE_URL: await createDatabase(t),
  REQUEST_TIMEOUT: '1',
  IDLE_TIMEOUT: '2',
  MAX_HEADER_BYTES: '2048',
  MAX_BODY_BYTES: '2048',
}))
t.teardown(() => app.close())
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo

/** Sends raw bytes. Returns the first line of each response, when the service has closed the connection. */
async function statusLines (...pieces: string[]) {
  const socket = connect(port, '127.0.0.1')
  for (const piece of pieces) socket.write(piece)
  return [...(await text(socket)).matchAll(/^HTTP\/1.1 .*$/gm)].map(([line]) => line.trim())
}

const POST = 'POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'

t.test('A slow or idle client is disconnected', async t => {
  const big = `{"email": "${'x'.repeat(3000)}"}`
  const cases: [what: string, bytes: string, lines: string[]][] = [
    ['a connection without a request', '', ['HTTP/1.1 408 Request Timeout']],
    ['headers that never end', 'GET /livez HTTP/1.1\r\nHost: a\r\n', ['HTTP/1.1 408 Request Timeout']],
    ['a body that never ends', `${POST}Content-Length: 100\r\n\r\n{`, ['HTTP/1.1 408 Request Timeout']],
    ['a connection that stays idle', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n', ['HTTP/1.1 200 OK']],
    ['too long a URL', `GET /blogs/${'x'.repeat(3000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      ['HTTP/1.1 431 Request Header Fields Too Large']],
    ['too big a body', `${POST}Content-Length: ${big.length}\r\n\r\n${big}`, ['HTTP/1.1 413 Payload Too Large']],
  ]
  await Promise.all(cases.map(async ([what, bytes, lines]) => t.strictSame(await statusLines(bytes), lines, what)))
})

t.test('A client that keeps sending does not keep its connection', async t => {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n')
  const [accepted] = await once(app.server, 'connection')
  const timer = setInterval(() => socket.write('X-More: slow\r\n'), 200)
  const [bytes] = await once(socket, 'data')
  t.match(String(bytes), /^HTTP\/1.1 408 Request Timeout\r\n/)
  await once(accepted, 'close')
  clearInterval(timer)
  socket.destroy()
})

t.test('A client that never reads is disconnected', async t => {
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, repeat('long ', 30000) FROM generate_series(1, 100)
  `
  const cases: [what: string, path: string, requests: number][] = [
    ['one in several chunks', '/testimonials?limit=100', 1],
    ['many small ones, pipelined', '/testimonials?limit=1', 100],
  ]
  for (const [what, path, requests] of cases) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests))
    const [accepted] = await once(app.server, 'connection')
    await once(accepted, 'close')
    t.ok(accepted.bytesWritten > 150_000, `${what}: part of the response was sent`)
    t.ok(accepted.bytesWritten < 14_000_000, `${what}: but not all`)
    socket.destroy()
  }
})

t.test('A client that reads a few bytes now and then is disconnected; one that reads slowly is not', async t => {
  const socket = connect(port, '127.0.0.1').on('error', () => {}).pause()
  socket.write('GET /testimonials?limit=100 HTTP/1.1\r\nHost: a\r\n\r\n')
  const [accepted] = await once(app.server, 'connection')
  const drip = setInterval(() => socket.read(100), 100)
  await once(accepted, 'close')
  t.ok(socket.bytesRead < 14_000_000)
  clearInterval(drip)
  socket.destroy()

  const slow = connect(port, '127.0.0.1').pause()
  slow.write('GET /testimonials?limit=50 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const reader = setInterval(() => {
    slow.resume()
    slow.once('data', () => slow.pause())
  }, 20)
  await once(slow, 'end')
  clearInterval(reader)
  t.ok(slow.bytesRead > 7_500_000, `${slow.bytesRead} bytes`)
})
