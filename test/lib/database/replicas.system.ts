// Standbys that keep up, lag, fall silent, die, and become primaries.
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { connect, type Sql } from '#lib/database/client.js'
import { createReplicas, type WalPosition, walPosition } from '#lib/database/replicas.js'
import { makeProxy, PostgresServer } from '../../postgres-server.ts'
import { testConfig } from '../../helper.ts'
import { freePort } from '../../process.ts'

const BACKOFF = { shortest: 50, longest: 5000 }

const primary = await PostgresServer.create(t)
await primary.start()
const sql = open(t, primary.url())
await sql`CREATE TABLE notes (id int)`

function open (t: Pick<Test, 'teardown'>, url: string) {
  const sql = postgres(url, { max: 3, fetch_types: false, onnotice () {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

/** Standbys of the primary that run, each with a connection to it. */
async function startStandbys (t: Test, count: number, of = primary) {
  const ofPrimary = open(t, of.url())
  // A checkpoint: a copy of the data of a server that was stopped is a standby at the same place.
  await of.stop('fast')
  const standbys = await Promise.all(Array.from({ length: count }, () => of.standby(t)))
  await Promise.all([of, ...standbys].map(server => server.start()))
  // The connections that are kept find out that they are lost.
  for (const sql of [ofPrimary, sqlOfTest()]) while (!await sql`SELECT`.then(() => true, () => false));
  const streaming = () => ofPrimary`SELECT FROM pg_stat_replication WHERE state = 'streaming'`
  while ((await streaming()).length < count) await sleep(20)
  return Promise.all(standbys.map(async server => ({ server, sql: open(t, server.url()) })))
}

function sqlOfTest () {
  return sql
}

/** The replicas at these ports, for a service whose primary this is, and what it logs of them. */
async function use (
  t: Test, ports: number[], variables: NodeJS.Dict<string> = {}, { database = 'postgres', backoff = BACKOFF } = {}
) {
  const config = testConfig({
    DATABASE_URL: primary.url(), DATABASE_POOL_SIZE: '4', DATABASE_TIMEOUT: '10', REPLICA_WAIT: '4000', ...variables,
  })
  const lines: string[] = []
  const note = (line: unknown) => { lines.push(String(line).replace(/127\.0\.0\.1:\d+\/\w+/, 'HOST')) }
  const log = { info: note, warn: note, debug () {} }
  const hosts = ports.map(port => `127.0.0.1:${port}`).join()
  const probe = connect(config.DATABASE_URL!, { config, log, max: 1 })
  const replicas = createReplicas(`postgres://postgres@${hosts}/${database}`, { probe, config, log, backoff })
  t.teardown(async () => {
    await replicas.close()
    await probe.end({ timeout: 0 })
  })
  return { ...replicas, lines, position, ask, all, until }

  async function position () {
    const [row] = await probe<[{ position: WalPosition | null }]>`SELECT ${walPosition(probe)} AS position`
    return row.position
  }

  /** Reads in the way of the cache. Returns the port of the server that was read. */
  async function ask (work = async (_sql: Sql) => {}) {
    const read = async (sql: Sql) => {
      await work(sql)
      const [row] = await sql<[{ port: number }]>`SELECT inet_server_port() AS port`
      return row.port
    }
    return replicas.read(await position(), read, () => read(probe))
  }

  /** How many notes there are, and who says so. */
  async function all () {
    let count = 0
    const port = await ask(async sql => {
      const [row] = await sql<[{ count: number }]>`SELECT count(*)::int FROM notes`
      count = row.count
    })
    return { count, port }
  }

  async function until (available: number) {
    for (const end = Date.now() + 20_000; replicas.available() !== available;) {
      if (Date.now() > end) throw new Error(`${replicas.available()} are in use: ${lines.join('; ')}`)
      await sleep(5)
    }
  }
}

/** Checks that every write is seen at once. Returns the ports of all servers that were read. */
async function write (t: Test, { all }: Awaited<ReturnType<typeof use>>, times: number) {
  const ports = new Set<number>()
  for (let turn = 0; turn < times; turn++) {
    await sql`INSERT INTO notes VALUES (1)`
    const [row] = await sql<[{ count: number }]>`SELECT count(*)::int FROM notes`
    const { count, port } = await all()
    if (count !== row.count) t.equal(count, row.count, 'all that was acknowledged')
    ports.add(port)
  }
  return [...ports]
}

const IN_USE = 'Replica HOST is in use'
const leftOut = (reason: string) => `Replica HOST is left out: ${reason}`
const LAGS = leftOut('it lags by more than 1000 ms')

/** Of a test in which the time is up. */
const SHORT = { REPLICA_WAIT: '1000', DATABASE_TIMEOUT: '8' }

t.test('a standby that keeps up is read, and has all that was acknowledged', async t => {
  const [standby] = await startStandbys(t, 1)
  const replicas = await use(t, [standby!.server.port])
  t.equal(replicas.available(), 0, 'until it is found to be one')
  t.equal(await replicas.ask(), primary.port)
  await replicas.until(1)
  t.strictSame(await write(t, replicas, 100), [standby!.server.port])
  t.strictSame(replicas.lines, [IN_USE])
  t.strictSame(replicas.counts, { reads: 100, fallbacks: 1 })

  await t.test('without a position the primary is read', async t => {
    const { counts } = replicas
    t.equal(await replicas.read(null, async () => 'replica', async () => 'primary'), 'primary')
    t.strictSame(counts, { reads: 100, fallbacks: 2 })
  })

  await t.test('what fails on its own is asked of the primary, and costs nothing else', async t => {
    await t.rejects(replicas.ask(async sql => {
      await sql`SELECT 1 / 0`
    }), { code: '22012' })
    let times = 0
    const port = await replicas.ask(async sql => {
      if (++times === 1) await sql`INSERT INTO notes VALUES (1)`
    })
    t.equal(port, primary.port, 'no standby takes a write')
    t.strictSame(await write(t, replicas, 1), [standby!.server.port])
    t.strictSame(replicas.lines, [IN_USE])
  })

  await t.test('a read that finds no free connection in time is not the fault of the replica', async t => {
    const { server } = standby!
    const single = await use(t, [server.port], { ...SHORT, DATABASE_POOL_SIZE: '1' })
    await single.until(1)
    const long = single.ask(async sql => { await sql`SELECT pg_sleep(2)` })
    const ports = await Promise.all([long, sleep(20).then(() => single.ask())])
    t.strictSame(ports, [server.port, primary.port])
    t.equal(await single.ask(), server.port)
    t.strictSame(single.lines, [IN_USE])
  })

  await t.test('of a primary whose commits do not wait for the disk nothing is read there', async t => {
    await sql`ALTER SYSTEM SET synchronous_commit = off`
    await sql`SELECT pg_reload_conf()`
    const late = await use(t, [standby!.server.port])
    while (await late.position());
    t.strictSame(await write(t, replicas, 3), [primary.port])
    t.equal(late.available(), 0)
    t.match(late.lines[0], 'synchronous_commit is off')
    await sql`ALTER SYSTEM RESET synchronous_commit`
    await sql`SELECT pg_reload_conf()`
    await late.until(1)
    t.strictSame(await write(t, replicas, 3), [standby!.server.port])
  })

  await t.test('another database, or another server, is no replica', async t => {
    await sql`CREATE DATABASE other`
    t.strictSame(await write(t, replicas, 1), [standby!.server.port], 'it is there, too')
    const other = await use(t, [standby!.server.port], {}, { database: 'other' })
    const itself = await use(t, [primary.port])
    const nobody = await use(t, [await freePort()])
    while ([other, itself, nobody].some(({ lines }) => lines.length === 0)) await sleep(5)
    t.strictSame(other.lines, [leftOut('it has another database')])
    t.strictSame(itself.lines, [leftOut('it is no standby')])
    t.match(nobody.lines, [/left out: connect ECONNREFUSED/])
    await sleep(3 * BACKOFF.shortest)
    t.equal(await other.ask(), primary.port)
    t.strictSame([other, itself, nobody].map(({ available, lines }) => [available(), lines.length]),
      [[0, 1], [0, 1], [0, 1]], 'and one line says so, however often it is tried')
  })
})

t.test('a standby that lags is left out, and comes back', async t => {
  const [standby] = await startStandbys(t, 1)
  const { server, sql: onStandby } = standby!
  const replicas = await use(t, [server.port], SHORT)
  await replicas.until(1)

  await t.test('its replay paused', async t => {
    await onStandby`SELECT pg_wal_replay_pause()`
    t.strictSame(await write(t, replicas, 3), [primary.port])
    t.strictSame(replicas.lines, [IN_USE, LAGS])
    const start = performance.now()
    await Promise.all(Array.from({ length: 50 }, () => replicas.ask()))
    await sleep(4 * BACKOFF.shortest)
    t.equal(replicas.available(), 0)
    t.strictSame(await write(t, replicas, 20), [primary.port])
    t.ok(performance.now() - start < 10_000, 'none of them waits for it any more')
    await onStandby`SELECT pg_wal_replay_resume()`
    await replicas.until(1)
    t.strictSame(replicas.lines, [IN_USE, LAGS, IN_USE])
    t.strictSame(await write(t, replicas, 10), [server.port])
  })

  const delay = async (milliseconds: number) => {
    await onStandby`ALTER SYSTEM SET recovery_min_apply_delay = ${onStandby.unsafe(String(milliseconds))}`
    await onStandby`SELECT pg_reload_conf()`
    const isSet = () => onStandby`
      SELECT FROM pg_settings WHERE name = 'recovery_min_apply_delay' AND setting = ${String(milliseconds)}
    `
    while ((await isSet()).length === 0);
  }

  await t.test('its replay delayed by three seconds', async t => {
    replicas.lines.length = 0
    await delay(3000)
    t.strictSame(await write(t, replicas, 5), [primary.port])
    t.strictSame(replicas.lines, [LAGS])
  })

  await t.test('its replay delayed, but less than REPLICA_WAIT', async t => {
    await delay(20)
    await replicas.until(1)
    const start = performance.now()
    t.strictSame(await write(t, replicas, 10), [server.port])
    t.ok(performance.now() - start >= 10 * 20, 'each read waits for it')
    await delay(0)
  })

  await t.test('again and again: it is back each time when it has caught up, without a backoff', async t => {
    const patient = await use(t, [server.port], SHORT, { backoff: { shortest: 60_000, longest: 60_000 } })
    for (let times = 0; times < 3; times++) {
      await patient.until(1)
      await onStandby`SELECT pg_wal_replay_pause()`
      t.strictSame(await write(t, patient, 2), [primary.port])
      t.equal(patient.available(), 0)
      await onStandby`SELECT pg_wal_replay_resume()`
      await patient.until(1)
      t.strictSame(await write(t, patient, 10), [server.port])
    }
    t.strictSame(patient.counts, { reads: 30, fallbacks: 6 })
  })
})

t.test('a standby that is away', async t => {
  const [standby] = await startStandbys(t, 1)
  const { server } = standby!
  const proxy = await makeProxy(t, server.port)
  const replicas = await use(t, [proxy.port], SHORT)
  await replicas.until(1)

  await t.test('its connections are cut, also in the middle of a read', async t => {
    let times = 0
    const port = await replicas.ask(async () => {
      if (++times === 1) proxy.cut()
    })
    t.equal(port, primary.port)
    t.match(replicas.lines, [IN_USE, /left out: .*CONNECTION_CLOSED/])
    await replicas.until(1)
  })

  await t.test('again and again: it is tried again less and less soon', async t => {
    const pauses: number[] = []
    for (let times = 0; times < 3; times++) {
      await replicas.ask(async () => { proxy.cut() })
      t.equal(replicas.available(), 0)
      const start = performance.now()
      await replicas.until(1)
      pauses.push(performance.now() - start)
    }
    t.ok(pauses.at(-1)! >= 3 * BACKOFF.shortest, `after ${pauses.map(Math.round).join(', ')} ms`)
  })

  await t.test('the network swallows everything', async t => {
    replicas.lines.length = 0
    const end = proxy.swallow()
    const start = performance.now()
    t.strictSame(await Promise.all([replicas.ask(), replicas.ask()]), [primary.port, primary.port])
    const first = performance.now() - start
    t.ok(first >= 990 && first < 2000, `after ${first} ms: both wait at once`)
    t.strictSame(replicas.lines, [leftOut('no answer within 1 s')])
    t.strictSame(await write(t, replicas, 20), [primary.port])
    end()
    await replicas.until(1)
  })

  await t.test('it falls silent in the middle of a read: the primary has half of the time', async t => {
    const start = performance.now()
    let times = 0
    let end = () => {}
    const port = await replicas.ask(async sql => {
      if (++times === 1) end = proxy.swallow()
      await sql`SELECT 1`
    })
    const took = performance.now() - start
    t.equal(port, primary.port)
    t.ok(took >= 3900 && took < 7900, `after ${took} ms of 8 s`)
    t.equal(replicas.available(), 0)
    end()
    await replicas.until(1)
  })

  await t.test('it is killed, and started again', async t => {
    replicas.lines.length = 0
    await server.signal('SIGKILL')
    t.strictSame(await write(t, replicas, 10), [primary.port])
    while (!await server.start().then(() => true, () => false));
    await replicas.until(1)
    t.equal(replicas.lines.length, 2)
    t.strictSame(await write(t, replicas, 10), [server.port])
  })

  await t.test('it is closed while it is left out', async t => {
    await server.stop('fast')
    await replicas.ask()
    t.equal(replicas.available(), 0)
    const late = await use(t, [proxy.port])
    await late.close()
    await replicas.close()
    t.strictSame(late.lines, [])
  })
})

t.test('of several standbys each takes its turn, and those that are there are read', async t => {
  const standbys = await startStandbys(t, 2)
  const ports = standbys.map(({ server }) => server.port)
  const replicas = await use(t, ports)
  await replicas.until(2)
  t.same((await write(t, replicas, 20)).sort(), [...ports].sort())
  const busy = Array.from({ length: 3 }, () => replicas.ask(async sql => { await sql`SELECT pg_sleep(0.1)` }))
  t.equal(new Set(await Promise.all(busy)).size, 2)
  const [first, second] = standbys
  await first!.server.stop('immediate')
  await write(t, replicas, 2)
  t.equal(replicas.available(), 1)
  t.strictSame(await write(t, replicas, 10), [second!.server.port])
})

t.test('a standby that is promoted is not read any more', async t => {
  const standbys = await startStandbys(t, 2)
  const [early, late] = standbys
  const replicas = await use(t, [early!.server.port])
  await replicas.until(1)
  await early!.server.promote()
  await early!.sql`INSERT INTO notes SELECT generate_series(1, 1000)`
  t.strictSame(await write(t, replicas, 10), [primary.port])
  t.strictSame(replicas.lines, [IN_USE, leftOut('it is no standby')])

  const others = await use(t, [late!.server.port])
  await others.until(1)
  const seen: number[] = []
  const port = await others.ask(async sql => {
    if (others.available() && seen.length === 0) {
      await late!.server.promote()
      await late!.sql`INSERT INTO notes SELECT generate_series(1, 1000)`
    }
    const [row] = await sql<[{ count: number }]>`SELECT count(*)::int FROM notes`
    seen.push(row.count)
  })
  t.equal(port, primary.port)
  t.equal(seen.length, 2)
  t.ok(seen[0]! > seen[1]!, 'what it held after its promotion is not the result')
  t.strictSame(others.lines, [IN_USE, leftOut('it is no standby')])
})

t.test('a standby that went past the place where its new primary branched off is not read any more', async t => {
  const old = await PostgresServer.create(t)
  await old.start()
  const onOld = open(t, old.url())
  await onOld`CREATE TABLE notes (id int)`
  const [next, diverged] = await startStandbys(t, 2, old)
  while (!await onOld`SELECT`.then(() => true, () => false));
  // The one that will be promoted does not get the end.
  await next!.sql`ALTER SYSTEM SET primary_conninfo = ''`
  await next!.sql`SELECT pg_reload_conf()`
  while ((await next!.sql`SELECT FROM pg_stat_wal_receiver`).length > 0) await sleep(5)
  await onOld`INSERT INTO notes SELECT generate_series(1, 50000)`
  const [end] = await onOld`SELECT pg_current_wal_flush_lsn() AS lsn`
  while ((await diverged!.sql`SELECT FROM pg_last_wal_replay_lsn() AS r WHERE r < ${end!.lsn}`).length > 0) {
    await sleep(5)
  }
  await old.stop('immediate')
  await next!.server.promote()
  await next!.sql`INSERT INTO notes VALUES (1)`

  const probe = open(t, next!.server.url())
  const [row] = await probe<[{ position: WalPosition }]>`SELECT ${walPosition(probe)} AS position`
  t.equal(row.position.timeline, '00000002')
  const [naive] = await diverged!.sql`
    SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= ${row.position.lsn} AS ok
  `
  t.equal(naive!.ok, true, 'by its LSN it would have everything')

  const lines: string[] = []
  const note = (line: unknown) => { lines.push(String(line)) }
  const config = testConfig({ DATABASE_URL: next!.server.url() })
  const log = { info: note, warn: note, debug () {} }
  const replicas = createReplicas(diverged!.server.url(), { probe, config, log, backoff: BACKOFF })
  t.teardown(() => replicas.close())
  while (lines.length === 0) await sleep(5)
  t.match(lines, [/left out: it is on another timeline than the primary/])
})
