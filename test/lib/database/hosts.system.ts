import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

import postgres from 'postgres'
import t from 'tap'

import { openDatabase } from '#lib/database/client.js'

import { migrate } from '#lib/database/migrations.js'
import { StartupError } from '#lib/errors.js'
import { hostUrls } from '#lib/formats.js'
import { PostgresServer } from '../../postgres-server.ts'
import { testConfig } from '../../helper.ts'
import { freePort } from '../../process.ts'

const log = { info () {}, warn () {} }

const primary = await PostgresServer.create(t)
const standby = await primary.standby(t)
await Promise.all([primary.start(), standby.start()])
const closed = await freePort()

/** The URL of a database on several hosts. */
const urlOf = (ports: number[], database = 'postgres') =>
  `postgres://postgres@${ports.map(port => `127.0.0.1:${port}`).join()}/${database}`

async function open (ports: number[]) {
  return openDatabase(testConfig({ DATABASE_URL: urlOf(ports), DATABASE_POOL_SIZE: '4', DATABASE_TIMEOUT: '2' }), log)
}

/** The ports that concurrent statements reach. */
async function reached (sql: postgres.Sql) {
  const rows = await Promise.all(Array.from({ length: 8 }, () => sql`
    SELECT inet_server_port() AS port, pg_sleep(0.02)
  `))
  return [...new Set(rows.map(([row]) => row!.port))]
}

t.test('hostUrls returns the URL of each host', async t => {
  t.strictSame(hostUrls('postgres://localhost'), ['postgres://localhost'])
  t.strictSame(hostUrls('postgresql://ada:a,b%40@one:5433,two/x?application_name=y,z'), [
    'postgresql://ada:a,b%40@one:5433/x?application_name=y,z', 'postgresql://ada:a,b%40@two/x?application_name=y,z',
  ])
  t.strictSame(hostUrls('postgres://[::1]:5433,[::2]'), ['postgres://[::1]:5433', 'postgres://[::2]'])
  t.strictSame(hostUrls('postgres:///x?host=/run,/tmp'), ['postgres:///x?host=/run,/tmp'])
})

const ORDERS: Record<string, number[]> = {
  'the standby first': [standby.port, primary.port],
  'the standby second': [primary.port, standby.port],
  'nothing on the first': [closed, standby.port, primary.port],
}

t.test('A host without a port has the default one', async t => {
  const DATABASE_URL = `postgres://postgres@127.0.0.9,127.0.0.1:${primary.port}/postgres`
  const { sql, close } = await openDatabase(testConfig({ DATABASE_URL, DATABASE_TIMEOUT: '2' }), log)
  t.teardown(close)
  t.strictSame(await reached(sql), [primary.port])
})

for (const [name, ports] of Object.entries(ORDERS)) {
  t.test(`Of several hosts, the primary is used: ${name}`, async t => {
    const { sql, probe, url, close } = await open(ports)
    t.teardown(close)
    t.equal(url, urlOf(ports))
    t.strictSame(await reached(sql), [primary.port])
    t.strictSame(await reached(probe), [primary.port])

    const database = `order_${ports.indexOf(primary.port)}`
    await sql`CREATE DATABASE ${sql(database)}`
    const steps = await migrate(urlOf(ports, database))
    t.ok(steps.length > 0)
    t.strictSame(await migrate(urlOf(ports, database)), [])
  })
}

t.test('A host that does not respond is skipped after the timeout', async t => {
  const silent = createServer(socket => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { sql, stats, close } = await open([(silent.address() as AddressInfo).port, standby.port, primary.port])
  t.teardown(close)
  t.strictSame(await reached(sql), [primary.port])
  t.equal(stats.late, 0)
})

t.test('Without a primary the service does not start', async t => {
  const refusal = async (ports: number[]) => open(ports).catch(error => error instanceof StartupError && error.message)
  const cannot = (...ports: number[]) =>
    `Cannot reach the database at ${ports.map(port => `127.0.0.1:${port}`).join()}/postgres:`
  t.equal(await refusal([closed, standby.port]), `${cannot(closed, standby.port)} it takes no writes`)
  t.equal(await refusal([standby.port, closed]),
    `${cannot(standby.port, closed)} connect ECONNREFUSED 127.0.0.1:${closed}`)
  await t.rejects(migrate(urlOf([closed, standby.port])), { message: 'The database takes no writes' })
  await t.rejects(migrate(urlOf([standby.port, closed])), { code: 'ECONNREFUSED' })
})

t.test('A host that does not accept connections yet is skipped', async t => {
  const onStandby = postgres(standby.url(), { max: 1 })
  await onStandby`ALTER SYSTEM SET hot_standby = off`
  await onStandby.end()
  await standby.restart('fast')
  const { sql, close } = await open([standby.port, primary.port])
  t.teardown(close)
  t.strictSame(await reached(sql), [primary.port])
})

t.test('After a fail-over the pool finds the new primary', async t => {
  const { sql, stats, close } = await open([primary.port, standby.port])
  t.teardown(close)
  t.strictSame(await reached(sql), [primary.port])

  await primary.stop('immediate')
  // No primary: statements fail at once, and the driver waits after each round of hosts.
  const start = performance.now()
  for (let times = 0; times < 12; times++) await t.rejects(sql`CREATE TABLE notes ()`)
  t.ok(performance.now() - start > 100, 'no storm of connections')
  await standby.promote()
  const isFound = () => reached(sql).then(([port]) => port === standby.port, () => false)
  while (!await isFound());
  await sql`CREATE TABLE notes ()`
  t.strictSame(await reached(sql), [standby.port])
  t.equal(stats.late, 0)
})
