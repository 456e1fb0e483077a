import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter, once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import argon2 from 'argon2'
import type { FastifyReply } from 'fastify'
import postgres from 'postgres'

import type { Sql } from '#lib/database/pools.js'
import type { Client } from '#lib/http/fair-queue.js'
import { createLogger } from '#lib/http/logger.js'
import { clientIn, fillQueue } from '../clients.ts'
import { stopClock, turnClock } from '../clock.ts'
import { makeProxy } from '../postgres-server.ts'
import {
  build as buildService, buildWithRoutes, createDatabase, inject, MAIL, make, nameOf, person,
} from '../helper.ts'
import { createWorld, OPERATIONS, pathWith, roleFor } from '../operations.ts'
import t, { type Test } from '../suite.ts'

/** The operations that run at once on a pool of one connection. */
const RUNNING = 8

const DATABASE_URL = await createDatabase()
const app = await buildService(t, { DATABASE_URL })

/** Builds the service with three places to wait, and a lock that makes every like, and every other statement, wait. */
async function locked (t: Test) {
  // Responses are not recorded: they include a 503 that some routes do not declare.
  const { app } = await make(t, { DATABASE_URL, DATABASE_POOL_SIZE: '1', MAX_REQUESTS: '3' })
  await app.ready()
  await app.sql`TRUNCATE mentors CASCADE`
  const { token } = await person(app)
  const headers = { authorization: `Bearer ${token}` }
  const sql = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => sql.end())
  const lock = new EventEmitter()
  const ended = sql.begin(async sql => {
    await sql`LOCK TABLE mentor_likes`
    lock.emit('taken')
    await once(lock, 'release')
  })
  await once(lock, 'taken')
  return {
    app,
    like: (remoteAddress = '127.0.0.1') =>
      app.inject({ method: 'POST', url: '/mentors/no-such-mentor/like', headers, remoteAddress }),
    async release () {
      lock.emit('release')
      await ended
    },
  }
}

t.test('When MAX_REQUESTS operations wait, others return 503, and probes do not', async t => {
  const { app, like, release } = await locked(t)
  const likes = Array.from({ length: RUNNING + 5 }, () => like())
  const refused = await Promise.race(likes)
  t.strictSame(
    [refused.statusCode, refused.headers['retry-after'], refused.json()],
    [503, '2', { message: 'The service is overloaded, please try again in a few seconds' }]
  )
  for (const path of ['/livez', '/readyz']) t.equal((await inject(app, 'GET', path)).statusCode, 200, path)
  t.equal((await inject(app, 'GET', '/auth/me')).statusCode, 401, 'requests wait after authentication')

  // One is read, and three wait.
  const lists = ['1', '2', '3', '4'].map(limit => inject(app, 'GET', `/testimonials?limit=${limit}`))
  while (app.queues.lists.waiting < 3) await sleep(5)
  t.equal((await inject(app, 'GET', '/testimonials?limit=5')).statusCode, 503)
  const mentors = await inject(app, 'GET', '/mentors')
  t.strictSame([mentors.statusCode, mentors.json(), mentors.headers['retry-after'], mentors.headers['cache-control']],
    [200, { mentors: [] }, undefined, 'no-store'])

  await release()
  const statuses = (await Promise.all(likes)).map(({ statusCode }) => statusCode)
  t.strictSame(statuses.sort(), [...Array(RUNNING + 3).fill(404), 503, 503])
  for (const { statusCode } of await Promise.all(lists)) t.equal(statusCode, 200)
  t.equal((await inject(app, 'GET', '/testimonials?limit=5')).statusCode, 200, 'recovered')
})

t.test('When MAX_REQUESTS operations wait, the network with the most gives up one', async t => {
  const { like, release } = await locked(t)
  const refused: string[] = []
  const likeFrom = async (address: string) => {
    const { statusCode } = await like(address)
    if (statusCode === 503) refused.push(address)
    return statusCode
  }
  const most = Array.from({ length: RUNNING + 4 }, () => likeFrom('192.0.2.1'))
  while (refused.length < 1) await sleep(5)
  const other = likeFrom('192.0.2.2')
  while (refused.length < 2) await sleep(5)
  t.equal(await likeFrom('192.0.2.2'), 503, 'networks have their shares')
  t.strictSame(refused, ['192.0.2.1', '192.0.2.1', '192.0.2.2'])
  await release()
  t.strictSame([...(await Promise.all(most)).sort(), await other], [...Array(RUNNING + 2).fill(404), 503, 503, 404])
})

t.test('No operation holds a place while it waits for a different queue, and transactions are declared', async t => {
  const { app, routes } = await buildWithRoutes(t, { ...MAIL, DATABASE_URL, DATABASE_TIMEOUT: '60' })
  const { queues: { lists, operations } } = app
  const world = await createWorld(app)
  const waited: string[] = []
  const hashed = new Set<string>()
  let now = ''
  /** The operation of a statement. Senders of emails have none. */
  const caller = new AsyncLocalStorage<string>()
  const transactions = new Set<string | undefined>()
  const { begin } = app.sql
  t.intercept(app.sql, 'begin', {
    value (...args: Parameters<typeof begin>) {
      const name = caller.getStore()
      if (name) t.ok(operations.running >= RUNNING, `${name} holds a connection in a transaction`)
      transactions.add(name)
      return begin(...args)
    },
  })
  for (const name of ['hash', 'verify'] as const) {
    const work = argon2[name] as (...rest: unknown[]) => Promise<never>
    t.capture(argon2, name, (...rest: unknown[]) => {
      if (now) t.equal(operations.running, 0, `${now} waits for a password`)
      hashed.add(now)
      return work(...rest)
    })
  }
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const [method, path] = name.split(' ') as ['GET', string]
    const role = roleFor(operation)
    const { id = '', body } = await operation.given?.(world) ?? {}
    const payload = operation.body instanceof Buffer ? operation.body : { ...operation.body, ...body }
    // A new password revokes the token.
    await app.sql`DELETE FROM revoked_tokens`
    const release = fillQueue(app.queues.lists)
    const { waiting } = lists
    now = name
    const response = caller.run(name, async () => app.inject({
      method,
      url: pathWith(path, id),
      headers: {
        'idempotency-key': name,
        ...role && { authorization: `Bearer ${world.people[role].token}` },
        ...method !== 'GET' && { 'content-type': operation.type ?? 'application/json' },
      },
      ...method !== 'GET' && { payload },
    }))
    const isWaiting = (async () => {
      for (; lists.waiting === waiting; await sleep(1)) if (now !== name) return false
      return true
    })()
    if (await Promise.race([isWaiting, response.then(() => false)])) {
      waited.push(name)
      t.equal(operations.running, 0, `${name} waits for a list`)
    }
    now = ''
    release()
    await response
  }
  for (const name of ['GET /events', 'GET /pictures/:id', 'GET /exports/users.csv', 'GET /me/export']) {
    t.ok(waited.includes(name), name)
  }
  for (const name of ['POST /auth/login', 'POST /auth/register', 'PUT /me/password']) t.ok(hashed.has(name), name)
  for (const name of ['DELETE /me', 'POST /account/password/reset', 'POST /me/pictures']) {
    t.ok(transactions.has(name), name)
  }
  for (const route of routes) {
    const { transaction = false, extraSeconds } = route.config ?? {}
    // Their handlers admit their transactions by themselves.
    if (extraSeconds) continue
    t.equal(Boolean(transaction), transactions.has(nameOf(route)), `${nameOf(route)} runs a transaction`)
  }
})

t.test('While 81 pictures wait for lists, operations of others run', async t => {
  const { token } = await person(app)
  const release = fillQueue(app.queues.lists)
  const pictures = Array.from({ length: 81 }, () => inject(app, 'GET', '/pictures/unknown'))
  while (app.queues.lists.waiting < 82) await sleep(5)
  const like = await app.inject({
    method: 'POST',
    url: '/mentors/no-such-mentor/like',
    headers: { authorization: `Bearer ${token}` },
    remoteAddress: '192.0.2.1',
  })
  t.equal(like.statusCode, 404)
  release()
  for (const { statusCode } of await Promise.all(pictures)) t.equal(statusCode, 404)
})

t.test('1,500 networks that wait for a list are one entry of the queue', async t => {
  const release = fillQueue(app.queues.lists)
  const { misses } = app.cache.counts
  const { join } = app.queues.lists
  const joined: Client[] = []
  t.intercept(app.queues.lists, 'join', {
    value (...args: Parameters<typeof join>) {
      joined.push(...args[0])
      return join.apply(app.queues.lists, args)
    },
  })
  const responses = Array.from({ length: 1500 }, (_, n) =>
    app.inject({ url: '/events', remoteAddress: `10.0.${n >> 8}.${n & 255}` }))
  while (joined.length < 1500) await sleep(5)
  t.equal(app.queues.lists.waiting, 2)
  release()
  const statuses = new Set((await Promise.all(responses)).map(({ statusCode }) => statusCode))
  t.strictSame([...statuses], [200])
  t.ok(app.cache.counts.misses - misses < 5, `${app.cache.counts.misses - misses} reads`)
})

t.test('An operation whose client has gone while it waits never begins, and its body is not kept', async t => {
  const { app } = await make(t, { DATABASE_URL, DATABASE_POOL_SIZE: '1' })
  const end = new EventEmitter().setMaxListeners(20)
  let begun = 0
  app.register(async app => {
    app.get('/waits', { config: { failure: 'It took too long' } }, async () => {
      begun++
      await once(end, 'end')
      return {}
    })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const running = Array.from({ length: RUNNING }, () => app.inject('/waits'))
  const { operations } = app.queues
  while (operations.running < RUNNING) await sleep(5)
  const { port } = app.server.address() as AddressInfo
  const gone = connect(port, '127.0.0.1', () => gone.write('GET /waits HTTP/1.1\r\nHost: a\r\n\r\n'))
  while (operations.waiting === 0) await sleep(5)
  gone.destroy()
  // Dropped before a place is free.
  while (operations.waiting > 0) await sleep(5)
  end.emit('end')
  await Promise.all(running)
  t.equal(begun, RUNNING)
})

/** Returns a function that lets time pass until the work is done. */
function passUntil (t: Test) {
  const pass = stopClock(t)
  return async <T>(work: Promise<T>) => {
    while (await Promise.race([work.then(() => false), nextTurn(true)])) pass(1000)
    return work
  }
}

t.test('An operation that has timed out keeps its place until its handler has ended', async t => {
  const { app } = await make(t, { DATABASE_URL, DATABASE_POOL_SIZE: '1', DATABASE_TIMEOUT: '1' })
  const end = new EventEmitter().setMaxListeners(20)
  let begun = 0
  app.register(async app => {
    app.get('/waits', { config: { failure: 'It took too long' } }, async () => {
      if (begun++ < RUNNING) await once(end, 'end')
      return {}
    })
  })
  await app.ready()
  const untilTimeout = passUntil(t)
  const statuses = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, () => app.inject('/waits')))).map(({ statusCode }) => statusCode)
  t.strictSame(await untilTimeout(statuses(RUNNING + 2)), Array(RUNNING + 2).fill(500))
  t.strictSame(await untilTimeout(statuses(2)), [500, 500])
  t.equal(begun, RUNNING, 'what is in an outage does not pile up')
  end.emit('end')
  while (app.queues.operations.running > 0) await sleep(5)
  t.strictSame(await statuses(2), [200, 200])
})

/** Builds the service on a database whose results can be held back. */
async function slow (t: Test) {
  const address = new URL(DATABASE_URL)
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const proxied = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const app = await buildService(t, { DATABASE_URL: proxied, DATABASE_TIMEOUT: '1' })
  const sql = postgres(address.href, { max: 1 })
  t.teardown(() => sql.end())
  return { app, proxy, sql }
}

// Takes real time, because the statements of PostgreSQL do.
t.test('DATABASE_TIMEOUT covers all statements of an operation', async t => {
  const { app } = await make(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' })
  const slow = (sql: Sql) => ({ fields: sql`SELECT 1 AS one FROM pg_sleep(0.6)` })
  const config = { failure: 'It took too long', cache: 'public' } as const
  app.register(async app => {
    app.get('/statements', { config }, async () => {
      for (let statement = 0; statement < 3; statement++) await app.sql`SELECT pg_sleep(0.6)`
      return {}
    })
    app.get('/cached', { config }, async (_request, reply) => {
      await app.sql`SELECT pg_sleep(0.6)`
      await reply.sendCached(slow)
    })
    app.get('/longer', { config: { ...config, extraSeconds: 5, waitSeconds: 5 } }, async () => {
      for (let statement = 0; statement < 2; statement++) await app.sql`SELECT pg_sleep(0.6)`
      return {}
    })
  })
  await app.ready()
  const start = performance.now()
  const [longer, ...late] = await Promise.all(['/longer', '/statements', '/cached'].map(async path => {
    const { statusCode, body } = await app.inject(path)
    return { statusCode, body: JSON.parse(body), seconds: (performance.now() - start) / 1000 }
  }))
  t.equal(longer!.statusCode, 200)
  for (const { statusCode, body, seconds } of late) {
    t.strictSame([statusCode, body], [500, { message: 'It took too long' }])
    t.ok(seconds < longer!.seconds, 'before two statements are done')
  }
})

t.test('After a timeout, no second response is sent, even if the client still sends a body', async t => {
  const { app } = await make(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' })
  const end = new EventEmitter()
  const ended: string[] = []
  const late = (sql: Sql) => ({ fields: sql`SELECT 'late' AS late` })
  const handlers: Record<string, (reply: FastifyReply) => Promise<void>> = {
    async '/cached' (reply) { await reply.sendCached(late) },
    async '/stream' (reply) { reply.send(Readable.from(['late'])) },
    async '/redirect' (reply) { reply.redirect('/late') },
  }
  app.register(async app => {
    for (const [path, handler] of Object.entries(handlers)) {
      app.get(path, { config: { failure: 'It took too long', cache: 'public' } }, async (_request, reply) => {
        await once(end, 'end')
        await handler(reply)
        ended.push(path)
      })
    }
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  const untilTimeout = passUntil(t)
  for (const path of Object.keys(handlers)) {
    let received = ''
    const socket = connect(port, '127.0.0.1').on('data', data => { received += data })
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n`)
    await untilTimeout(once(socket, 'data'))
    while (!received.includes('It took too long')) await sleep(10)
    const { misses } = app.cache.counts
    end.emit('end')
    while (!ended.includes(path) && app.cache.counts.misses === misses) await sleep(5)
    t.equal(app.cache.counts.misses, misses)
    socket.write('xGET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    await once(socket, 'close')
    t.strictSame(received.match(/HTTP\/1.1 ...|\{.*?\}|late/g), [
      'HTTP/1.1 500', '{"message":"It took too long"}', 'HTTP/1.1 200', '{"message":"Alive"}',
    ], path)
  }
})

t.test('If a handler sends a response after its timeout, the log does not contain the query', async t => {
  let log = ''
  const logger = createLogger('info', { write (line) { log += line } })
  const { app } = await make(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' }, logger)
  const end = new EventEmitter()
  app.register(async app => {
    app.get('/redirect', { config: { failure: 'It took too long' } }, async (_request, reply) => {
      await once(end, 'end')
      return reply.redirect('/late')
    })
  })
  await app.ready()
  const { statusCode } = await passUntil(t)(app.inject('/redirect?code=secret'))
  t.equal(statusCode, 500)
  end.emit('end')
  while (!log.includes('Reply was already sent')) await sleep(10)
  t.match(log, '"path":"/redirect"')
  t.notMatch(log, 'secret')
})

t.test('A response that began before the timeout is completed', async t => {
  const { app } = await make(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' })
  const body = new PassThrough()
  app.register(async app => {
    app.get('/long', { config: { failure: 'It took too long' } }, async (_request, reply) => {
      await reply.send(body)
    })
  })
  await app.ready()
  const pass = stopClock(t)
  const begun = app.inject({ url: '/long', payloadAsStream: true })
  body.write('begin, ')
  const received = text((await begun).stream())
  pass(1000)
  await nextTurn()
  body.end('end')
  t.equal(await received, 'begin, end')
})

t.test('An error after a timeout is logged, also at warn', async t => {
  const lines: { msg: string, err?: { message: string } }[] = []
  const logger = createLogger('warn', { write (line) { lines.push(JSON.parse(line)) } })
  const { app } = await make(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' }, logger)
  const end = new EventEmitter()
  app.register(async app => {
    app.get('/throws', { config: { failure: 'It took too long' } }, async () => {
      await once(end, 'end')
      throw new Error('too late')
    })
  })
  await app.ready()
  const response = await passUntil(t)(app.inject('/throws'))
  t.strictSame(response.json(), { message: 'It took too long' })
  end.emit('end')
  while (lines.length < 2) await sleep(10)
  t.match(lines.map(({ err }) => err), [{ message: 'no response within 1 s' }, { message: 'too late' }])
})

t.test('It also covers the wait for a shared snapshot', async t => {
  const { app, proxy, sql } = await slow(t)
  await app.listen({ port: 0 })
  const { port } = app.server.address() as AddressInfo
  const get = async () => {
    const start = performance.now()
    const [response] = await once(request({ port, path: '/clubs' }).end(), 'response')
    response.resume()
    return { status: response.statusCode, seconds: (performance.now() - start) / 1000 }
  }
  t.equal((await get()).status, 200)
  const { arrived, release } = proxy.hold()
  const early = get()
  await arrived
  const [late, { status, seconds }] = await Promise.all([get(), early])
  t.strictSame([late.status, status], [500, 500])
  // One after the other they would take a timeout each.
  t.ok(late.seconds < seconds + 0.7, `${late.seconds} and ${seconds} s`)

  const { validations } = app.cache.counts
  const { token } = await person(Object.assign(Object.create(app), { sql }))
  for (const path of ['/clubs', '/testimonials?page=2', '/auth/me']) {
    const start = performance.now()
    t.equal((await inject(app, 'GET', path, undefined, { authorization: `Bearer ${token}` })).statusCode, 500, path)
    t.ok(performance.now() - start < 900, 'at once, since the database is known not to answer')
  }
  t.equal(app.cache.counts.validations, validations)
  release()
  // What was held is still on its way, and a connection that was silent is made again.
  while ((await get()).status !== 200) await sleep(20)
})

t.test('A place that was reserved for another network is used when its second is over', async t => {
  const { lists } = app.queues
  const wait = turnClock(t)
  const ends: (() => void)[] = []
  const run = (network: string) => lists.run(clientIn(network), () => new Promise<void>(resolve => ends.push(resolve)))
  const rival = run('192.0.2.1')
  ends.shift()!()
  await rival
  const reads = ['192.0.2.2', '192.0.2.2', '192.0.2.2'].map(run)
  t.strictSame([lists.running, lists.waiting], [2, 1])
  wait(1000)
  while (lists.waiting > 0) await sleep(20)
  t.equal(lists.running, 3)
  for (const end of ends) end()
  await Promise.all(reads)
})

t.test('While bodies announce too much, a long body returns 503, unless another network announces more', async t => {
  const app = await buildService(t, { DATABASE_URL, MAX_HELD_BYTES: '1048576' })
  const { token } = await person(app)
  const submit = (length: number) => app.inject({
    method: 'POST',
    url: '/blogs/submit',
    headers: { authorization: `Bearer ${token}` },
    payload: { title: 'Chess', content: 'x'.repeat(length) },
  })
  const url = await app.listen()
  const other = request(`${url}/blogs/submit`, {
    method: 'POST',
    localAddress: '127.0.0.2',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'content-length': 700_000 },
  }).on('error', () => {})
  t.teardown(() => other.destroy())
  other.flushHeaders()
  await once(app.server, 'request')
  t.equal((await submit(100_000)).statusCode, 201)
  const refused = await submit(800_000)
  t.strictSame([refused.statusCode, refused.headers['retry-after'], refused.json()], [
    503, '2', { message: 'The service is overloaded, please try again in a few seconds' },
  ])
  t.equal((await submit(10_000)).statusCode, 201)
})

t.test('A body that was refused counts no longer, even if its client sends none of it', async t => {
  const app = await buildService(t, { DATABASE_URL, MAX_HELD_BYTES: '1048576' })
  const { token } = await person(app)
  const url = await app.listen()
  for (const localAddress of ['127.0.0.2', '127.0.0.3']) {
    const refused = request(`${url}/blogs/submit`, {
      method: 'POST', localAddress, headers: { 'content-type': 'application/json', 'content-length': 700_000 },
    }).on('error', () => {})
    t.teardown(() => refused.destroy())
    refused.flushHeaders()
    const [response] = await once(refused, 'response')
    t.equal(response.statusCode, 401)
  }
  const { statusCode } = await app.inject({
    method: 'POST',
    url: '/blogs/submit',
    headers: { authorization: `Bearer ${token}` },
    payload: { title: 'Chess', content: 'x'.repeat(700_000) },
  })
  t.equal(statusCode, 201)
})
