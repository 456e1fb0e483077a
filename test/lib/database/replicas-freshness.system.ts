// Tries to make the cache stale that is read from standbys which lag, vanish and come back.
import { setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import postgres from 'postgres'
import t from 'tap'

import type { CachedQuery } from '#lib/cache/index.js'
import { createSnapshotCache } from '#lib/cache/snapshot-cache.js'
import { connect, type Sql } from '#lib/database/client.js'
import { createReplicas, type WalPosition } from '#lib/database/replicas.js'
import { makeProxy, PostgresServer } from '../../postgres-server.ts'
import { Bounds, holds, turns } from '../../freshness.ts'
import { testConfig } from '../../helper.ts'

const log = { info () {}, warn () {}, debug () {} }

const server = await PostgresServer.create(t)
await server.start()
const preparing = postgres(server.url(), { max: 1 })
await preparing`CREATE TABLE writes (name text, value int)`
await preparing.end()
await server.stop('fast')
const standbys = [await server.standby(t), await server.standby(t)]
await Promise.all([server, ...standbys].map(server => server.start()))
const proxies = await Promise.all(standbys.map(({ port }) => makeProxy(t, port)))

function open (url: string, max: number): Sql {
  const sql = postgres(url, { max, fetch_types: false, onnotice () {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

const writer = open(server.url(), 5)
const onStandbys = standbys.map(standby => open(standby.url(), 1))

/** An instance of the service, as far as it matters here. */
async function start (maxBytes: number, REPLICA_WAIT: string, ports = proxies.map(({ port }) => port)) {
  const config = testConfig({ DATABASE_URL: server.url(), DATABASE_POOL_SIZE: '4', REPLICA_WAIT })
  const [sql, probe] = [4, 1].map(max => connect(server.url(), { config, log, max })) as [Sql, Sql]
  const hosts = ports.map(port => `127.0.0.1:${port}`).join()
  const replicas = createReplicas(`postgres://postgres@${hosts}/postgres`, {
    probe, config, log, backoff: { shortest: 10, longest: 40 },
  })
  t.teardown(async () => {
    await replicas.close()
    await Promise.all([sql, probe].map(sql => sql.end({ timeout: 0 })))
  })
  const { get, currentState } = createSnapshotCache({ sql, probe, maxBytes, replicas })
  while (replicas.available() < ports.length) await sleep(5)
  return { replicas, get, currentState, value, uncached }

  /** The highest value and the number of all, which must be of one time. */
  async function value (name: string) {
    const body = await get(name, sql => everything(sql, name))
    const { value, all } = JSON.parse(String(Buffer.concat(body!.chunks)))
    if ((all[0]?.value ?? 0) !== value) throw new Error(`the highest of ${JSON.stringify(all)} is not ${value}`)
    return value as number
  }

  async function uncached (name: string) {
    const read = async (on: Sql) => on<[{ value: number }]>`${highest(on, name)}`
    const [row] = await replicas.readFresh(read, () => read(sql))
    return row.value
  }
}

const highest = (sql: Sql, name: string) => sql`
  SELECT coalesce(max(value), 0) AS value FROM writes WHERE name = ${name}
`

const everything = (sql: Sql, name: string): CachedQuery<any> => ({
  list: { field: 'all', rows: sql`SELECT value FROM writes WHERE name = ${name} ORDER BY value DESC` },
  fields: highest(sql, name),
})

const instances = [await start(1_000_000, '200'), await start(1_000_000, '20'), await start(1, '60')]

/** The faults of a standby. */
const faults: { [name: string]: (n: number) => Promise<unknown> } = {
  pause: n => onStandbys[n]!`SELECT pg_wal_replay_pause()`,
  resume: n => onStandbys[n]!`SELECT pg_wal_replay_resume()`,
  delay: n => setDelay(n, 15),
  hurry: n => setDelay(n, 0),
  cut: async n => proxies[n]!.cut(),
  lose: async n => {
    const end = proxies[n]!.swallow()
    await sleep(50)
    end()
    proxies[n]!.cut()
  },
}

async function setDelay (n: number, milliseconds: number) {
  const sql = onStandbys[n]!
  await sql`ALTER SYSTEM SET recovery_min_apply_delay = ${sql.unsafe(String(milliseconds))}`
  await sql`SELECT pg_reload_conf()`
}

t.test('who shares a read sees what was acknowledged before they asked, not before the first of them did', async t => {
  const { replicas, get, currentState } = await start(1_000_000, '1000', [standbys[0]!.port])
  const [onStandby] = onStandbys
  const write = (value: number) => writer`INSERT INTO writes VALUES ('shared', ${value})`
  const slow = (sql: Sql) => ({
    fields: sql`
    SELECT max(value) AS value, pg_sleep(0.5)::text FROM writes WHERE name = 'shared'
  `
  })
  const ask = async () => {
    const body = await get('shared', slow)
    return JSON.parse(String(body!.chunks[0])).value
  }
  await write(1)
  const first = ask()
  const isReading = () => onStandby!`
    SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%shared%' AND pid <> pg_backend_pid()
  `
  while ((await isReading()).length === 0) await sleep(5)
  await write(2)
  const second = ask()
  const { position } = await currentState() as { position: WalPosition }
  const isBehind = () => onStandby!`SELECT FROM pg_last_wal_replay_lsn() AS at WHERE at < ${position.lsn}`
  while ((await isBehind()).length > 0) await sleep(5)
  await onStandby!`SELECT pg_wal_replay_pause()`
  await write(3)
  const third = ask()
  t.strictSame(await Promise.all([first, second, third]), [1, 3, 3])
  t.strictSame(replicas.counts, { reads: 1, fallbacks: 1 })
  await onStandby!`SELECT pg_wal_replay_resume()`
})

t.test('no response is older than what was acknowledged before its request, whatever the standbys do', async t => {
  const NAMES = ['a', 'b', 'c']
  let boundsOf: { [name: string]: Bounds }

  const ways: { [way: string]: (bounds: Bounds, name: string, pause: number) => Promise<unknown> } = {
    async insert (bounds, name) {
      const value = bounds.next()
      await writer`INSERT INTO writes VALUES (${name}, ${value})`
      bounds.acknowledge(value)
    },
    async replace (bounds, name, pause) {
      const value = bounds.next()
      await writer.begin(async sql => {
        await sql`INSERT INTO writes VALUES (${name}, ${value})`
        await sql`DELETE FROM writes WHERE name = ${name} AND value < ${value}`
        await turns(pause)
      })
      bounds.acknowledge(value)
    },
    async undo (_bounds, name, pause) {
      await writer.begin(async sql => {
        await sql`INSERT INTO writes VALUES (${name}, 1000000)`
        await turns(pause)
        throw new Error('rolled back')
      }).catch(() => {})
    },
  }

  const pause = fc.nat(6)
  const name = fc.constantFrom(...NAMES)
  const writing = fc.record({ way: fc.constantFrom(...Object.values(ways)), name, pause })
  const reading = fc.record({
    instance: fc.constantFrom(...instances), way: fc.constantFrom('value', 'value', 'uncached'), name, pause,
  })
  const fault = fc.record({
    fault: fc.constantFrom(...Object.values(faults)), of: fc.nat(standbys.length - 1), pause: fc.nat(60),
  })
  const scripts = fc.record({
    writers: fc.array(fc.array(writing, { maxLength: 12, size: 'max' }), { minLength: 1, maxLength: 3, size: 'max' }),
    readers: fc.array(fc.array(reading, { maxLength: 40, size: 'max' }), { minLength: 1, maxLength: 6, size: 'max' }),
    faults: fc.array(fault, { maxLength: 8, size: 'max' }),
  })
  await holds(t, 15, scripts, async ({ writers, readers, faults: script }) => {
    await writer`TRUNCATE writes`
    boundsOf = Object.fromEntries(NAMES.map(name => [name, new Bounds({ isSeenByAll: false })]))
    await Promise.all([
      ...writers.map(async script => {
        for (const { way, name, pause } of script) {
          await way(boundsOf[name]!, name, pause)
          await Promise.all(instances.map(({ value }) => boundsOf[name]!.check(() => value(name))))
        }
      }),
      ...readers.map(async script => {
        for (const { instance, way, name, pause } of script) {
          await boundsOf[name]!.check(() => instance[way](name))
          await turns(pause)
        }
      }),
      (async () => {
        for (const { fault, of, pause } of script) {
          await fault(of)
          await sleep(pause)
        }
      })(),
    ])
    for (const n of standbys.keys()) {
      await faults.resume!(n)
      await faults.hurry!(n)
    }
  })
  for (const { replicas: { counts } } of instances) {
    t.ok(counts.reads > 0, `${counts.reads} reads on standbys`)
    t.ok(counts.fallbacks > 0, `${counts.fallbacks} on the primary`)
  }
})
