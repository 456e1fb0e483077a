import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { Connections } from '#lib/http/connections.js'
import { createHttpServer } from '#lib/http/http-server.js'
import { build, make, testConfig } from '../../helper.ts'
import { type Network, networks } from '../../network.ts'
import t, { type Test } from '../../suite.ts'

// Cleartext responses of the whole size, so that they do not fit into socket buffers.
const { app } = await make(t, { REQUEST_TIMEOUT: '1', IDLE_TIMEOUT: '4', MAX_BODY_BYTES: '2048' })
await app.listen({ host: '0.0.0.0', port: 0 })
const { port } = app.server.address() as AddressInfo

const NETWORKS = await networks(t)
/** Adds a test for each network. */
function onNetworks (name: string, run: (t: Test, network: Network) => Promise<void>) {
  for (const network of NETWORKS) t.test(`${name}, ${network.name}`, t => run(t, network))
}

await app.sql`
  INSERT INTO testimonials (name, batch_year, content)
  SELECT 'Ada', 2020, repeat('long ', 30000) FROM generate_series(1, 100)
`

/** Sends raw bytes. Returns the first line of each response, when the service has closed the connection. */
async function statusLines (network: Network, ...pieces: string[]) {
  const socket = network.connect(port)
  for (const piece of pieces) socket.write(piece)
  return [...(await text(socket)).matchAll(/^HTTP\/1.1 .*$/gm)].map(([line]) => line.trim())
}

const POST = 'POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'

onNetworks('A slow or idle client is disconnected', async (t, network) => {
  const big = `{"email": "${'x'.repeat(3000)}"}`
  const cases: [what: string, bytes: string, lines: string[]][] = [
    ['a connection without a request', '', ['HTTP/1.1 408 Request Timeout']],
    ['more headers than are allowed', `GET /livez HTTP/1.1\r\nHost: a\r\n${'a: b\r\n'.repeat(1000)}\r\n`,
      ['HTTP/1.1 431 Request Header Fields Too Large']],
    ['headers that never end', 'GET /livez HTTP/1.1\r\nHost: a\r\n', ['HTTP/1.1 408 Request Timeout']],
    ['a body that never ends', `${POST}Content-Length: 100\r\n\r\n{`, ['HTTP/1.1 408 Request Timeout']],
    ['a connection that stays idle', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n', ['HTTP/1.1 200 OK']],
    ['too long a URL', `GET /blogs/${'x'.repeat(17_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
      ['HTTP/1.1 431 Request Header Fields Too Large']],
    ['too big a body', `${POST}Content-Length: ${big.length}\r\n\r\n${big}`, ['HTTP/1.1 413 Payload Too Large']],
  ]
  await Promise.all(cases.map(async ([what, bytes, lines]) => {
    t.strictSame(await statusLines(network, bytes), lines, what)
  }))
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

onNetworks('A client that never reads is disconnected', async (t, network) => {
  const cases: [what: string, path: string, requests: number][] = [
    ['one in several chunks', '/testimonials?limit=100', 1],
    ['many small ones, pipelined', '/testimonials?limit=4', 16],
  ]
  const ends: Promise<void>[] = []
  for (const [what, path, requests] of cases) {
    const socket = network.connect(port).on('error', () => {})
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(requests))
    const [accepted] = await once(app.server, 'connection')
    ends.push(once(accepted, 'close').then(() => {
      t.ok(accepted.bytesWritten > 150_000, `${what}: part of the response was sent`)
      t.ok(accepted.bytesWritten < 14_000_000, `${what}: but not all`)
      socket.destroy()
    }))
  }
  await Promise.all(ends)
})

onNetworks('A client that reads slowly gets its response', async (t, network) => {
  const slow = network.connect(port).pause()
  slow.write('GET /testimonials?limit=50 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const reader = setInterval(() => {
    slow.resume()
    slow.once('data', () => slow.pause())
  }, 20)
  await once(slow, 'end')
  clearInterval(reader)
  t.ok(slow.bytesRead > 7_500_000, `${slow.bytesRead} bytes`)
})

onNetworks('A slow client gets its first response whole', async (t, network) => {
  while (performance.now() < 1000 * app.config.IDLE_TIMEOUT) await sleep(100)
  const socket = network.connect(port, 400)
  socket.write('GET /testimonials?limit=6 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  t.ok((await text(socket)).length > 900_000)
})

/** Sends everything, and then reads: as much of a response as there is, or an error. */
async function sendThenRead (socket: Socket, ...pieces: (string | Buffer)[]) {
  socket.on('error', () => {})
  try {
    for (const piece of pieces) await promisify<string | Buffer>(socket.write.bind(socket))(piece)
    return await text(socket.end())
  } catch (error) {
    return String(error)
  }
}

const refusing = await build(t, { DATABASE_URL: app.config.DATABASE_URL, MAX_BODY_BYTES: '2048' })
await refusing.listen({ host: '0.0.0.0', port: 0 })

onNetworks('A body that is refused is read, so that its client gets the response', async (t, network) => {
  const { port } = refusing.server.address() as AddressInfo
  const body = Buffer.alloc(20_000_000, 'x')
  const cases: [what: string, path: string, type: string, status: number, message: string][] = [
    ['too long', '/auth/login', 'application/json', 413, 'Request body is too large'],
    ['without a token', '/blogs', 'application/json', 401, 'Access token required'],
    ['on an unknown path', '/unknown', 'text/plain', 413, 'Request body is too large'],
  ]
  const chunked = [`Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n']
  const framings = [[`Content-Length: ${body.length}\r\n\r\n`, body], chunked]
  for (const connection of ['keep-alive', 'close']) {
    for (const framing of framings) {
      await Promise.all(cases.map(async ([what, path, type, status, message]) => {
        const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nConnection: ${connection}\r\n`
        const response = await sendThenRead(network.connect(port), head, ...framing)
        t.match(response, new RegExp(`^HTTP/1.1 ${status} [^]*"${message}"`), `${what}, ${connection}, ${framing[0]}`)
      }))
    }
  }
})

onNetworks('Headers that are too long are read, so that their client gets the response', async (t, network) => {
  for (const length of [500_000, 1_500_000]) {
    const bytes = `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(length)}\r\n\r\n`
    t.match(await sendThenRead(network.connect(port), bytes), /^HTTP\/1.1 431 /, `${length} bytes`)
  }
})

onNetworks('A refused body that never ends is cut', async (t, network) => {
  const socket = network.connect(port).on('error', () => {})
  const cut = new Promise(resolve => socket.once('close', resolve))
  socket.write('POST /blogs HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n')
  const sent = Buffer.alloc(1_000_000)
  const send = () => { while (!socket.destroyed && socket.write(sent)); }
  socket.on('drain', send).resume()
  send()
  await cut
  t.ok(socket.bytesWritten < 100_000_000, `${socket.bytesWritten}`)
})

/** Starts a server with these connections and returns its port. */
async function startServer (t: Test, listener: RequestListener, connections = new Connections()) {
  const server = createHttpServer(testConfig({}), connections, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** Starts a server that responds when it is told to. */
async function startTold (t: Test) {
  const begun: [url: string, response: ServerResponse][] = []
  const port = await startServer(t, ({ url }, response) => { begun.push([url!, response]) })
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  return {
    begun,
    socket,
    send (count: number, headers = '') {
      for (let n = 1; n <= count; n++) socket.write(`GET /${n} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`)
    },
  }
}

t.test('Pipelined requests are answered in order', async t => {
  const { begun, socket, send } = await startTold(t)
  send(16)
  while (begun.length < 16) await sleep(5)
  for (const [url, response] of begun.toReversed()) response.end(url, () => { if (url === '/16') socket.end() })
  const bodies = [...(await text(socket)).matchAll(/\/\d+$|\/\d+(?=HTTP)/gm)].map(([url]) => url)
  t.strictSame(bodies, Array.from({ length: 16 }, (_, n) => `/${n + 1}`))
})

t.test('A connection with more than sixteen pipelined requests is closed, or four before a large one', async t => {
  for (const [headers, begins] of [['', 16], [`X: ${'x'.repeat(4096)}\r\n`, 4]] as const) {
    const { begun, socket, send } = await startTold(t)
    const closed = new Promise(resolve => socket.once('close', resolve))
    send(900, headers)
    socket.resume()
    await closed
    t.equal(begun.length, begins)
  }
})

t.test('Requests after the last response of a connection get no response, and seventeen are a flood', async t => {
  const { args } = t.capture(app.connections, 'closeFlood', app.connections.closeFlood)
  const refused = `GET /livez HTTP/1.1\r\nHost: a\r\n${'a: b\r\n'.repeat(101)}\r\n`
  for (const [count, isFlood] of [[1, false], [17, false], [18, true]] as const) {
    const lines = await statusLines(NETWORKS[0]!, refused.repeat(count))
    if (count === 1) t.match(lines, ['HTTP/1.1 431 Request Header Fields Too Large'])
    else t.ok(lines.length <= 1, lines.join())
    t.equal(args().length > 0, isFlood, `${count} requests`)
  }
})

/** Requests that are too many for a connection. */
const FLOOD = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(900)

const HONEST = 'GET /honest HTTP/1.1\r\nHost: a\r\n\r\n'

/** Starts a server that tells when a connection begins to flood, and answers requests for `/honest`. */
async function startFlooded (t: Test) {
  const begun: string[] = []
  const sockets = new Set<Socket>()
  const port = await startServer(t, ({ url, socket }, response) => {
    if (url === '/honest') response.end('x')
    else if (sockets.has(socket)) return
    else sockets.add(socket)
    begun.push(url!)
  })
  const open = async (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(HONEST)
    await once(socket, 'data')
    begun.length = 0
    return socket.resume()
  }
  return { begun, port, open }
}

t.test('Floods on many connections take turns, and others are served between them', async t => {
  const { begun, open } = await startFlooded(t)
  const honest = await open('127.0.0.9')
  for (const networks of [1, 20]) {
    const addresses = Array.from({ length: 20 }, (_, n) => `127.0.${networks}.${1 + n % networks}`)
    const sockets = await Promise.all(addresses.map(open))
    const served = once(honest, 'data')
    for (const socket of sockets) socket.write(FLOOD)
    honest.write(HONEST)
    let most = 0
    for (let last = 0; sockets.some(({ closed }) => !closed); last = begun.length) {
      await nextTurn()
      most = Math.max(most, begun.slice(last).filter(url => url === '/').length)
    }
    t.equal(most, 1)
    await served
    begun.length = 0
  }
})

t.test('Floods of ever new connections do not keep others waiting', async t => {
  for (const networks of [1, 60]) {
    const { begun, port, open } = await startFlooded(t)
    const [flooding, honest] = [await open('127.0.2.1'), await open('127.0.0.9')]
    flooding.write(FLOOD)
    honest.write(HONEST)
    // The kernel accepts them while this process waits.
    execFileSync(process.execPath, ['-e', `
      let count = 60
      for (let n = 1; n <= 60; n++) {
        const localAddress = '127.0.2.' + (1 + n % ${networks})
        const socket = require('net').connect({ port: ${port}, host: '127.0.0.1', localAddress }, () => {
          socket.end(${JSON.stringify(FLOOD)}, () => { if (--count === 0) process.exit() })
        })
      }
    `])
    await once(honest, 'data')
    t.ok(begun.indexOf('/honest') < 5, `${begun.indexOf('/honest')} floods came first`)
  }
})

t.test('A connection that is paused after its first request is not read', async t => {
  const connections = new Connections()
  let accepted: Socket | undefined
  const port = await startServer(t, ({ url, socket }) => {
    if (url === '/second') accepted = socket
    // A flood of the same network.
    else connections.closeFlood([...connections.keys()].find(other => other !== socket)!)
  }, connections)
  const [flooding, socket] = await Promise.all([1, 2].map(async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  })) as [Socket, Socket]
  const closed = new Promise(resolve => flooding.resume().once('close', resolve))
  while (connections.size < 2) await sleep(1)
  socket.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\n' +
    'POST /second HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n')
  socket.write(Buffer.alloc(20_000_000))
  await closed
  await sleep(50)
  t.ok(accepted!.bytesRead < 300_000, `${accepted!.bytesRead} bytes`)
})

t.test('100 Continue is not sent while an earlier response is', async t => {
  const expecting = 'POST /2 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n'
  const alone = await startTold(t)
  alone.socket.write(expecting)
  t.equal(String((await once(alone.socket, 'data'))[0]), 'HTTP/1.1 100 Continue\r\n\r\n')
  const { begun, socket, send } = await startTold(t)
  send(1)
  socket.write(expecting)
  while (begun.length < 2) await sleep(5)
  for (const [url, response] of begun) response.end(Buffer.from(url!))
  socket.write('x')
  t.match(await text(socket), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n\/1HTTP\/1.1 200 OK\r\n[^]*\/2$/)
})

t.test('A client that waits for each response is not limited', async t => {
  const { begun, socket, send } = await startTold(t)
  for (let n = 0; n < 150; n++) {
    send(1)
    while (!begun[n]) await sleep(1)
    begun[n]![1].end('x')
    await once(socket, 'data')
  }
  t.equal(begun.length, 150)
})
