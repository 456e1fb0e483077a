import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { DatabaseConnections, IDLE_TIMEOUT_SECONDS } from '#lib/database/database-connections.js'
import { openDatabase } from '#lib/database/pools.js'
import { turnClock } from '../../clock.ts'
import { createDatabase, testConfig } from '../../helper.ts'
import { makeProxy } from '../../postgres-server.ts'
import t, { type Test } from '../../suite.ts'

const address = new URL(await createDatabase())

/** A pool with one connection, whose server may be silent for some seconds, and take some to open a connection. */
async function pool (t: Test, silenceSeconds = 0.3, connectSeconds = 0) {
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const url = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const connections = new DatabaseConnections(silenceSeconds, connectSeconds)
  const options = { max: 1, fetch_types: false, backoff: () => 0, socket: connections.connect }
  const sql = postgres(url, options)
  t.teardown(() => sql.end({ timeout: 0 }))
  const backend = async () => (await sql<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`)[0]!.pid
  return { sql, connections, proxy, backend, url }
}

t.test('A connection that does not answer is closed', async t => {
  const wait = turnClock(t)
  const { sql, connections, proxy, backend } = await pool(t)
  const before = await backend()
  // An idle connection may be silent. Three checks see it.
  await sleep(100)
  wait(800)
  await sleep(100)
  t.equal(await backend(), before)
  t.equal(connections.open, 1)

  const end = proxy.swallow()
  const statement = sql`SELECT 1`.execute()
  // Other statements do not postpone it.
  const others = setInterval(() => sql`SELECT 2`.catch(() => {}), 100)
  await t.rejects(statement, { code: 'CONNECTION_CLOSED' })
  clearInterval(others)
  end()
  // Another statement may have begun to open a connection that is also silent.
  connections.suspect()
  let after: number | undefined
  while (!after) after = await backend().catch(() => undefined)
  t.not(after, before)
  t.ok(connections.silent > 0)

  await sleep(100)
  wait((IDLE_TIMEOUT_SECONDS + 1) * 1000)
  while (connections.open > 0) await sleep(20)
  t.equal((await sql`SELECT 1`.catch(() => sql`SELECT 1`)).length, 1, 'without a timeout, after a minute')

  await sql.end()
  t.equal(connections.open, 0)
})

t.test('A timeout elsewhere closes no connection that was idle before its statement', async t => {
  const wait = turnClock(t)
  const { sql, connections, backend } = await pool(t, 2)
  const before = await backend()
  wait(1900)
  const statement = sql`SELECT pg_sleep(0.3)`.execute()
  connections.suspect()
  await statement
  t.equal(connections.silent, 0)
  t.equal(await backend(), before)
})

t.test('A connection may take longer to open than a statement may take', async t => {
  const wait = turnClock(t)
  const { connections, proxy, backend } = await pool(t, 0.3, 60)
  const { arrived, release } = proxy.hold()
  const first = backend()
  await arrived
  wait(900)
  // Three checks
  await sleep(100)
  release()
  t.ok(await first)
  t.equal(connections.silent, 0)
})

t.test('A pause of the process closes no connection whose answer has arrived', async t => {
  const connections = new DatabaseConnections(0.8)
  // Without a proxy, which would pause as well
  const options = { max: 1, fetch_types: false, socket: connections.connect }
  const sql = postgres(address.href, options)
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql`SELECT`
  // One check sees that the connection is idle, and one that a statement was sent.
  await sleep(150)
  const statement = sql`SELECT pg_sleep(0.3)`.execute()
  await sleep(150)
  // A check that is due together with this timer runs in the first turn, before the pause. After it, timers run first.
  await setImmediate()
  await setImmediate()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500)
  await statement
  t.equal(connections.silent, 0)
})

t.test('A transaction on a silent connection fails, and stores nothing', async t => {
  const { sql, connections, proxy, backend } = await pool(t)
  await sql`CREATE TABLE notes (text text)`
  let end!: () => void
  let suspecting: NodeJS.Timeout | undefined
  t.teardown(() => clearInterval(suspecting))
  await t.rejects(sql.begin(async transaction => {
    await transaction`INSERT INTO notes VALUES ('never')`
    end = proxy.swallow()
    // Once counts for 600 ms, in which a busy machine may not check.
    suspecting = setInterval(() => connections.suspect(), 50)
    await transaction`INSERT INTO notes VALUES ('never')`
  }), { code: 'CONNECTION_CLOSED' })
  clearInterval(suspecting)
  end()
  await backend()
  t.strictSame([...await sql`SELECT * FROM notes`], [])
})

t.test('A Unix socket is connected to', async t => {
  const { port, hostname, username, password, pathname } = address
  const directory = await mkdtemp(join(tmpdir(), 'socket-'))
  const server = createServer(client => pipeline(client, connect(Number(port), hostname), client, () => {}))
  server.listen(join(directory, '.s.PGSQL.5432'))
  const connections = new DatabaseConnections(1)
  const options = {
    host: directory, username, password, database: pathname.slice(1), fetch_types: false, socket: connections.connect,
  }
  const sql = postgres(options)
  t.equal((await sql`SELECT 1`).length, 1)
  t.equal(connections.open, 1)
  await sql.end()
  server.close()
  await rm(directory, { recursive: true })
})

t.test('The pool of the service is watched, for longer than a statement may take', async t => {
  const { url } = await pool(t)
  for (const [statementSeconds, isWatched] of [[undefined, true], [0, false]] as const) {
    const { connections, close } = await openDatabase(
      testConfig({ DATABASE_URL: url }), { info () {}, warn () {} }, statementSeconds)
    t.equal(connections.open === 1, isWatched)
    await close()
  }
})
