// Tries to make the cache stale. Only this file writes to this server: commits of other tests would invalidate entries,
// and hide a stale one.
import { setTimeout as sleep } from 'node:timers/promises'

import fc from 'fast-check'
import postgres from 'postgres'

import { clientIn } from '../../clients.ts'
import { turnClock } from '../../clock.ts'
import type { CachedQuery } from '#lib/cache/index.js'
import { createSnapshotCache } from '#lib/cache/snapshot-cache.js'
import type { Sql } from '#lib/database/pools.js'
import { makeProxy, PostgresServer } from '../../postgres-server.ts'
import { Bounds, holds, turns } from '../../freshness.ts'
import t, { type Test } from '../../suite.ts'

const server = await PostgresServer.create(t)
await server.start()

const ROOMY = 1_000_000
/** Too small for any entry. */
const TINY = 1

/** A connection pool, closed when the test ends. */
function connect (t: Pick<Test, 'teardown'>, max: number, url = server.url()): Sql {
  const sql = postgres(url, { max, fetch_types: false, onnotice () {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

const writer = connect(t, 5)
await writer`CREATE TABLE writes (name text, value int)`

/** A test that starts with an empty table. */
const test = (name: string, run: (t: Test) => Promise<unknown>) => t.test(name, async t => {
  await writer`TRUNCATE writes`
  await run(t)
})

const write = (name: string, value: number, sql: postgres.ISql = writer) =>
  sql`INSERT INTO writes VALUES (${name}, ${value})`

/** Reads the highest value of a name. */
const highest = (sql: Sql, name: string): CachedQuery => ({
  fields: sql`SELECT coalesce(max(value), 0) AS value FROM writes WHERE name = ${name}`,
})

/** Reads all values of a name and the highest one, which must come from one snapshot. */
const everything = (sql: Sql, name: string): CachedQuery => ({
  list: { field: 'all', rows: sql`SELECT value FROM writes WHERE name = ${name} ORDER BY value DESC` },
  ...highest(sql, name),
})

/** A query that must not run, because the entry is valid. */
const notAgain = () => { throw new Error('read again') }

/** A cache with its own connections, like an instance of the service. */
function start (t: Test, { maxBytes = ROOMY, sql = connect(t, 4), shortSql = connect(t, 1) } = {}) {
  const cache = createSnapshotCache({ sql, shortSql, maxBytes })
  const get = (name: string, query: (sql: Sql) => CachedQuery) => cache.get(name, query, [clientIn('')])
  const instance = { reads: 0, get, readSnapshot: cache.readSnapshot, ask, value }
  return instance

  /** The body of a query for a name, as text. */
  async function ask (name: string, query = highest) {
    const body = await get(name, sql => {
      instance.reads++
      return query(sql, name)
    })
    return body && String(Buffer.concat(body.chunks))
  }

  async function value (name: string, query = highest) {
    const { value, all } = JSON.parse((await ask(name, query))!)
    if (all && (all[0]?.value ?? 0) !== value) throw new Error(`the highest of ${JSON.stringify(all)} is not ${value}`)
    return value as number
  }
}

test('While reads hold too much together, only the oldest one and short ones continue', async t => {
  const cache = createSnapshotCache({ sql: connect(t, 4), shortSql: connect(t, 1), maxBytes: 1, maxReading: 1_000_000 })
  const ended: string[] = []
  let begin = () => {}
  const begun = new Promise<void>(resolve => { begin = resolve })
  const client = { ...clientIn(''), hold: (bytes: number) => { if (bytes >= 500_000) begin() } }
  /** Reads rows of 10 KB, in batches of 50. The last row comes after so many seconds. */
  const read = async (key: string, count: number, seconds = 0) => {
    const body = await cache.get(key, sql => ({
      list: {
        field: 'rows',
        rows: sql`
          SELECT repeat('x', 10000) AS x, CASE WHEN n = ${count} THEN pg_sleep(${seconds}) END
          FROM generate_series(1, ${count}::int) AS n
        `,
      },
    }), [client])
    ended.push(key)
    return body!.length
  }
  const first = read('first', 60, 1)
  await begun
  const lengths = await Promise.all([first, read('long', 250), read('short', 10)])
  t.strictSame(lengths.map(length => Math.floor(length / 1e5)), [6, 25, 1])
  t.strictSame(ended, ['short', 'first', 'long'])
})

test('While a read of the snapshot exceeds the timeout, others fail at once', async t => {
  const wait = turnClock(t)
  const shortSql = connect(t, 1)
  const cache = createSnapshotCache({ sql: connect(t, 1), shortSql, maxBytes: ROOMY, timeoutSeconds: 60 })
  let slow, first
  await writer.begin(async sql => {
    await sql`LOCK TABLE writes`
    slow = shortSql`SELECT FROM writes`.execute()
    first = cache.readSnapshot()
    while (cache.counts.validations === 0) await sleep(5)
    wait(61_000)
    await t.rejects(cache.readSnapshot(), { message: 'The database does not respond' })
  })
  await slow
  t.ok(await first)
  t.ok(await cache.readSnapshot())
})

test('A body is served from memory until something is committed', async t => {
  const instance = start(t)
  await write('a', 1)
  t.equal(await instance.ask('a'), '{"value":1}')
  const [one, other] = await Promise.all(['a', 'a'].map(name => instance.get(name, notAgain)))
  t.equal(one, other)
  t.equal(String(one!.chunks[0]), '{"value":1}')

  await write('a', 2)
  t.equal(await instance.value('a'), 2)
  t.equal(instance.reads, 2)
  t.equal(await instance.value('a'), 2)
  t.equal(instance.reads, 2)
})

test('A commit elsewhere causes a read, which keeps the same body', async t => {
  const instance = start(t)
  const body = await instance.get('a', sql => highest(sql, 'a'))
  await write('b', 1)
  t.equal(await instance.value('a'), 0)
  t.equal(instance.reads, 1)
  t.equal(await instance.get('a', notAgain), body)
})

test('A list may have other fields and any number of rows', async t => {
  const { ask } = start(t)
  const rows = (sql: Sql, limit: number) => sql`SELECT name, value FROM writes ORDER BY value LIMIT ${limit}`
  const list = (limit: number) => (sql: Sql): CachedQuery => ({ list: { field: 'items', rows: rows(sql, limit) } })
  const some = (limit: number) => (sql: Sql): CachedQuery => ({
    list: { field: 'items', rows: rows(sql, limit) }, fields: sql`SELECT count(*) AS total, 'all' AS of FROM writes`,
  })
  const none = (sql: Sql): CachedQuery => ({
    list: { field: 'items', rows: rows(sql, 9) }, fields: sql`SELECT WHERE false`,
  })
  t.equal(await ask('1', list(9)), '{"items":[]}')
  t.equal(await ask('2', some(9)), '{"items":[],"total":0,"of":"all"}')
  await write('a', 1)
  await write('b', 2)
  t.equal(await ask('1', list(1)), '{"items":[{"name":"a","value":1}]}')
  t.equal(await ask('2', some(9)), '{"items":[{"name":"a","value":1},{"name":"b","value":2}],"total":2,"of":"all"}')
  t.equal(await ask('3', none), undefined)
})

test('A body that does not fit is read each time', async t => {
  const instance = start(t, { maxBytes: TINY })
  for (let value = 1; value < 4; value++) {
    await write('a', value)
    for (let times = 0; times < 2; times++) t.equal(await instance.value('a'), value)
  }
  t.equal(instance.reads, 6)
})

test('An error rejects only the calls that share the read', async t => {
  const instance = start(t)
  const broken = (sql: Sql) => ({ fields: sql`SELECT 1 / 0` })
  await t.rejects(instance.ask('a', broken), { code: '22012' })
  await t.rejects(instance.ask('a', broken), { code: '22012' })
  t.equal(await instance.value('a'), 0)
  await t.rejects(instance.ask('b', () => { throw new Error('no query') }), { message: 'no query' })
  t.equal(await instance.value('b'), 0)
})

test('Transactions may commit in any order', async t => {
  const instance = start(t)
  await writer.begin(async sql => {
    await write('a', 1, sql)
    await write('a', 2)
    t.equal(await instance.value('b'), 0)
    await write('b', 1, sql)
    t.equal(await instance.value('a'), 2)
  })
  t.equal(await instance.value('b'), 1)
})

test('Uncommitted writes are not visible, and do not invalidate entries', async t => {
  const instance = start(t)
  t.equal(await instance.value('a'), 0)
  const unchanged = async (name: string) => {
    t.equal(await instance.value('a'), 0, name)
    return instance.reads
  }
  const undone = writer.begin(async sql => {
    await write('a', 1, sql)
    const reads = await unchanged('a transaction has written')
    await sql.savepoint(sql => write('a', 2, sql))
    t.equal(await unchanged('and again, after a savepoint'), reads)
    throw new Error('changed my mind')
  })
  await t.rejects(undone, { message: 'changed my mind' })
  await unchanged('it was rolled back')

  await writer.begin(async sql => {
    await write('a', 3, sql)
    await sql`PREPARE TRANSACTION 'later'`
  })
  const reads = await unchanged('it was prepared')
  t.equal(await unchanged('it is still prepared'), reads)
  await writer`COMMIT PREPARED 'later'`
  t.equal(await instance.value('a'), 3)
})

for (const asked of ['meanwhile', 'afterwards']) {
  test(`A commit during a read is visible to a call ${asked}`, async t => {
    const instance = start(t)
    const GATE = 1
    /** Takes its snapshot, then waits for the lock. */
    const gated = (sql: Sql, name: string) => ({
      fields: sql`
        SELECT coalesce(max(value), 0) AS value, pg_advisory_xact_lock_shared(${GATE})::text AS gate
        FROM writes WHERE name = ${name}
      `,
    })
    const gate = await writer.reserve()
    await gate`SELECT pg_advisory_lock(${GATE})`
    const early = instance.value('a', gated)
    while ((await gate`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`).length < 1);
    await write('a', 1)
    const late = asked === 'meanwhile' ? instance.value('a', gated) : undefined
    // Makes known that the running read is outdated.
    await instance.readSnapshot()
    await gate`SELECT pg_advisory_unlock(${GATE})`
    gate.release()
    t.equal(await early, 0, 'the call before the commit')
    t.equal(await (late ?? instance.value('a', gated)), 1)
  })
}

test('A commit while the snapshot is asked for is visible to later calls', async t => {
  const proxy = await makeProxy(t, server.port)
  const instance = start(t, { shortSql: connect(t, 1, server.url('postgres', proxy.port)) })
  t.equal(await instance.value('a'), 0)
  // Opens the connection.
  await instance.readSnapshot()
  const { arrived, release } = proxy.hold()
  const early = instance.value('a')
  await arrived
  await write('a', 1)
  const late = instance.value('a')
  release()
  t.equal(await early, 0, 'the call before the commit')
  t.equal(await late, 1, 'the call after the commit')
})

test('A body belongs to its database, even if a different database gets its name', async t => {
  await writer`CREATE DATABASE other`
  const other = connect(t, 1, server.url('other'))
  await other`CREATE TABLE writes AS SELECT 'a' AS name, 1 AS value`
  // Simulates a pooler that is reconfigured to map the name to a different database.
  let current = connect(t, 1)
  const behindPooler = Object.assign(
    (...query: Parameters<Sql>) => current(...query), { parameters: current.parameters }
  ) as Sql
  const instance = start(t, { sql: behindPooler, shortSql: behindPooler })
  t.equal(await instance.value('a'), 0)
  current = other
  t.equal(await instance.value('a'), 1)
})

test('No body is older than a commit before the call, for any kind of write', async t => {
  const NAMES = ['a', 'b', 'c']
  /** A value that is never committed, so no read may return it. */
  const POISON = 1_000_000
  const instances = [start(t), start(t, { maxBytes: TINY }), start(t, { maxBytes: 2000 })]
  let prepared = 0

  let boundsOf: { [name: string]: Bounds }
  type Way = (bounds: Bounds, name: string, pause: number) => Promise<unknown>

  /** Replaces all rows in a transaction; values are chosen while the lock excludes other commits. */
  const rewrite = (prepare: (sql: postgres.TransactionSql) => Promise<unknown>) => async () => {
    const written: [Bounds, number][] = []
    await writer.begin(async sql => {
      await prepare(sql)
      for (const [name, bounds] of Object.entries(boundsOf)) {
        written.push([bounds, bounds.next()])
        await write(name, written.at(-1)![1], sql)
      }
    })
    for (const [bounds, value] of written) bounds.acknowledge(value)
  }

  const ways: { [way: string]: Way } = {
    async insert (bounds, name) {
      const value = bounds.next()
      await write(name, value)
      bounds.acknowledge(value)
    },
    async delete (bounds, name, pause) {
      const value = bounds.next()
      await writer.begin(async sql => {
        await write(name, value, sql)
        await sql`DELETE FROM writes WHERE name = ${name} AND value < ${value}`
        await turns(pause)
      })
      bounds.acknowledge(value)
    },
    async update (bounds, name) {
      const value = bounds.next()
      await writer`
        WITH gone AS (DELETE FROM writes WHERE name = ${name} AND value < ${value})
        INSERT INTO writes VALUES (${name}, ${value})
      `
      bounds.acknowledge(value)
    },
    async savepoint (bounds, name, pause) {
      const value = bounds.next()
      await writer.begin(async sql => {
        await sql.savepoint(async sql => {
          await write(name, POISON, sql)
          await turns(pause)
          throw new Error('back to the savepoint')
        }).catch(() => {})
        await sql.savepoint(sql => write(name, value, sql))
        await turns(pause)
      })
      bounds.acknowledge(value)
    },
    async undone (_bounds, name, pause) {
      await writer.begin(async sql => {
        await write(name, POISON, sql)
        await turns(pause)
        throw new Error('rolled back')
      }).catch(() => {})
    },
    async prepared (bounds, name, pause) {
      const value = bounds.next()
      const id = `prepared ${++prepared}`
      await writer.begin(async sql => {
        await write(name, value, sql)
        await sql`PREPARE TRANSACTION ${sql.unsafe(`'${id}'`)}`
      })
      await turns(pause)
      await writer`COMMIT PREPARED ${writer.unsafe(`'${id}'`)}`
      bounds.acknowledge(value)
    },
    async dismissed (_bounds, name, pause) {
      const id = `prepared ${++prepared}`
      await writer.begin(async sql => {
        await write(name, POISON, sql)
        await sql`PREPARE TRANSACTION ${sql.unsafe(`'${id}'`)}`
      })
      await turns(pause)
      await writer`ROLLBACK PREPARED ${writer.unsafe(`'${id}'`)}`
    },
    truncate: rewrite(sql => sql`TRUNCATE writes`),
    alter: rewrite(async sql => {
      await sql`ALTER TABLE writes ADD COLUMN added int`
      await sql`ALTER TABLE writes DROP COLUMN added`
    }),
    replace: rewrite(async sql => {
      await sql`LOCK writes`
      await sql`CREATE TABLE replacement AS SELECT * FROM writes`
      await sql`DROP TABLE writes`
      await sql`ALTER TABLE replacement RENAME TO writes`
    }),
  }

  const pause = fc.nat(6)
  const name = fc.constantFrom(...NAMES)
  const writing = fc.record({ way: fc.constantFrom(...Object.values(ways)), name, pause })
  const reading = fc.record({ instance: fc.constantFrom(...instances), name, pause })
  const scripts = fc.record({
    writers: fc.array(fc.array(writing, { maxLength: 8, size: 'max' }), { minLength: 1, maxLength: 3, size: 'max' }),
    readers: fc.array(fc.array(reading, { maxLength: 30, size: 'max' }), { minLength: 1, maxLength: 6, size: 'max' }),
  })
  await holds(t, 15, scripts, async ({ writers, readers }) => {
    await writer`TRUNCATE writes`
    boundsOf = Object.fromEntries(NAMES.map(name => [name, new Bounds()]))
    await Promise.all([
      ...writers.map(async script => {
        for (const { way, name, pause } of script) {
          await way(boundsOf[name]!, name, pause)
          await Promise.all(instances.map(({ value }) => boundsOf[name]!.check(() => value(name, everything))))
        }
      }),
      ...readers.map(async script => {
        for (const { instance, name, pause } of script) {
          await boundsOf[name]!.check(() => instance.value(name, everything))
          await turns(pause)
        }
      }),
    ])
  })
})
