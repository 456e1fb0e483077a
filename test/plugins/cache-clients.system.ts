// Clients that disconnect, stall or never read must not delay others or leak memory. Uses its own server: commits of
// other tests would invalidate entries.
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'
import t from 'tap'

import { createLogger } from '#lib/http/logger.js'
import { migrate } from '#lib/database/migrations.js'
import { Cluster } from '../cluster.ts'
import { build, person } from '../helper.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const server = await Cluster.create(t)
await server.start()
const sql = postgres(server.url('postgres'), { max: 1, onnotice () {} })
t.teardown(() => sql.end())
await sql`CREATE DATABASE community`
await migrate(server.url('community'))

/** What a client does after connecting. */
const clients: { [what: string]: (port: number, request: string) => Promise<unknown> } = {
  async 'sends its FIN with the request' (port, request) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
    socket.end(request)
    socket.resume()
    await once(socket, 'close')
  },
  async 'resets the connection' (port, request) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(request, () => socket.resetAndDestroy())
    await once(socket, 'close')
  },
  async 'resets it behind other requests' (port, request) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(request.repeat(5), () => setImmediate(() => socket.resetAndDestroy()))
    await once(socket, 'close')
  },
  async 'never reads' (port, request) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.pause()
    socket.write(request.repeat(3))
    await sleep(20)
    socket.destroy()
  },
}

/** What is written after other clients have read the blog. */
const changes: { [what: string]: (app: FastifyInstance, id: string) => Promise<unknown> } = {
  'nothing has changed': async () => {},
  'something else has changed': app => person(app),
  'it has changed': (app, id) => app.sql`UPDATE blogs SET title = title || '!' WHERE id = ${id}`,
  'it was archived': (app, id) => app.sql`UPDATE blogs SET status = 'ARCHIVED' WHERE id = ${id}`,
  'it was deleted': (app, id) => app.sql`DELETE FROM blogs WHERE id = ${id}`,
}

/** Several chunks, so that a stalled client leaves some of them unsent. */
const LARGE = 3_000_000

/** How much longer than five times the usual latency other clients may wait, in milliseconds. */
const BOUND = 1000

async function publish (app: FastifyInstance, length: number) {
  const author = await person(app)
  const [blog] = await app.sql<{ id: string }[]>`
    INSERT INTO blogs (title, content, status, author_id)
    VALUES ('A title', repeat('x', ${length}::int), 'PUBLISHED', ${author.id}) RETURNING id
  `
  return blog!.id
}

for (const level of ['info', 'warn']) {
  t.test(`misbehaving clients do not delay others at ${level}`, async t => {
    const app = await build(t, { DATABASE_URL: server.url('community') }, createLogger(level, { write () {} }))
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    const get = async (id: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/blogs/${id}`, { signal: AbortSignal.timeout(5000) })
      await response.text()
      return response.status
    }
    const others = async (id: string) => {
      const start = performance.now()
      const statuses = await Promise.all([get(id), get(id), get(id)])
      return { statuses, took: performance.now() - start }
    }
    for (const [change, apply] of Object.entries(changes)) {
      for (const [client, act] of Object.entries(clients)) {
        for (const length of [100, LARGE]) {
          const id = await publish(app, length)
          for (let time = 0; time < 2; time++) t.equal(await get(id), 200)
          await apply(app, id)
          const expected = change.includes('archived') ? 403 : change.includes('deleted') ? 404 : 200
          const request = `GET /blogs/${id} HTTP/1.1\r\nHost: a\r\n\r\n`
          const name = `${client}, ${change}, ${length} bytes`
          const misbehaving = [act(port, request), act(port, request)]
          const beside = await others(id)
          await Promise.all(misbehaving)
          const alone = await others(id)
          t.strictSame([...beside.statuses, ...alone.statuses], Array(6).fill(expected), name)
          t.ok(beside.took < BOUND + 5 * alone.took, `${name}: ${Math.round(beside.took)} ms`)
        }
      }
    }
  })
}

t.test('memory returns to its level after a thousand misbehaving clients', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community') })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const id = await publish(app, LARGE)
  const request = `GET /blogs/${id} HTTP/1.1\r\nHost: a\r\n\r\n`
  const misbehave = async (times: number) => {
    for (let time = 0; time < times; time++) {
      await Promise.all(Object.values(clients).map(act => act(port, request)))
    }
    // Wait until the service has noticed that they disconnected.
    await sleep(1500)
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = await misbehave(20)
  const after = await misbehave(250)
  t.ok(after < before + 2 * LARGE, `${Math.round(before / 2 ** 20)} MB before, ${Math.round(after / 2 ** 20)} MB after`)
})

t.test('past MAX_UNSENT_BYTES misses are a 503, and hits are served', async t => {
  const app = await build(t, {
    DATABASE_URL: server.url('community'), MAX_UNSENT_BYTES: '4000000', CACHE_SIZE_MB: '2', IDLE_TIMEOUT: '2',
  })
  await app.sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, repeat('x', 30000) || n FROM generate_series(1, 100) AS n
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  t.equal((await get('/clubs')).status, 200)
  t.equal((await get('/clubs')).status, 200)

  const sockets = Array.from({ length: 10 }, () => connect(port, '127.0.0.1').on('error', () => {}).pause())
  const closed = sockets.map(socket => once(socket, 'close'))
  for (const [index, socket] of sockets.entries()) {
    socket.write(`GET /testimonials?limit=${90 + index} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(3))
    await sleep(100)
  }
  const refused = await get('/testimonials?limit=80')
  t.strictSame([refused.status, refused.headers.get('retry-after')], [503, '2'])
  t.equal((await get('/clubs')).status, 200)
  t.equal((await get('/livez')).status, 200)

  // Disconnects them, which makes room again.
  for (const socket of sockets) socket.resume()
  for (const socket of sockets) socket.destroy()
  await Promise.all(closed)
  await sleep(1500)
  t.equal((await get('/testimonials?limit=80')).status, 200)
})
