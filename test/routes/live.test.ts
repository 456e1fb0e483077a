import { readFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'

import { driverOptions } from '#lib/database/pools.js'
import { LISTS } from '#routes/live/schemas.js'
import { assertComplete } from '../assertions.ts'
import { clientIn } from '../clients.ts'
import { build, buildWithRoutes, createDatabase, insert } from '../helper.ts'
import { currentRun } from '../run.ts'
import t, { type Test } from '../suite.ts'

interface Message {
  id: string
  list: string
  etag: string
}

const EVENTS = '/events?limit=12'

/** Milliseconds after which a service looks for changes again. */
const TICK = 500

const DATABASE_URL = await createDatabase()
const { app, routes } = await buildWithRoutes(t, { DATABASE_URL })
const proxied = await build(t, { DATABASE_URL, DATABASE_POOL_SIZE: '8', TRUST_PROXY: '1' })
t.beforeEach(async () => {
  // The clients of earlier tests
  while (app.live.clients + proxied.live.clients > 0) await sleep(5)
})

/** Opens a stream over HTTP. `next` resolves to the next message, or to `undefined` if the stream ends. */
async function watch (t: Test, app: FastifyInstance, lists: string[], headers: Record<string, string> = {}) {
  if (!app.server.listening) await app.listen({ port: 0 })
  const { port } = app.server.address() as AddressInfo
  const query = new URLSearchParams(lists.map(list => ['list', list] as [string, string]))
  const controller = new AbortController()
  t.teardown(() => controller.abort())
  const response = await fetch(`http://127.0.0.1:${port}/live?${query}`, { headers, signal: controller.signal })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  async function next (): Promise<Message | undefined> {
    for (;;) {
      const found = /^id: (.*)\ndata: (.*)\n\n/m.exec(text)
      if (found) {
        text = text.slice(found.index + found[0].length)
        return { id: found[1]!, ...JSON.parse(found[2]!) }
      }
      const { value, done } = await reader.read()
      if (done) return undefined
      text += value
    }
  }
  /** The first message of each list, which arrive in any order, and the last id. */
  async function first () {
    const messages: Message[] = []
    while (messages.length < lists.length) messages.push((await next())!)
    const sorted = lists.map(list => messages.find(message => message.list === list))
    return { etags: sorted.map(message => message?.etag), id: messages.at(-1)!.id }
  }
  return { response, next, first, rest: () => text, close: () => controller.abort() }
}

/** Waits until the service has looked for changes so many times. */
async function ticks (app: FastifyInstance, count: number) {
  const last = app.live.counts.ticks + count
  while (app.live.counts.ticks < last) await sleep(5)
}

/** The entity tag of a list, for a client of the same host, because links to pictures contain it. */
async function etagOf (app: FastifyInstance, url: string) {
  const { port } = app.server.address() as AddressInfo
  return (await app.inject({ url, headers: { host: `127.0.0.1:${port}` } })).headers.etag
}

await t.test('GET /live tells the entity tag of each list, then each change of a list', async t => {
  const { response, next, first } = await watch(t, app, [EVENTS, '/mentors'])
  t.equal(response.status, 200)
  t.match(Object.fromEntries(response.headers), {
    'content-type': 'text/event-stream', 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no',
  })
  const { etags } = await first()
  t.strictSame(etags, [await etagOf(app, EVENTS), await etagOf(app, '/mentors')])

  const club = await insert(app, 'clubs')
  const start = performance.now()
  await insert(app, 'events', { club_id: club })
  const { id, ...message } = (await next())!
  t.ok(performance.now() - start < 1500, 'within 1.5 seconds of the commit')
  t.strictSame(message, { list: EVENTS, etag: await etagOf(app, EVENTS) })
  t.equal(id, [message.etag, etags[1]!].map(etag => etag.slice(1, -1)).join(), 'the id has all entity tags')

  await insert(app, 'mentors', { club_id: club })
  t.equal((await next())?.list, '/mentors')
})

await t.test('A stop ends streams with a short time to retry', async t => {
  const app = await build(t, { DATABASE_URL, STOP_DELAY: '1' })
  const stream = await watch(t, app, ['/mentors'])
  await stream.next()
  const start = performance.now()
  const stopped = app.stop()
  t.equal(await stream.next(), undefined)
  t.ok(performance.now() - start < 900)
  t.match(stream.rest(), /^retry: \d+\n\n$/m)
  // After a 503, EventSource would not connect again.
  const later = await watch(t, app, ['/mentors'])
  t.equal(later.response.status, 200)
  while (await later.next() !== undefined);
  t.match(later.rest(), /^retry: \d+\n\n$/m)
  await stopped
})

await t.test('Clients share the reads of the snapshot and of lists', async t => {
  const streams = [await watch(t, app, [EVENTS])]
  for (let n = 1; n < 50; n++) streams.push(await watch(t, app, [EVENTS]))
  for (const { next } of streams) await next()
  await ticks(app, 1)
  const before = { ...app.cache.counts }
  await insert(app, 'events', { club_id: await insert(app, 'clubs') })
  await Promise.all(streams.map(({ next }) => next()))
  t.ok(app.cache.counts.misses - before.misses <= 2)
  t.ok(app.cache.counts.validations - before.validations <= 3)
})

// The tests above depend on the interval. From now on, a service looks for changes five times as often.
// Its pings end a stream after 36 seconds or more.
const { setInterval } = globalThis
t.capture(globalThis, 'setInterval', ((work: () => void, delay: number) =>
  setInterval(work, delay === TICK ? TICK / 5 : delay)) as typeof setInterval)

t.test('GET /live watches every public list', async t => {
  const watchable = routes.filter(({ config }) => config?.live).map(({ url }) => url)
  assertComplete(t, LISTS, watchable, 'LISTS in routes/live/schemas.ts')
  const [, paths] = /type PublicPath = (.*)/.exec(await readFile('client/index.d.ts', 'utf8'))!
  t.strictSame(paths, watchable.map(path => `'${path.slice(1)}'`).sort().join(' | '), 'client/index.d.ts')
  const lists = LISTS.map(list => `${list}?limit=3`)
  const { first } = await watch(t, app, lists)
  t.strictSame((await first()).etags, await Promise.all(lists.map(list => etagOf(app, list))))
})

t.test('GET /live tells a repeated list once', async t => {
  const { messages } = app.live.counts
  const { next } = await watch(t, app, ['/mentors', '/clubs', '/mentors'])
  t.strictSame([(await next())?.list, (await next())?.list].sort(), ['/clubs', '/mentors'])
  await ticks(app, 2)
  t.equal(app.live.counts.messages, messages + 2)
})

/** Keeps the current minute, because lists are read again in the next one. */
function stopDate (t: Test) {
  mock.timers.enable({ apis: ['Date'], now: Date.now() })
  t.teardown(() => mock.timers.reset())
}

t.test('GET /live reads a list that PostgreSQL refuses only after a change', async t => {
  stopDate(t)
  // Commits to the databases of other tests change the snapshot as well.
  const snapshot = await app.cache.readSnapshot()
  t.intercept(app.cache, 'readSnapshot', { value: async () => snapshot })
  const { read } = app.cache
  const refusals: unknown[] = []
  t.intercept(app.cache, 'read', {
    value: (...args: Parameters<typeof read>) => read(...args).catch(error => {
      refusals.push(error)
      throw error
    }),
  })
  const list = '/events?limit=-1'
  const { next } = await watch(t, app, [list, '/clubs'])
  t.equal((await next())?.list, '/clubs')
  // A tick may have begun to wait for a read of its own before the read of the client was refused.
  while (refusals.length === 0 || app.queues.streams.waiting > 0) await sleep(5)
  await ticks(app, 2)
  const { misses } = app.cache.counts
  await ticks(app, 3)
  t.equal(app.cache.counts.misses, misses)
})

t.test('GET /live reads a list that is too large only after a change', async t => {
  stopDate(t)
  const MAX_HELD_BYTES = 2 ** 21
  const small = await build(t, { DATABASE_URL: await createDatabase(), MAX_HELD_BYTES: String(MAX_HELD_BYTES) })
  const club = await insert(small, 'clubs')
  await insert(small, 'events', { title: 'x'.repeat(MAX_HELD_BYTES / 2 + 1), club_id: club })
  const snapshot = await small.cache.readSnapshot()
  t.intercept(small.cache, 'readSnapshot', { value: async () => snapshot })
  const { next } = await watch(t, small, ['/clubs', '/mentors'])
  t.equal((await next())?.list, '/mentors')
  await ticks(small, 2)
  const { hits, misses } = small.cache.counts
  await ticks(small, 3)
  t.match(small.cache.counts, { hits, misses })
})

t.test('Two clients that open an unchanged list at once are both told', async t => {
  const snapshot = await app.cache.readSnapshot()
  t.intercept(app.cache, 'readSnapshot', { value: async () => snapshot })
  const open = () => {
    const lists = [{ url: '/clubs', picturesUrl: null, key: '/clubs' }]
    const stream = app.live.open(clientIn('2001:db8::'), lists, '', () => 0)!
    t.teardown(() => stream.destroy())
    return stream
  }
  const told = (stream: ReturnType<typeof open>) => new Promise(resolve => {
    stream.on('data', text => { if (String(text).includes('"list":"/clubs"')) resolve(true) })
  })
  await told(open())
  t.strictSame(await Promise.all([told(open()), told(open())]), [true, true])
})

t.test('GET /live compares after a gap', async t => {
  const lists = [EVENTS, '/mentors']
  const before = await watch(t, app, lists)
  const { id } = await before.first()
  before.close()

  await insert(app, 'mentors', { club_id: await insert(app, 'clubs') })
  const after = await watch(t, app, lists, { 'last-event-id': id })
  t.equal((await after.next())?.list, '/mentors', 'only the list that has changed')
  t.equal(after.rest().includes('id:'), false)

  for (const lastEventId of ['', 'nonsense', ',', id.split(',')[0]!]) {
    const unknown = await watch(t, app, lists, { 'last-event-id': lastEventId })
    t.equal((await unknown.first()).etags.includes(undefined), false, JSON.stringify(lastEventId))
  }
})

t.test('GET /live refuses all but one to eight public lists', async t => {
  for (const query of [
    '', 'list=', 'list=/', 'list=/users', 'list=/auth/me', 'list=/events/mine', 'list=/live', 'list=events',
    'list=/agenda%3Fcursor%3Dx', 'list=/events%3Fsort%3Dup', 'list=/events%3Fx%3D%25FF',
    'list=/events%3Fpage%3D1%26page%3D2', 'list=/events&list=/users',
    'lists=/events', Array(9).fill('list=/events').join('&'),
  ]) {
    const response = await app.inject(`/live?${query}`)
    t.equal(response.statusCode, 400, query)
    t.match(response.json().message, /^The lists must be one to eight public lists/)
  }
  t.equal((await app.inject({ method: 'HEAD', url: '/live?list=/events' })).statusCode, 404)
})

t.test('GET /live ends a stream of the network that has the most, for a network that has fewer', async t => {
  const app = await build(t, { DATABASE_URL, LIVE_CLIENTS: '4', TRUST_PROXY: '1' })
  const from = (address: string) => watch(t, app, ['/mentors'], { 'x-forwarded-for': address })
  const streams: Awaited<ReturnType<typeof from>>[] = []
  for (const network of [1, 1, 2, 2]) streams.push(await from(`192.0.2.${network}`))
  const refused = await from('192.0.2.1')
  t.equal(refused.response.status, 503)
  t.ok(Number(refused.response.headers.get('retry-after')) > 0)
  for (const { first } of streams) await first()
  t.equal((await from('192.0.2.3')).response.status, 200, 'a newcomer is served')
  t.equal(await streams[1]!.next(), undefined, 'the newest stream of a network with two has ended')
  t.match(streams[1]!.rest(), /^retry: [12]\d{3}\n\n$/m)
  t.equal((await from('192.0.2.4')).response.status, 200)
  t.equal((await from('192.0.2.5')).response.status, 503, 'all have one')
  t.equal(app.live.clients, 4)

  streams[0]!.close()
  while (app.live.clients === 4) await sleep(5)
  t.equal((await from('192.0.2.5')).response.status, 200, 'a closed stream makes room')
})

/**
 * Fills the queue of lists until `release` is called. `order` contains the lists that are read from then on, `asked`
 * the networks that have asked for a list, and `reads` all reads.
 */
// Two networks, because one of them has half of the places.
function fillQueue (t: Test, app: FastifyInstance, networks = ['192.0.2.8', '192.0.2.9']) {
  const order: string[] = []
  const asked: string[] = []
  const reads: Promise<unknown>[] = []
  const { read } = app.cache
  t.intercept(app.cache, 'read', {
    async value (...args: Parameters<typeof read>) {
      const reading = read(...args)
      reads.push(reading)
      for (const { network } of args[3]) asked.push(`${args[0]} ${network}`)
      const body = await reading
      order.push(args[0])
      return body
    },
  })
  let end = () => {}
  const ended = new Promise<void>(resolve => { end = resolve })
  const places = networks.map(network => app.queues.lists.run(clientIn(network), () => ended))
  return {
    order,
    asked,
    reads,
    async release () {
      order.length = 0
      end()
      await Promise.all(places)
    },
  }
}

t.test('GET /live reads a list as the network that watches the fewest lists', async t => {
  // A list is read at a time, so lists are read in the order of their networks.
  const app = await build(t, { DATABASE_URL, DATABASE_POOL_SIZE: '4', TRUST_PROXY: '1' })
  const from = async (address: string, lists: string[]) => {
    const stream = await watch(t, app, lists, { 'x-forwarded-for': address })
    await stream.first()
    return stream
  }
  const honest = await from('192.0.2.2', ['/mentors'])
  for (const page of [1, 9, 17]) {
    await from('192.0.2.1', Array.from({ length: 8 }, (_, n) => `/events?page=${page + n}`))
  }
  await from('192.0.2.1', ['/mentors', '/clubs'])

  const { order, asked, release } = fillQueue(t, app, ['192.0.2.1'])
  await insert(app, 'mentors', { club_id: await insert(app, 'clubs') })
  while (app.queues.lists.waiting < 26) await sleep(5)
  // A list waits already when a client of a different network comes.
  const late = await watch(t, app, ['/clubs'], { 'x-forwarded-for': '192.0.2.3' })
  while (!asked.includes('/clubs 192.0.2.3')) await sleep(5)
  await release()
  t.equal((await honest.next())?.list, '/mentors')
  t.equal((await late.next())?.list, '/clubs')
  t.strictSame([...new Set(order)].slice(0, 2).sort(), ['/clubs', '/mentors'])
})

t.test('GET /live and requests for the same lists share reads, and do not wait for each other', async t => {
  const lists = ['/mentors', '/clubs']
  const streams: Awaited<ReturnType<typeof watch>>[] = []
  for (const [index, list] of lists.entries()) {
    const stream = await watch(t, proxied, [list], { 'x-forwarded-for': `192.0.2.${index}` })
    await stream.first()
    streams.push(stream)
  }
  const { asked, release } = fillQueue(t, proxied)
  await insert(proxied, 'mentors', { club_id: await insert(proxied, 'clubs') })
  while (proxied.queues.lists.waiting < 2) await sleep(5)
  const responses = lists.map(url => proxied.inject({ url, headers: { 'x-forwarded-for': '192.0.2.4' } }))
  const first = proxied.inject({ url: '/testimonials', headers: { 'x-forwarded-for': '192.0.2.4' } })
  while (proxied.queues.lists.waiting < 3) await sleep(5)
  streams.push(await watch(t, proxied, ['/testimonials'], { 'x-forwarded-for': '192.0.2.2' }))
  while (!asked.includes('/testimonials 192.0.2.2')) await sleep(5)
  t.equal(proxied.queues.lists.waiting, 3, 'a read is one entry')
  await release()
  for (const response of [...responses, first]) t.equal((await response).statusCode, 200)
  const told = await Promise.all(streams.map(({ next }) => next()))
  t.strictSame(told.map(message => message?.list), [...lists, '/testimonials'])
})

t.test('Clients that come at once share a check', async t => {
  const lists = [{ url: '/mentors', picturesUrl: null, key: '/mentors' }]
  const open = () => app.live.open(clientIn('192.0.2.1'), lists, '', () => 0)!.setEncoding('utf8')
  const first = open()
  t.teardown(() => first.destroy())
  await ticks(app, 2)
  const streams = [open(), open()]
  const texts = streams.map(async stream => {
    for await (const text of stream) if (text.includes('id: ')) return text
  })
  for (const text of await Promise.all(texts)) t.match(text, /"\/mentors"/)
})

t.test('GET /live does not read lists whose clients have gone', async t => {
  // A commit, so that the cache has neither list
  await insert(proxied, 'clubs')
  const { order, reads, release } = fillQueue(t, proxied)
  const stream = await watch(t, proxied, ['/mentors', '/clubs'])
  while (proxied.queues.lists.waiting < 2) await sleep(5)
  stream.close()
  while (proxied.live.clients > 0) await sleep(5)
  await release()
  await Promise.allSettled(reads)
  t.strictSame(order, [])
  t.equal(proxied.queues.lists.waiting, 0)
})

t.test('GET /live stays open while the database is away', async t => {
  const app = await build(t, { DATABASE_TIMEOUT: '1' })
  const { next } = await watch(t, app, ['/mentors'])
  await next()
  const [{ name }] = await app.sql<[{ name: string }]>`SELECT current_database() AS name`
  const club = await insert(app, 'clubs')
  await app.sql`UPDATE pg_database SET datallowconn = false WHERE datname = ${name}`
  await app.sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`.catch(() => {})
  const later = await watch(t, app, ['/mentors'])
  t.equal(later.response.status, 200)
  // Longer than DATABASE_TIMEOUT
  await sleep(1200)

  const sql = postgres({ ...driverOptions(currentRun().url), max: 1 })
  await sql`UPDATE pg_database SET datallowconn = true WHERE datname = ${name}`
  await sql.end()
  t.equal((await later.next())?.list, '/mentors')
  await insert(app, 'mentors', { club_id: club })
  t.equal((await next())?.list, '/mentors', 'a change after the outage')
})

t.test('Streams that are pipelined on a connection end with it', async t => {
  const app = await build(t, { DATABASE_URL })
  await app.listen({ port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port)
  socket.write('GET /live?list=/events HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(4))
  while (app.live.clients < 4) await sleep(5)
  socket.destroy()
  const deadline = performance.now() + 5000
  while (app.live.clients > 0 && performance.now() < deadline) await sleep(5)
  t.equal(app.live.clients, 0)
})
