// The service with a standby that keeps up, lags, dies, and becomes a primary: every response is right, and none fails.
import { randomUUID } from 'node:crypto'
import { type AddressInfo, connect as netConnect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'

import { createLogger } from '#lib/http/logger.js'
import { migrate } from '#lib/database/migrations.js'
import { PostgresServer } from '../postgres-server.ts'
import { build, inject, person, type Person, untilBlocked } from '../helper.ts'

const TOKEN = 'a-token-of-the-tests'

const server = await PostgresServer.create(t)
await server.start()
const administration = postgres(server.url(), { max: 1 })
await administration`CREATE DATABASE community`
await administration.end()
await migrate(server.url('community'))
await server.stop('fast')
const standbys = [await server.standby(t), await server.standby(t)]
await Promise.all([server, ...standbys].map(server => server.start()))
const [standby, other] = standbys as [PostgresServer, PostgresServer]

function connect (url: string) {
  const sql = postgres(url, { max: 1, onnotice () {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

const onPrimary = connect(server.url('community'))
const onStandby = connect(standby.url('community'))
for (const sql of [onPrimary, onStandby]) {
  await sql`ALTER SYSTEM SET log_statement = 'all'`
  await sql`SELECT pg_reload_conf()`
}

/** A service that reads from the standby, and what it logs of it. */
async function start (t: Test, variables: NodeJS.Dict<string> = {}, of = standby) {
  const lines: string[] = []
  const logger = createLogger('info', { write: line => { if (/Replica/.test(line)) lines.push(JSON.parse(line).msg) } })
  const app = await build(t, {
    DATABASE_URL: server.url('community'),
    DATABASE_REPLICA_URL: of.url('community'),
    REPLICA_WAIT: '5000',
    METRICS_TOKEN: TOKEN,
    ...variables,
  }, logger)
  return { app, lines }
}

async function until (t: Test, app: FastifyInstance, count: number) {
  for (const end = Date.now() + 15_000; app.database.replicas!.available() !== count; await sleep(10)) {
    if (Date.now() > end) return t.fail(`${app.database.replicas!.available()} replicas are in use`)
  }
}

/** The lines that the server logged while this ran. */
async function logged (of: PostgresServer, run: () => Promise<unknown>) {
  const { length } = await of.log()
  await run()
  return (await of.log()).slice(length)
}

/** Writes in many ways. Throws when a later request does not see a write, or fails. */
async function writeAndRead (admin: Person) {
  const ask = async (path: string, status = 200) => {
    const response = await admin.inject('GET', path)
    if (response.statusCode !== status) throw new Error(`${path}: ${response.statusCode} ${response.body}`)
    return response.body
  }
  const send = async (method: 'POST' | 'PUT', path: string, body: object, status: number) => {
    const response = await admin.inject(method, path, body)
    if (response.statusCode !== status) throw new Error(`${path}: ${response.statusCode} ${response.body}`)
    return response.json()
  }
  const see = async (path: string, text: string) => {
    if (!(await ask(path)).includes(text)) throw new Error(`${path} does not show ${text}`)
  }
  const text = randomUUID()
  await send('POST', '/testimonials', { name: 'Ada', batchYear: 2020, content: text }, 201)
  await see('/testimonials', text)
  const { blog } = await send('POST', '/blogs', { title: text, content: 'Long enough to be one' }, 201)
  await see('/blogs/admin', text)
  await see(`/blogs/${blog.id}`, text)
  await send('PUT', `/blogs/${blog.id}`, { status: 'PUBLISHED' }, 200)
  await see('/blogs', text)
  await see('/feeds/blogs.atom', text)
  await send('PUT', `/users/${admin.id}`, { firstName: text }, 200)
  await see('/auth/me', text)
  await see('/users', text)
  await see('/exports/users.csv', text)
  await ask(`/events/${randomUUID()}/registrations`, 404)
  await ask(`/exports/events/${randomUUID()}/registrations.csv`, 404)
}

const IN_USE = /^Replica 127\.0\.0\.1:\d+\/community is in use$/

t.test('reads run on the standby, cached or not, and writes on the primary', async t => {
  const { app, lines } = await start(t)
  await until(t, app, 1)
  const admin = await person(app, 'ADMIN')
  let there = ''
  const here = await logged(server, async () => {
    there = await logged(standby, () => writeAndRead(admin))
  })
  const reads = [
    /FROM testimonials/, /FROM blogs JOIN users/, /SELECT profile AS user/, /row_number\(\) OVER/,
    /SELECT FROM events WHERE id/, /AS allowed FROM events/, /concat|FROM users LEFT JOIN clubs/,
  ]
  for (const read of reads) t.match(there, read)
  t.notMatch(here, /row_number\(\) OVER|SELECT profile AS user|SELECT FROM events WHERE id|AS allowed FROM events/)
  t.match(here, /INSERT INTO testimonials/)
  t.match(here, /pg_current_wal_flush_lsn/)
  t.notMatch(there, /INSERT|UPDATE|DELETE/)
  t.match(lines, [IN_USE])
  t.equal(app.database.replicas!.counts.fallbacks, 0)

  const { body } = await inject(app, 'GET', '/metrics', undefined, { authorization: `Bearer ${TOKEN}` })
  t.match(body, `\ndatabase_replica_reads_total ${app.database.replicas!.counts.reads}\n`)
  t.match(body, '\ndatabase_replica_fallbacks_total 0\n')
  t.match(body, '\ndatabase_replicas_available 1\n')

  await inject(app, 'GET', '/testimonials')
  const before = app.database.replicas!.counts.reads
  await inject(app, 'GET', '/testimonials')
  t.equal(app.database.replicas!.counts.reads, before, 'and what is cached is sent from memory')
})

t.test('without DATABASE_REPLICA_URL all is as before', async t => {
  const app = await build(t, { DATABASE_URL: server.url('community'), METRICS_TOKEN: TOKEN })
  const admin = await person(app, 'ADMIN')
  t.equal(app.database.replicas, undefined)
  const here = await logged(server, () => writeAndRead(admin))
  t.notMatch(here, /pg_current_wal_flush_lsn/)
  const { body } = await inject(app, 'GET', '/metrics', undefined, { authorization: `Bearer ${TOKEN}` })
  t.notMatch(body, 'database_replica')
})

t.test('a standby that does not keep up fails no request', async t => {
  const { app, lines } = await start(t, { REPLICA_WAIT: '500' })
  await until(t, app, 1)
  const admin = await person(app, 'ADMIN')
  const leftOut = (reason: RegExp) => new RegExp(`^Replica \\S+ is left out: ${reason.source}$`)

  await t.test('its replay paused', async t => {
    lines.length = 0
    await onStandby`SELECT pg_wal_replay_pause()`
    for (let times = 0; times < 3; times++) await writeAndRead(admin)
    await onStandby`SELECT pg_wal_replay_resume()`
    await until(t, app, 1)
    t.match(lines[0], leftOut(/it lags by more than 500 ms/))
    t.match(lines.at(-1), IN_USE)
    await writeAndRead(admin)
  })

  await t.test('its replay delayed by two seconds', async () => {
    await onStandby`ALTER SYSTEM SET recovery_min_apply_delay = '2s'`
    await onStandby`SELECT pg_reload_conf()`
    for (let times = 0; times < 3; times++) await writeAndRead(admin)
    await onStandby`ALTER SYSTEM RESET recovery_min_apply_delay`
    await onStandby`SELECT pg_reload_conf()`
  })

  await t.test('it is killed', async t => {
    await until(t, app, 1)
    lines.length = 0
    await standby.signal('SIGKILL')
    for (let times = 0; times < 3; times++) await writeAndRead(admin)
    t.equal((await inject(app, 'GET', '/readyz')).statusCode, 200)
    t.match(lines[0], leftOut(/.+/))
    t.equal(app.database.replicas!.available(), 0)
    const late = await start(t)
    t.equal((await inject(late.app, 'GET', '/readyz')).statusCode, 200, 'nor is a start in need of it')
    await writeAndRead(await person(late.app, 'ADMIN'))
    while (!await standby.start().then(() => true, () => false));
    await until(t, app, 1)
    await until(t, late.app, 1)
  })
})

t.test('a client that hangs up takes no standby out of use', async t => {
  const { app, lines } = await start(t)
  await until(t, app, 1)
  await onPrimary`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, repeat('x', 2000) FROM generate_series(1, 100)
  `
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  await onPrimary.begin(async sql => {
    await sql`LOCK TABLE testimonials`
    const isLocked = () => onStandby`SELECT FROM pg_locks WHERE relation = 'testimonials'::regclass AND granted`
    while ((await isLocked()).length === 0) await sleep(10)
    const socket = netConnect(port, '127.0.0.1')
    socket.write('GET /testimonials?limit=100 HTTP/1.1\r\nHost: a\r\n\r\n')
    await untilBlocked(onStandby)
    socket.destroy()
    await sleep(100)
  })
  for (let polls = 0; app.cache.counts.misses === 0 && polls < 100; polls++) await sleep(50)
  t.equal((await inject(app, 'GET', '/testimonials')).statusCode, 200)
  t.match(lines.join('\n'), IN_USE)
})

t.test('a standby that is promoted, while its primary goes on, is no longer asked', async t => {
  const { app, lines } = await start(t, {}, other)
  await until(t, app, 1)
  const admin = await person(app, 'ADMIN')
  await writeAndRead(admin)
  await other.promote()
  await connect(other.url('community'))`
    INSERT INTO testimonials (name, batch_year, content) VALUES ('Eve', 2020, 'of another history')
  `
  for (let times = 0; times < 3; times++) await writeAndRead(admin)
  t.notMatch((await inject(app, 'GET', '/testimonials')).body, 'of another history')
  t.match(lines, [IN_USE, /is left out: it is no standby$/])
})

t.test('a commit that waits for its standby may be seen early, and is seen by all when it is acknowledged', async t => {
  const { app } = await start(t)
  await until(t, app, 1)
  await onPrimary`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`
  await onPrimary`SELECT pg_reload_conf()`
  const count = async () => (await inject(app, 'GET', '/testimonials')).json().total
  const before = await count()
  const writer = connect(server.url('community'))
  const commit = writer`
    INSERT INTO testimonials (name, batch_year, content) VALUES ('Ada', 2020, 'early') RETURNING id
  `.execute()
  const isEarly = async () => (await onStandby`SELECT FROM testimonials WHERE content = 'early'`).length > 0
  while (!await isEarly()) await sleep(5)
  t.equal((await onPrimary`SELECT FROM testimonials WHERE content = 'early'`).length, 0, 'nobody has heard of it')
  // Still cached, or read on the standby, which alone shows the commit.
  t.ok([before, before + 1].includes(await count()))
  const list = async () => (await inject(app, 'GET', '/testimonials?limit=50')).body
  t.match(await list(), 'early', 'read there for the first time')
  await onPrimary`ALTER SYSTEM RESET synchronous_standby_names`
  await onPrimary`SELECT pg_reload_conf()`
  await commit
  t.equal(await count(), before + 1)
  t.match(await list(), 'early')
})
