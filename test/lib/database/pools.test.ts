import { randomUUID } from 'node:crypto'
import dns from 'node:dns'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { openDatabase } from '#lib/database/pools.js'
import { retryConflict } from '#lib/database/conflicts.js'
import { StartupError } from '#lib/config/startup-error.js'
import { makeProxy } from '../../postgres-server.ts'
import { createDatabase, insert, testConfig } from '../../helper.ts'
import { freePort } from '../../process.ts'
import t, { type Test } from '../../suite.ts'

const url = await createDatabase()
const address = new URL(url)
const log = { info () {}, warn () {} }

/** The message of the StartupError. */
async function refusal (variables: NodeJS.Dict<string>) {
  return openDatabase(testConfig(variables), log).catch(error => error instanceof StartupError ? error.message : error)
}

t.test('openDatabase connects to DATABASE_URL, and closes its connections', async t => {
  const url = await createDatabase()
  const observer = await openDatabase(testConfig({ DATABASE_URL: url }), log)
  t.teardown(() => observer.close())
  const others = () => observer.sql`
    SELECT application_name AS name FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  `
  const database = await openDatabase(testConfig({ DATABASE_URL: url, DATABASE_TIMEOUT: '7' }), log)
  t.equal(database.url, url)
  t.strictSame([...await others()], [{ name: 'community-platform' }])
  const [setting] = await database.sql`SELECT current_setting('statement_timeout') AS timeout`
  t.strictSame(setting, { timeout: '7s' })

  await database.close()
  await t.rejects(database.sql`SELECT 1`, { code: 'CONNECTION_ENDED' })
  for (let rows = await others(); rows.length > 0; rows = await others());
  t.strictSame([...await others()], [])
})

t.test('DATABASE_POOL_SIZE limits the connections', async t => {
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url, DATABASE_POOL_SIZE: '2' }), log)
  t.teardown(close)
  const pids = await Promise.all(Array.from({ length: 8 }, () => sql`SELECT pg_backend_pid() AS pid, pg_sleep(0.02)`))
  t.equal(new Set(pids.map(([row]) => row?.pid)).size, 2)
})

for (const DATABASE_PREPARE of ['true', 'false']) {
  t.test(`Ids are opaque, with DATABASE_PREPARE=${DATABASE_PREPARE}`, async t => {
    const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url, DATABASE_PREPARE }), log)
    t.teardown(close)
    const name = randomUUID()
    const id = await insert({ sql }, 'clubs', { name })
    const find = (id: unknown) => sql`SELECT name FROM clubs WHERE id = ${id as string}`

    t.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
    t.strictSame([...await find(id)], [{ name }])

    const values = ['', ' ', 'not-a-uuid', '0', '\0', '%00', "'; --", 'x'.repeat(10_000), id.toUpperCase(), `{${id}}`,
      id.replaceAll('-', ''), ` ${id}`, `${id}\n`, `${id}0`, id.slice(1), 'ü€😀', '\ud800', 42, '[object Object]',
      '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
    for (const value of values) t.strictSame([...await find(value)], [], JSON.stringify(value).slice(0, 50))

    t.strictSame([...await find(id)], [{ name }], 'the connection is usable')
    const user = { email: name, password: '!', first_name: 'A', last_name: 'B', club_id: 'not-a-uuid' }
    await t.rejects(sql`INSERT INTO users ${sql(user)}`, { code: '23503' }, 'the nil id violates foreign keys')
    const [row] = await sql`INSERT INTO users ${sql({ ...user, club_id: null })} RETURNING club_id`
    t.strictSame(row, { club_id: null }, 'null stays null')
  })
}

t.test('A lost connection fails only the statement that ran on it', async t => {
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const DATABASE_URL = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL, DATABASE_POOL_SIZE: '1' }), log)
  t.teardown(close)
  const outcome = (query: Promise<unknown>) => query.then(() => 'succeeded', () => 'failed')
  const works = async (name: string) => t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }], name)

  for (let times = 0; times < 3; times++) {
    const running = outcome(sql`SELECT pg_sleep(60)`)
    setImmediate(proxy.cut)
    t.equal(await running, 'failed')
    // Sent before the driver notices that the connection is closed.
    await outcome(sql`SELECT 1`)
    await works('after a statement')

    t.equal(await outcome(sql.begin(async sql => {
      await sql`SELECT 1`
      proxy.cut()
      await outcome(sql`SELECT 1`)
      await sql`SELECT 1`
    })), 'failed')
    await works('after a transaction')
  }
})

/** A pool with one connection. `alter` gets each socket after it is connected, which resets its `write`. */
async function poolOf (t: Test, options: postgres.Options<{}> = {}, alter = (_socket: Socket) => {}) {
  const sockets: Socket[] = []
  const sql = postgres(url, {
    max: 1,
    fetch_types: false,
    // Typed as a constant, and called for each connection
    socket: (async () => {
      const socket = connect(Number(address.port || 5432), address.hostname)
      sockets.push(socket)
      await once(socket, 'connect')
      alter(socket)
      return socket
    }) as unknown as undefined,
    ...options,
  } as postgres.Options<{}>)
  const observer = postgres(url, { max: 1, fetch_types: false, onnotice () {} })
  await observer.unsafe('DROP TABLE IF EXISTS notes; CREATE TABLE notes (text text)')
  t.teardown(() => Promise.all([sql, observer].map(sql => sql.end({ timeout: 0 }))))
  const stored = async () => {
    const rows = await observer<{ text: string }[]>`SELECT text FROM notes ORDER BY text`
    return rows.map(({ text }) => text)
  }
  return { sql, sockets, stored }
}

t.test('A connection that is lost while the driver reads settings fails the statement, not the process', async t => {
  let losses = 0
  const { sql } = await poolOf(t, { target_session_attrs: 'primary' }, socket => {
    const { write } = socket
    const emit: (event: string, data: unknown) => boolean = socket.emit.bind(socket)
    // A server that does not report its state is asked for it.
    socket.emit = (event: string, data?: unknown) => emit(event, data instanceof Buffer
      ? Buffer.from(data.toString('latin1').replace('in_hot_standby', 'in_hot_summer_'), 'latin1')
      : data)
    socket.write = (chunk: any) => {
      if (losses > 0 || !String(chunk).includes('transaction_read_only')) return write.call(socket, chunk)
      losses++
      socket.destroy()
      return true
    }
  })
  await t.rejects(sql`SELECT 1`, { code: 'CONNECTION_CLOSED' })
  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  t.equal(losses, 1)
})

t.test('A transaction has its connection for itself', async t => {
  const write = (sql: postgres.Sql | postgres.TransactionSql, text: string) => sql`INSERT INTO notes VALUES (${text})`
  /** Runs a transaction that is rolled back, and a statement of a different caller during it. */
  const rollBack = async (sql: postgres.Sql, options = '', during = () => {}) => {
    let others: Promise<unknown> | undefined
    await t.rejects(sql.begin(options, async transaction => {
      await write(transaction, 'mine')
      during()
      others = write(sql, 'theirs').execute()
      await sleep(20)
      throw new Error('No')
    }), { message: 'No' })
    await others
  }

  for (const ahead of [0, 1, 98, 99, 100, 101, 150]) {
    const { sql, stored } = await poolOf(t)
    await sql`SELECT 1`
    const running = Array.from({ length: ahead }, () => sql`SELECT pg_sleep(0.001)`.execute())
    await rollBack(sql)
    await Promise.all(running)
    t.strictSame(await stored(), ['theirs'], `behind ${ahead} statements`)
  }

  const full = await poolOf(t, {}, socket => {
    const { write } = socket
    socket.write = (chunk: any) => {
      write.call(socket, chunk)
      return false
    }
  })
  // Long enough to be written at once
  await rollBack(full.sql, `read write ${' '.repeat(1024)}`)
  t.strictSame(await full.stored(), ['theirs'], 'on a full socket')

  const { sql, stored, sockets } = await poolOf(t)
  await rollBack(sql, '', () => sockets[0]!.emit('drain'))
  t.strictSame(await stored(), ['theirs'], 'on a socket that drains')
})

t.test('A statement in the transaction of a different caller fails, and its connection is closed', async t => {
  const lines: string[] = []
  const warn = (line: string) => { lines.push(line) }
  const { sql, connections, close } = await openDatabase(
    testConfig({ DATABASE_URL: url, DATABASE_POOL_SIZE: '1' }), { ...log, warn })
  t.teardown(close)
  await sql`CREATE TABLE kept (text text)`
  const outcomes = await Promise.allSettled([
    sql`BEGIN`, sql`INSERT INTO kept VALUES ('never')`, sql`INSERT INTO kept VALUES (${'never'})`,
  ])
  t.match(outcomes, Array(3).fill({ status: 'rejected', reason: { code: 'STRAY_TRANSACTION' } }))
  t.equal(connections.stray, 1)
  t.match(lines, [/^PostgreSQL: STRAY_TRANSACTION: /])
  await sql`INSERT INTO kept VALUES ('stored')`
  t.strictSame([...await sql`SELECT text FROM kept`], [{ text: 'stored' }])
})

t.test('All statements of a transaction end with its connection', async t => {
  const { sql, sockets } = await poolOf(t)
  for (let times = 0; times < 3; times++) {
    let statements!: Promise<PromiseSettledResult<unknown>[]>
    const transaction = sql.begin(async sql => {
      // The first one has the connection, so the others wait.
      statements = Promise.allSettled([1, 2, 3].map(n => sql`SELECT pg_sleep(0.5), ${n}::int`))
      await sleep(50)
      // As a reset does it: the error comes first.
      sockets.at(-1)!.destroy(new Error('Reset'))
      await statements
    })
    await t.rejects(transaction)
    t.strictSame((await statements).map(({ status }) => status), ['rejected', 'rejected', 'rejected'])
    t.equal((await sql`SELECT 1`).length, 1)
  }
})

t.test('A transaction that ends in a deadlock or a serialization failure is tried again once', async t => {
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url }), log)
  t.teardown(close)
  await sql`CREATE TABLE counters AS SELECT n AS id, 0 AS value FROM generate_series(1, 2) AS n`
  let attempts = 0
  let arrive!: () => void
  const both = new Promise<void>(resolve => { arrive = resolve })
  const transactions: Promise<void>[] = []
  const add = (first: number, second: number) => retryConflict(() => sql.begin(async sql => {
    // The one that was in the way ends first.
    if (attempts === 2) await Promise.any(transactions)
    await sql`UPDATE counters SET value = value + 1 WHERE id = ${first}`
    if (++attempts === 2) arrive()
    await both
    await sql`UPDATE counters SET value = value + 1 WHERE id = ${second}`
  }))
  transactions.push(add(1, 2), add(2, 1))
  await Promise.all(transactions)
  t.equal(attempts, 3)
  t.strictSame([...await sql`SELECT value FROM counters`], [{ value: 2 }, { value: 2 }])

  for (const [code, times] of [['40P01', 2], ['40001', 2], ['23505', 1]] as const) {
    let runs = 0
    await t.rejects(retryConflict(async () => {
      runs++
      await sql`DO ${sql.unsafe(`$$ BEGIN RAISE EXCEPTION 'No' USING ERRCODE = '${code}'; END $$`)}`
    }), { code })
    t.equal(runs, times, code)
  }
  let runs = 0
  await t.rejects(retryConflict(async () => {
    throw Object.assign(new Error(`run ${++runs}`), { code: '40P01' })
  }, () => false), { message: 'run 1' }, 'nobody waits for a second run')
  t.equal(runs, 1)
})

t.test('200 transactions whose connections are reset are rolled back', async t => {
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const DATABASE_URL = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const { sql, connections, close } = await openDatabase(testConfig({ DATABASE_URL }), log)
  t.teardown(close)
  const begun: (() => void)[] = []
  const transactions = Array.from({ length: 200 }, () => sql.begin(async sql => {
    // All ten connections are reset between BEGIN and the second statement.
    await new Promise<void>(resolve => {
      if (begun.push(resolve) < 10) return
      proxy.cut()
      for (const goOn of begun.splice(0)) goOn()
    })
    await sql`SELECT ${1}::int`
  }))
  const outcomes = await Promise.allSettled(transactions)
  t.strictSame(new Set(outcomes.map(({ status }) => status)), new Set(['rejected']))
  t.equal(connections.stray, 0)
  t.equal((await sql`SELECT 1`).length, 1)
})

t.test('A statement that fails after some rows does not affect the next statement', async t => {
  const config = testConfig({ DATABASE_URL: url, DATABASE_POOL_SIZE: '1', DATABASE_TIMEOUT: '1' })
  const { sql, close } = await openDatabase(config, log)
  t.teardown(close)
  const numbers = (sql: postgres.Sql) => sql`SELECT g, 1 / (3 - g) FROM generate_series(1, 5) g`
  const failures = {
    'an error in a later row': () => t.rejects(numbers(sql), { code: '22012' }),
    'an error between batches': () => t.rejects(numbers(sql).cursor(1, () => {}), { code: '22012' }),
    'an error in a transaction': () => t.rejects(sql.begin(sql => numbers(sql as unknown as postgres.Sql))),
    'an error of the caller': () => t.rejects(sql`SELECT g FROM generate_series(1, 5) g`.cursor(2, () => {
      throw new Error('mine')
    }), { message: 'mine' }),
    // Rows of this length are sent before the last one is there.
    'the timeout of the server': () => t.rejects(sql`
      SELECT repeat('x', 20000), CASE WHEN g = 3 THEN pg_sleep(5) END FROM generate_series(1, 5) g
    `),
  }
  for (const [name, fail] of Object.entries(failures)) {
    await fail()
    const rows = await sql`SELECT 1 AS one`
    t.strictSame([...rows], [{ one: 1 }], name)
  }
})

t.test('A statement that cannot be sent fails alone', async t => {
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url, DATABASE_POOL_SIZE: '1' }), log)
  t.teardown(close)
  const append = (value: unknown) => sql`SELECT ${value as string}::text || '!' AS text`
  t.strictSame([...await append('a')], [{ text: 'a!' }])
  const unprintable = { toString () { throw new Error('No text') } }
  for (const isBusy of [true, false]) {
    for (const value of [undefined, unprintable]) {
      const outcomes = await Promise.allSettled([
        ...isBusy ? [sql`SELECT 1 AS before, pg_sleep(0.05)::text AS slept`] : [],
        append(value),
        sql`SELECT 2 AS after`,
      ])
      t.strictSame(outcomes.map(outcome => outcome.status === 'fulfilled' ? [...outcome.value] : 'failed'), [
        ...isBusy ? [[{ before: 1, slept: '' }]] : [], 'failed', [{ after: 2 }],
      ], `${isBusy ? 'busy' : 'idle'}, ${typeof value}`)
    }
  }
})

t.test('A statement that is prepared again has the same parameters', async t => {
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url, DATABASE_POOL_SIZE: '1' }), log)
  t.teardown(close)
  await sql`CREATE TABLE switches (id integer, is_on boolean)`
  const insert = () => sql`INSERT INTO switches VALUES (${1}, ${true}) RETURNING *`
  t.strictSame([...await insert()], [{ id: 1, is_on: true }])
  // As after a migration
  await sql`ALTER TABLE switches ADD note text`
  t.strictSame([...await insert()], [{ id: 1, is_on: true, note: null }])
  // As behind a pooler
  await sql`DEALLOCATE ALL`
  t.strictSame([...await insert()], [{ id: 1, is_on: true, note: null }])
})

t.test('Constant load does not make statements slower', async t => {
  // The pool moves a connection from queue to queue with each statement. Under load, a queue is never empty.
  const { default: createQueue } = await import(new URL('queue.js', import.meta.resolve('postgres')).href)
  const [queue, busy] = [createQueue(), createQueue()]
  for (const each of [queue, busy]) each.push({})
  for (let n = 0; n < 1_000_000; n++) {
    busy.push({})
    busy.shift()
  }
  const timeOf = ({ remove }: { remove (connection: object): void }) => {
    const times = Array.from({ length: 20 }, () => {
      const start = performance.now()
      remove({})
      return performance.now() - start
    })
    return Math.min(...times)
  }
  t.equal(busy.length, 1)
  t.ok(timeOf(busy) < 20 * timeOf(queue), 'a connection is found about as fast as at the start')
})

t.test('Without prepared statements, a connection runs one statement at a time', async t => {
  for (const [DATABASE_PREPARE, isSent] of [['true', true], ['false', false]] as const) {
    const config = testConfig({ DATABASE_URL: url, DATABASE_PREPARE, DATABASE_POOL_SIZE: '1' })
    const { sql, close } = await openDatabase(config, log)
    t.teardown(close)
    const running = sql`SELECT pg_sleep(0.1)`.execute()
    const next = sql`SELECT ${1}::int AS one`.execute() as unknown as Promise<object[]> & { state: object | null }
    await sleep(20)
    t.equal(next.state !== null, isSent, 'behind a pooler, the next statement would never end')
    await running
    t.strictSame([...await next], [{ one: 1 }])
    t.equal((await sql.begin(sql => sql`SELECT 1`)).length, 1)
  }
})

t.test('A notice of the database is logged', async t => {
  const lines: string[] = []
  const warn = (line: string) => { lines.push(line) }
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL: url }), { ...log, warn })
  t.teardown(close)
  await sql`DO $$ BEGIN RAISE WARNING 'The disk is nearly full'; END $$`
  t.strictSame(lines, ['PostgreSQL: The disk is nearly full (01000)'])
})

t.test('A pooler that takes no settings is used without them, and named in the log', async t => {
  const refusals: string[] = []
  // PgBouncer without ignore_startup_parameters, in front of a server of the tests.
  const pooler = createServer(client => client.once('data', () => {
    client.write('N')
    client.once('data', startup => {
      const refused = /statement_timeout|plan_cache_mode/.exec(startup.toString('latin1'))
      if (refused) {
        refusals.push(refused[0])
        const fields = `SFATAL\0C08P01\0Munsupported startup parameter: ${refused[0]}\0\0`
        const head = Buffer.from('E\0\0\0\0')
        head.writeInt32BE(fields.length + 4, 1)
        return client.end(Buffer.concat([head, Buffer.from(fields)]))
      }
      const server = connect(Number(address.port || 5432), address.hostname)
      for (const socket of [client, server]) socket.on('error', () => {})
      server.write(startup)
      client.pipe(server).pipe(client)
    })
  }).on('error', () => {})).listen(0, '127.0.0.1')
  await once(pooler, 'listening')
  t.teardown(() => pooler.close())
  const { port } = pooler.address() as AddressInfo
  const DATABASE_URL = Object.assign(new URL(address), { host: `127.0.0.1:${port}` }).href
  const lines: string[] = []
  const warn = (line: string) => { lines.push(line) }
  const database = await openDatabase(testConfig({ DATABASE_URL }), { ...log, warn })
  t.teardown(database.close)
  for (const sql of [database.sql, database.shortSql]) t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  t.strictSame(refusals, ['statement_timeout'])
  t.strictSame(lines, ['The pooler refuses settings (unsupported startup parameter: statement_timeout). ' +
    'Set them on the role of the service, see docs/run/deploy.md, "A pooler that takes no settings"'])
})

t.test('An unreachable database is a StartupError with its address, without user, password and options', async t => {
  const port = await freePort()
  const DATABASE_URL = `postgres://ada:hunter2%2Fhunter3%3F@127.0.0.1:${port}/x?application_name=hunter4`
  t.equal(await refusal({ DATABASE_URL }),
    `Cannot reach the database at 127.0.0.1:${port}/x: connect ECONNREFUSED 127.0.0.1:${port}`)
  t.match(await refusal({ DATABASE_URL: `postgres://ada@[::1]:${port}/x` }), `Cannot reach the database at [::1]:${port}/x:`)
})

t.test('A host name whose addresses all refuse connections is unreachable', async t => {
  const port = await freePort()
  t.capture(dns, 'lookup', ((_host: string, _options: object, done: (error: null, addresses: object) => void) => {
    done(null, [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }])
  }) as typeof dns.lookup)
  t.equal(await refusal({ DATABASE_URL: `postgres://ada:hunter2@db.example.org:${port}/x` }),
    `Cannot reach the database at db.example.org:${port}/x: ECONNREFUSED`)
})
