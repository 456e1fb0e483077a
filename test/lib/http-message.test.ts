import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import t, { type Test } from 'tap'

import { type Header, HttpMessage } from '#lib/http-message.js'

const IDLE_TIMEOUT = 1

const BODY = Buffer.from('{"name":"Zoë"}')

const HEADERS: Header[] = [
  ['content-type', 'application/json; charset=utf-8'], ['x-name', 'Zo\xeb'], ['content-length', String(BODY.length)],
]

const whole = new HttpMessage(200, HEADERS, BODY, IDLE_TIMEOUT)
const notModified = new HttpMessage(304, [['etag', '"1"']], Buffer.alloc(0), IDLE_TIMEOUT)

/** As Node sends them. */
const ofNode: Record<string, (response: ServerResponse) => void> = {
  '/whole': response => { response.writeHead(200, HEADERS.flat()).end(BODY) },
  '/not-modified': response => { response.writeHead(304, ['etag', '"1"']).end() },
}

const ours: typeof ofNode = {
  '/whole': response => whole.send(response),
  '/not-modified': response => notModified.send(response),
}

/** A server of these answers, and how a connection to it is opened. */
async function serve (t: Test, answers: typeof ofNode) {
  const server = createServer({ keepAliveTimeout: IDLE_TIMEOUT * 1000 }, (request, response) => {
    server.emit('answered', response)
    answers[request.url!]!(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  return { server, open: () => connect(port, '127.0.0.1') }
}

type Serve = Awaited<ReturnType<typeof serve>>

/** What goes over a connection until the server hangs up, with a word for a time that is right. */
async function exchange ({ open }: Serve, requests: string) {
  const socket = open()
  socket.setEncoding('latin1').write(requests)
  return (await text(socket)).replace(/(?<=^Date: ).+ GMT(?=\r$)/gm, date =>
    Math.abs(Date.parse(date) - Date.now()) < 10_000 ? 'now' : date)
}

const get = (path: string, version = '1.1', ...headers: string[]) =>
  `${[`GET ${path} HTTP/${version}`, 'Host: a', ...headers].join('\r\n')}\r\n\r\n`

t.test('what goes over the connection is what Node sends', async t => {
  const [expected, found] = [await serve(t, ofNode), await serve(t, ours)]
  const cases: [what: string, requests: string, answers: number][] = [
    ['one that may be followed by others', get('/whole'), 1],
    ['without a body', get('/not-modified'), 1],
    ['several at once', get('/whole') + get('/not-modified') + get('/whole'), 3],
    ['the last one', get('/whole', '1.1', 'Connection: close'), 1],
    ['the last one, without a body', get('/not-modified', '1.1', 'Connection: close'), 1],
    ['the last one of several', get('/whole') + get('/whole', '1.1', 'Connection: close'), 2],
    ['HTTP/1.0', get('/whole', '1.0'), 1],
    ['HTTP/1.0, to be followed', get('/whole', '1.0', 'Connection: keep-alive') + get('/whole', '1.0'), 2],
    ['a request that has a body', get('/whole', '1.1', 'Content-Length: 4') + 'body' + get('/not-modified'), 2],
  ]
  await Promise.all(cases.map(async ([what, requests, answers]) => {
    const [one, other] = await Promise.all([expected, found].map(serve => exchange(serve, requests)))
    t.equal(other, one, what)
    t.equal(other!.split('HTTP/1.1 ').length - 1, answers, what)
  }))
})

t.test('one after the other on the same connection, each with its time', async t => {
  const { server, open } = await serve(t, ours)
  const socket = open().setEncoding('latin1')
  const dates: string[] = []
  for (const wait of [0, 0, 1000]) {
    await sleep(wait)
    socket.write(get('/not-modified'))
    const [[response], [answer]] = await Promise.all([once(server, 'answered'), once(socket, 'data')])
    if (!response.closed) await once(response, 'close')
    t.equal(response.statusCode, 304)
    dates.push(/^Date: (.+)\r$/m.exec(answer)![1]!)
  }
  socket.destroy()
  t.ok(Date.parse(dates[2]!) > Date.parse(dates[1]!), dates.join(', '))
})

/** More than the system takes at a stretch. */
const BIG = 100_000_000

const big = new HttpMessage(200, [['content-length', String(BIG)]], Buffer.alloc(BIG), IDLE_TIMEOUT)

t.test('a client that has gone gets nothing', async t => {
  const { server, open } = await serve(t, {
    '/': async response => {
      client.destroy()
      await once(response, 'close')
      whole.send(response)
      server.emit('sent')
    },
  })
  const client = open()
  client.write(get('/'))
  await once(server, 'sent')
  t.equal(client.bytesRead, 0)
})

t.test('a client that goes meanwhile leaves nothing open', async t => {
  const { server, open } = await serve(t, { '/': response => big.send(response) })
  const client = open()
  client.write(get('/'))
  const [[response]] = await Promise.all([once(server, 'answered'), once(client, 'data')])
  client.destroy()
  await once(response, 'close')
  t.equal(await promisify(server.getConnections.bind(server))(), 0)
})

t.test('a client that takes nothing of it is hung up on', async t => {
  const { server, open } = await serve(t, { '/': response => big.send(response) })
  const client = open().pause()
  client.write(get('/'))
  const [accepted] = await once(server, 'connection')
  await once(accepted, 'close')
  t.ok(accepted.bytesWritten > 0)
  client.destroy()
})
