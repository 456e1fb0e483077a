// The cache as a plugin by itself. Uses its own server: commits of other tests would invalidate entries.
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

import Fastify from 'fastify'
import postgres, { type Sql } from 'postgres'

import snapshotCache, { type CacheOptions, type CachedQuery } from '#lib/cache/index.js'
import { FairQueue } from '#lib/http/fair-queue.js'
import { clientIn } from '../../clients.ts'
import { turnClock } from '../../clock.ts'
import { PostgresServer } from '../../postgres-server.ts'
import t, { type Test } from '../../suite.ts'

const server = await PostgresServer.create(t)
await server.start()
const [sql, shortSql] = [4, 1].map(max => postgres(server.url(), { max, fetch_types: false })) as [Sql, Sql]
t.teardown(() => Promise.all([sql, shortSql].map(sql => sql.end({ timeout: 0 }))))
await sql`CREATE TABLE notes (author text, text text)`

/** Reads the texts of an author. */
const notesQuery = (sql: Sql, author: string | undefined): CachedQuery => ({
  list: {
    field: 'notes', batchRows: 6, rows: sql`SELECT text FROM notes WHERE author = ${author ?? null} ORDER BY text`,
  },
})

const countQuery = (sql: Sql, author: string | undefined): CachedQuery => ({
  fields: sql`SELECT count(*)::int FROM notes WHERE author = ${author ?? null}`,
})

/** Queues for one read at a time. `fill` takes the place of lists until the returned function is called. */
function startQueues (maxLength = 9) {
  const create = () => new FairQueue({ concurrency: 1, maxLength, createError: () => new Error('There is no room') })
  const queues = { lists: create(), operations: create() }
  function fill () {
    let end!: () => void
    queues.lists.run(clientIn('other'), () => new Promise<void>(resolve => { end = resolve }))
    return end
  }
  return { queues, fill }
}

interface Request {
  Querystring: { author?: string }
}

/** A service with only the cache. The header `user` names the owner of private responses. */
async function start (t: Test, options: Partial<CacheOptions> = {}) {
  await sql`TRUNCATE notes`
  await sql`INSERT INTO notes VALUES ('ada', 'one'), ('grace', 'another')`
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(snapshotCache, {
    sql, shortSql, maxBytes: 1_000_000, owner: ({ headers }) => String(headers.user), ...options,
  })
  app.get<Request>('/notes', { config: { cache: 'public' } }, async ({ query }, reply) => {
    await reply.sendCached(notesQuery, query.author)
  })
  return app
}

t.test('A query without a name is refused, because it could share entries', async t => {
  const app = await start(t)
  app.get('/nameless', { config: { cache: 'public' } }, async (_request, reply) => {
    await reply.sendCached(sql => notesQuery(sql, 'ada'))
  })
  const response = await app.inject('/nameless')
  t.equal(response.statusCode, 500)
  t.equal(response.json().message, 'A cached query needs a name, which is part of its key')
})

t.test('Routes with the same arguments, and queries of one route, have entries of their own', async t => {
  const app = await start(t)
  app.get<Request>('/count', { config: { cache: 'public' } }, async ({ query }, reply) => {
    await reply.sendCached(countQuery, query.author)
  })
  app.post<Request>('/notes', { config: { cache: 'public' } }, async ({ query }, reply) => {
    await reply.sendCached(countQuery, query.author)
  })
  app.get<Request>('/either', { config: { cache: 'public' } }, async ({ query, headers }, reply) => {
    if (headers.count) await reply.sendCached(countQuery, query.author)
    else await reply.sendCached(notesQuery, query.author)
  })
  for (let time = 0; time < 2; time++) {
    t.strictSame((await app.inject('/notes?author=ada')).json(), { notes: [{ text: 'one' }] })
    t.strictSame((await app.inject('/count?author=ada')).json(), { count: 1 })
    t.strictSame((await app.inject({ method: 'POST', url: '/notes?author=ada' })).json(), { count: 1 })
    t.strictSame((await app.inject('/either?author=ada')).json(), { notes: [{ text: 'one' }] })
    t.strictSame((await app.inject({ url: '/either?author=ada', headers: { count: 'yes' } })).json(), { count: 1 })
  }
  t.match(app.cache.counts, { misses: 5, hits: 5 })
})

t.test('A private entry belongs to its owner', async t => {
  const app = await start(t)
  app.get('/mine', { config: { cache: 'private' } }, async (_request, reply) => {
    await reply.sendCached(notesQuery, 'ada')
  })
  const get = (user: string) => app.inject({ url: '/mine', headers: { user } })
  for (const user of ['ada', 'grace', 'ada']) {
    const { headers, statusCode } = await get(user)
    t.strictSame([statusCode, headers['cache-control'], headers.etag], [200, 'no-store', undefined])
  }
  t.match(app.cache.counts, { misses: 2, hits: 1 })
})

t.test('The handler responds if a query has no row', async t => {
  const app = await start(t)
  const oneQuery = (sql: Sql, text: string) => ({ fields: sql`SELECT text FROM notes WHERE text = ${text}` })
  app.get('/none', { config: { cache: 'public' } }, async (_request, reply) => {
    if (!await reply.sendCached(oneQuery, 'three')) return reply.code(404).send('None')
  })
  for (let time = 0; time < 2; time++) t.match(await app.inject('/none'), { statusCode: 404, body: 'None' })
  t.match(app.cache.counts, { misses: 1, hits: 1 })
})

t.test('The read of a list waits for its turn, which may be refused, while hits are served', async t => {
  const { queues, fill } = startQueues(0)
  const app = await start(t, { queues })
  t.equal((await app.inject('/notes?author=ada')).statusCode, 200)
  const end = fill()
  t.equal((await app.inject('/notes?author=ada')).statusCode, 200)
  t.match((await app.inject('/notes?author=grace')).json(), { message: 'There is no room' })
  end()
})

t.test('Requests that wait for the turn of a read share it', async t => {
  const { queues, fill } = startQueues()
  const app = await start(t, { queues })
  const end = fill()
  const early = app.inject('/notes?author=ada')
  while (queues.lists.waiting < 1) await sleep(5)
  await sql`INSERT INTO notes VALUES ('ada', 'two')`
  const { join } = queues.lists
  const joined = new Promise<void>(resolve => {
    t.intercept(queues.lists, 'join', {
      value (...args: Parameters<typeof join>) {
        resolve()
        return join.apply(queues.lists, args)
      },
    })
  })
  const late = app.inject('/notes?author=ada')
  await joined
  t.equal(queues.lists.waiting, 1)
  end()
  for (const response of [await early, await late]) {
    t.strictSame(response.json(), { notes: [{ text: 'one' }, { text: 'two' }] })
  }
  t.equal(app.cache.counts.misses, 1)
})

t.test('The size of a body is told while it is read, and at its end', async t => {
  const told: number[] = []
  const app = await start(t, {
    assertSize (bytes) {
      told.push(bytes)
      if (bytes > 20_000) throw new Error('The body is too large')
    },
  })
  await sql`INSERT INTO notes SELECT 'ada', repeat('x', 1000) FROM generate_series(1, 10)`
  const { body } = await app.inject('/notes?author=ada')
  const lengthOf = (items: object[]) => items.map(item => JSON.stringify(item)).join('').length
  const { notes } = JSON.parse(body)
  t.strictSame(told, [0, lengthOf(notes.slice(0, 6)), lengthOf(notes), body.length])
  await sql`INSERT INTO notes SELECT 'ada', repeat('x', 1000) FROM generate_series(1, 50)`
  t.match((await app.inject('/notes?author=ada')).json(), { message: 'The body is too large' })
  t.ok(told.at(-1)! < 30_000, 'it is not read to its end')
})

t.test('A read that no client waits for any more is abandoned', async t => {
  const errors: string[] = []
  const ended: string[] = []
  const { queues, fill } = startQueues()
  const app = await start(t, { queues })
  const end = fill()
  app.addHook('onError', async (_request, _reply, { message }) => { errors.push(message) })
  app.addHook('onSend', async ({ url }) => { ended.push(url) })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const accepted = once(app.server, 'connection')
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /notes?author=ada HTTP/1.1\r\nHost: a\r\n\r\n')
  const [connection] = await accepted
  while (queues.lists.waiting < 1) await sleep(5)
  const closed = once(connection, 'close')
  socket.destroy()
  await closed
  end()
  while (ended.length === 0) await sleep(5)
  t.strictSame([app.cache.counts.misses, app.cache.bytes(), errors], [0, 0, []])
  t.equal(ended.length, 1, 'its request has ended')
  t.equal((await app.inject('/notes?author=ada')).statusCode, 200)
})

t.test('A response that was sent before the body is ready stays', async t => {
  const app = await start(t)
  const slowQuery = (sql: Sql) => ({ fields: sql`SELECT 1 AS one FROM pg_sleep(0.2)` })
  const calls: Promise<boolean>[] = []
  app.get('/slow', { config: { cache: 'public' } }, async (_request, reply) => {
    reply.send('early')
    calls.push(reply.sendCached(slowQuery))
    await calls[0]
  })
  t.equal((await app.inject('/slow')).body, 'early')
  t.strictSame(await Promise.all(calls), [true])
})

t.test('The chunks of a body are sent in several turns of the event loop', async t => {
  const app = await start(t)
  await sql`INSERT INTO notes SELECT 'long', repeat('x', 5000000)`
  const { stream } = await app.inject({ url: '/notes?author=long', payloadAsStream: true })
  const seen: string[] = []
  const turns = (async () => {
    while (seen.filter(what => what === 'chunk').length < 5) {
      await setImmediate()
      seen.push('turn')
    }
  })()
  stream().on('data', () => seen.push('chunk'))
  await turns
  // The response holds the first one back until it is read.
  t.notMatch(seen.join(), 'chunk,chunk,chunk')
})

t.test('A body may have a different format than JSON', async t => {
  const app = await start(t)
  const textQuery = (sql: Sql, author: string): CachedQuery => ({
    ...notesQuery(sql, author),
    fields: sql`SELECT author FROM notes WHERE author = ${author} LIMIT 1`,
    format: {
      contentType: 'text/plain',
      * write ({ author }: { author: string }, notes: Iterable<{ text: string }>) {
        yield `${author}: `
        for (const { text } of notes) yield `${text}, `
        yield 'and no more'
      },
    },
  })
  app.get<Request>('/text', { config: { cache: 'public' } }, async ({ query }, reply) => {
    if (!await reply.sendCached(textQuery, query.author!)) return reply.callNotFound()
  })
  const { headers, body } = await app.inject('/text?author=ada')
  t.strictSame([headers['content-type'], body], ['text/plain', 'ada: one, and no more'])
  t.equal((await app.inject('/text?author=eve')).statusCode, 404)
})

t.test('Items that were written do not count any more, but the text does', async t => {
  const wait = turnClock(t)
  const told: number[] = []
  const app = await start(t, { assertSize (bytes) { told.push(bytes) } })
  await sql`INSERT INTO notes VALUES ('ada', 'two')`
  const textQuery = (sql: Sql, author: string): CachedQuery => ({
    ...notesQuery(sql, author),
    format: {
      contentType: 'text/plain',
      * write (_fields, notes: Iterable<{ text: string }>) {
        for (const { text } of notes) {
          // So long that other requests are served in between.
          wait(6)
          yield text
        }
      },
    },
  })
  app.get<Request>('/text', { config: { cache: 'public' } }, async ({ query }, reply) => {
    await reply.sendCached(textQuery, query.author!)
  })
  t.equal((await app.inject('/text?author=ada')).body, 'onetwo')
  const { length } = JSON.stringify({ text: 'one' })
  t.strictSame(told, [0, 2 * length, length + 3, 6, 6])
})

t.test('A read of the snapshot looks up the keys of its requests in the same statement', async t => {
  const lookUp = (sql: Sql, authors: string[]) => sql`(
    SELECT json_object_agg(author, text) FROM notes WHERE author = ANY (string_to_array(${authors.join()}, ','))
  )`
  const app = await start(t, { lookUp })
  app.get<Request>('/mine', { config: { cache: 'private' } }, async (request, reply) => {
    const { found } = await app.cache.readSnapshot(request, request.query.author!)
    reply.header('found', JSON.stringify(found))
    await reply.sendCached(notesQuery, request.query.author)
  })
  const get = async (author: string) => {
    const { headers, body } = await app.inject({ url: `/mine?author=${author}`, headers: { user: author } })
    return [headers.found, JSON.parse(body).notes.length]
  }
  t.strictSame(await get('eve'), ['null', 0])
  for (let time = 0; time < 2; time++) t.strictSame(await get('ada'), ['{"ada":"one"}', 1])
  t.strictSame(app.cache.counts, { hits: 1, misses: 2, validations: 3 }, 'one read of the snapshot a request')

  await sql`INSERT INTO notes VALUES ('eve', 'two')`
  const both = { ada: 'one', eve: 'two' }
  t.strictSame((await Promise.all([get('ada'), get('eve')])).map(([found]) => JSON.parse(String(found))),
    [both, both], 'requests that arrive together share the read')
  t.strictSame(await get('eve'), ['{"eve":"two"}', 1], 'and later ones do not look up their keys again')
})
