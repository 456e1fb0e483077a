import { EventEmitter, once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyReply } from 'fastify'
import postgres from 'postgres'

import { buildApp } from '#lib/app.js'
import type { Sql } from '#lib/database/client.js'
import { createLogger } from '#lib/http/logger.js'
import { makeProxy } from '../postgres-server.ts'
import { build as buildService, createDatabase, inject, person, testConfig } from '../helper.ts'
import t, { type Test } from '../suite.ts'

/** Builds the service. Responses are not recorded: they include a 503 that some routes do not declare. */
async function build (t: Test, MAX_REQUESTS: string) {
  const app = buildApp(testConfig({ DATABASE_URL: await createDatabase(t), MAX_REQUESTS }))
  t.teardown(() => app.close())
  await app.ready()
  return app
}

t.test('Past MAX_REQUESTS operations return 503 at once, and probes go on', async t => {
  const app = await build(t, '3')
  const { token } = await person(app)
  const headers = { authorization: `Bearer ${token}` }
  const like = () => inject(app, 'POST', '/mentors/no-such-mentor/like', undefined, headers)

  // Makes every like wait.
  const lock = new EventEmitter()
  const locked = app.sql.begin(async sql => {
    await sql`LOCK TABLE mentor_likes`
    lock.emit('taken')
    await once(lock, 'release')
  })
  await once(lock, 'taken')
  const waiting = Array.from({ length: 5 }, like)
  const refused = await Promise.race(waiting)
  t.strictSame(
    [refused.statusCode, refused.headers['retry-after'], refused.json()],
    [503, '2', { message: 'The service has too much to do at this moment, please try again in a few seconds' }]
  )
  t.equal((await inject(app, 'GET', '/events')).statusCode, 503)
  const mentors = await inject(app, 'GET', '/mentors')
  t.strictSame([mentors.statusCode, mentors.json(), mentors.headers['retry-after'], mentors.headers['cache-control']],
    [200, { mentors: [] }, undefined, 'no-store'])
  t.equal((await inject(app, 'GET', '/livez')).statusCode, 200)
  t.equal((await inject(app, 'GET', '/readyz')).statusCode, 200)
  t.equal((await inject(app, 'GET', '/auth/me')).statusCode, 401, 'requests are counted after authentication')

  lock.emit('release')
  await locked
  const statuses = (await Promise.all(waiting)).map(({ statusCode }) => statusCode)
  t.strictSame(statuses.sort(), [404, 404, 404, 503, 503])
  t.equal((await inject(app, 'GET', '/events')).statusCode, 200, 'recovered')
})

t.test('Past MAX_REQUESTS the network that has the most operations gives one up to another', async t => {
  const app = await build(t, '3')
  const { token } = await person(app)
  const likeFrom = async (remoteAddress: string) => {
    const response = await app.inject({
      method: 'POST', url: '/mentors/no-such-mentor/like', headers: { authorization: `Bearer ${token}` }, remoteAddress,
    })
    return response.statusCode
  }
  const lock = new EventEmitter()
  const locked = app.sql.begin(async sql => {
    await sql`LOCK TABLE mentor_likes`
    lock.emit('taken')
    await once(lock, 'release')
  })
  await once(lock, 'taken')
  const refused: number[] = []
  const most = Array.from({ length: 4 }, async () => {
    const status = await likeFrom('192.0.2.1')
    refused.push(status)
    return status
  })
  while (refused.length < 1) await sleep(5)
  const other = likeFrom('192.0.2.2')
  while (refused.length < 2) await sleep(5)
  t.equal(await likeFrom('192.0.2.2'), 503, 'networks have their shares')
  lock.emit('release')
  await locked
  t.strictSame([...(await Promise.all(most)).sort(), await other], [404, 404, 503, 503, 404])
})

t.test('An operation counts until its response, whatever that is', async t => {
  const app = await build(t, '1')
  const admin = await person(app, 'ADMIN')
  for (let time = 0; time < 3; time++) {
    t.equal((await admin.inject('PUT', '/blogs/no-such-blog', {})).statusCode, 500)
    t.equal((await admin.inject('PUT', '/blogs/no-such-blog', { title: 1 })).statusCode, 400)
    t.equal((await admin.inject('GET', '/clubs')).statusCode, 200)
  }
})

/** Builds the service on a database whose results can be held back. */
async function slow (t: Test) {
  const address = new URL(await createDatabase(t))
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const DATABASE_URL = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const app = await buildService(t, { DATABASE_URL, DATABASE_TIMEOUT: '1' })
  const sql = postgres(address.href, { max: 1 })
  t.teardown(() => sql.end())
  return { app, proxy, sql }
}

t.test('DATABASE_TIMEOUT covers all statements of an operation', async t => {
  const app = buildApp(testConfig({ DATABASE_URL: await createDatabase(t), DATABASE_TIMEOUT: '1' }))
  t.teardown(() => app.close())
  const slow = (sql: Sql) => ({ fields: sql`SELECT 1 AS one FROM pg_sleep(0.7)` })
  const config = { failure: 'It took too long', cache: 'public' } as const
  app.register(async app => {
    app.get('/statements', { config }, async () => {
      for (let statement = 0; statement < 3; statement++) await app.sql`SELECT pg_sleep(0.7)`
      return {}
    })
    app.get('/cached', { config }, async (_request, reply) => {
      await app.sql`SELECT pg_sleep(0.7)`
      await reply.cached(slow)
    })
    app.get('/longer', { config: { ...config, extraTime: 2 } }, async () => {
      for (let statement = 0; statement < 2; statement++) await app.sql`SELECT pg_sleep(0.7)`
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

t.test('What a handler does after its timeout is not logged', async t => {
  const lines: string[] = []
  const logger = createLogger('info', { write (line) { lines.push(JSON.parse(line).msg) } })
  const app = buildApp(testConfig({ DATABASE_URL: await createDatabase(t), DATABASE_TIMEOUT: '1' }), logger)
  t.teardown(() => app.close())
  const ended: string[] = []
  for (const [path, end] of Object.entries<(reply: FastifyReply) => unknown>({
    '/returns': () => ({}),
    '/sends': reply => reply.send({}),
    '/throws' () { throw new Error('too late') },
  })) {
    app.get(path, { config: { failure: 'It took too long' } }, async (_request, reply) => {
      await sleep(1500)
      ended.push(path)
      return end(reply)
    })
  }
  await app.ready()
  lines.length = 0
  const responses = await Promise.all(['/returns', '/sends', '/throws'].map(path => app.inject(path)))
  for (const response of responses) t.strictSame(response.json(), { message: 'It took too long' })
  while (ended.length < 3) await sleep(10)
  await sleep(50)
  t.strictSame(lines.sort(), [...Array(3).fill('Unexpected error'), ...Array(3).fill('request completed')])
})

t.test('It also covers the wait for a shared snapshot', async t => {
  const { app, proxy } = await slow(t)
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
  release()
})
