import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { limitPipelining } from '#lib/http/pipelining.js'
import t, { type Test } from '../../suite.ts'

/** Starts a server that responds when it is told to. */
async function start (t: Test) {
  const begun: [url: string, response: ServerResponse][] = []
  const server = createServer(limitPipelining(({ url }, response) => { begun.push([url!, response]) }))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  const request = (n: number) => `GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`
  return {
    begun,
    socket,
    send: (count: number) => socket.write(Array.from({ length: count }, (_, n) => request(n + 1)).join('')),
  }
}

t.test('Eight requests of a connection are begun, and all are answered in order', async t => {
  const { begun, socket, send } = await start(t)
  send(20)
  await sleep(100)
  t.equal(begun.length, 8)
  for (let n = 0; n < 20; n++) {
    while (!begun[n]) await sleep(5)
    t.ok(begun.length <= n + 8)
    const [url, response] = begun[n]!
    response.end(url, () => { if (n === 19) socket.end() })
  }
  const bodies = [...(await text(socket)).matchAll(/\/\d+$|\/\d+(?=HTTP)/gm)].map(([url]) => url)
  t.strictSame(bodies, Array.from({ length: 20 }, (_, n) => `/${n + 1}`))
})

t.test('A connection with more than a hundred is closed, and begins nothing more', async t => {
  const { begun, socket, send } = await start(t)
  const closed = once(socket, 'close')
  send(900)
  socket.resume()
  await closed
  await sleep(100)
  t.equal(begun.length, 8)
})

t.test('A connection whose waiting requests are long is closed', async t => {
  const { begun, socket, send } = await start(t)
  send(8)
  while (begun.length < 8) await sleep(5)
  const long = `POST /long HTTP/1.1\r\nHost: a\r\nCookie: ${'x'.repeat(10_000)}\r\nContent-Length: 10000\r\n\r\n`
  let sent = 0
  socket.on('error', () => {}).resume()
  for (; !socket.destroyed && sent < 20; sent++) {
    socket.write(long + 'x'.repeat(10_000))
    await sleep(20)
  }
  t.ok(sent >= 3 && sent <= 6, `after ${sent} of 20 KB`)
})

t.test('A client that waits for each response is not limited', async t => {
  const { begun, socket, send } = await start(t)
  for (let n = 0; n < 150; n++) {
    send(1)
    while (!begun[n]) await sleep(1)
    begun[n]![1].end('x')
    await once(socket, 'data')
  }
  t.equal(begun.length, 150)
})
