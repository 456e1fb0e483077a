import { EventEmitter, once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'

import { shutdownTimeouts } from '#lib/config/timeout.js'
import { stopClock } from '../clock.ts'
import { build, createDatabase, make } from '../helper.ts'
import { networks } from '../network.ts'
import { CLIENT, startFakeProvider } from '../provider.ts'
import t, { type Test } from '../suite.ts'

const DATABASE_URL = await createDatabase()

async function listen (t: Test, variables: NodeJS.Dict<string>) {
  const app = await build(t, { DATABASE_URL, ...variables })
  await app.listen({ host: '0.0.0.0', port: 0 })
  return { app, port: (app.server.address() as AddressInfo).port }
}

/** Waits until the service that stops accepts no connections any more. */
async function untilClosing ({ server }: FastifyInstance) {
  while (server.listening) await sleep(5)
}

t.test('A service that stops responds until STOP_DELAY, and closes each connection with its response', async t => {
  const { app, port } = await listen(t, { STOP_DELAY: '1' })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async (path: string) => {
    const [response] = await once(get({ port, path, agent }), 'response') as [IncomingMessage]
    await once(response.resume(), 'end')
    return { status: response.statusCode, connection: response.headers.connection }
  }
  t.strictSame(await ask('/livez'), { status: 200, connection: 'keep-alive' })
  const stopped = app.stop()
  t.strictSame(await ask('/livez'), { status: 200, connection: 'close' }, 'on a kept-alive connection')
  t.strictSame(await ask('/readyz'), { status: 503, connection: 'close' }, 'on a new one')
  await stopped
  await t.rejects(ask('/livez'), { code: 'ECONNREFUSED' })
})

t.test('Requests of disconnected clients finish before the database closes', async t => {
  const { app, port } = await listen(t, { STOP_DELAY: '0' })
  const hashing = new EventEmitter()
  t.intercept(argon2, 'hash', {
    value: async () => {
      hashing.emit('begun')
      await once(hashing, 'end')
      return 'a hash'
    },
  })
  const email = 'ada@example.org'
  const body = JSON.stringify({ email, password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' })
  const client = connect(port, '127.0.0.1')
  client.write('POST /auth/register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
    `Content-Length: ${body.length}\r\n\r\n${body}`)
  await once(hashing, 'begun')
  client.destroy()
  const closed = once(app.server, 'close')
  const stopped = app.stop()
  await closed
  // The database would close within these turns of the event loop.
  for (let turn = 0; turn < 50; turn++) await nextTurn()
  hashing.emit('end')
  await stopped
  const sql = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => sql.end())
  t.match(await sql`SELECT email FROM users WHERE email = ${email}`, [{ email }])
})

t.test('A sign-in with a slow provider finishes', async t => {
  const provider = await startFakeProvider(t)
  const { app, port } = await listen(t, {
    STOP_DELAY: '0', DATABASE_TIMEOUT: '1', IDP_ISSUER: provider.issuer, ...CLIENT,
  })
  const asked = new EventEmitter()
  const pass = stopClock(t)
  for (const [path, body] of Object.entries(provider.responses)) {
    provider.responses[path] = async response => {
      asked.emit('request')
      await untilClosing(app)
      pass(3500)
      response.end(JSON.stringify(body))
    }
  }
  const signedIn = fetch(`http://127.0.0.1:${port}/auth/google`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ idToken: await provider.idToken() }),
  })
  await once(asked, 'request')
  const [{ status }] = await Promise.all([signedIn, app.stop()])
  t.equal(status, 200)
  t.strictSame(provider.requests, ['/.well-known/openid-configuration', '/keys'], 'it took 7 s')
})

for (const network of await networks(t)) {
  t.test(`A connection that has not been used does not hold up the stop, ${network.name}`, async t => {
    const { app, port } = await listen(t, { STOP_DELAY: '0', DATABASE_TIMEOUT: '3600' })
    const accepted = once(app.server, 'connection')
    const socket = network.connect(port)
    await accepted
    const closed = once(socket.resume(), 'close')
    await app.stop()
    await closed
  })

  t.test(`A response that is on its way arrives, and does not hold up the stop, ${network.name}`, async t => {
    const { app, port } = await listen(t, { STOP_DELAY: '0' })
    await app.sql`
      INSERT INTO testimonials (name, batch_year, content)
      SELECT 'Ada', 2020, repeat('long ', 30000) FROM generate_series(1, 6)
    `
    const socket = network.connect(port, 2000)
    const received = text(socket)
    socket.write('GET /testimonials?limit=6 HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'readable')
    // How long a slow client takes is no matter, only what follows.
    let last = 0
    socket.on('data', () => { last = performance.now() })
    await app.stop()
    t.ok((await received).length > 900_000)
    t.ok(performance.now() - last < 5000)
  })

  t.test(`A connection that becomes idle while the service stops is closed, ${network.name}`, async t => {
    const { app } = await make(t, { DATABASE_URL, STOP_DELAY: '0' })
    const stream = new PassThrough()
    app.get('/stream', (_request, reply) => reply.send(stream))
    await app.listen({ host: '0.0.0.0', port: 0 })
    const socket = network.connect((app.server.address() as AddressInfo).port)
    const received = text(socket)
    socket.write('GET /stream HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(stream, 'resume')
    stream.write('the beginning')
    await once(socket, 'data')
    const before = performance.now()
    const stopped = app.stop()
    await untilClosing(app)
    stream.end('the end')
    await stopped
    t.ok(performance.now() - before < 4000)
    t.match(await received, /connection: keep-alive[^]*the end/i)
  })

  t.test(`A client that never completes its request is finally disconnected, ${network.name}`, async t => {
    const { app, port } = await listen(t, { STOP_DELAY: '0', DATABASE_TIMEOUT: '3600' })
    const socket = network.connect(port)
    socket.write('GET /livez HTTP/1.1\r\n')
    socket.on('error', () => {}).resume()
    const [connection] = await once(app.server, 'connection')
    while (connection.bytesRead === 0) await sleep(10)
    const { connections } = shutdownTimeouts(app.config)
    const pass = stopClock(t)
    // Also resolves on a reset, for which `once` would reject.
    const cut = new Promise(resolve => socket.once('close', resolve))
    const stopped = app.stop()
    await untilClosing(app)
    pass(connections * 1000)
    await stopped
    await cut
  })
}
