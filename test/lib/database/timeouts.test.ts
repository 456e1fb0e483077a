import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import type { Sql } from '#lib/database/client.js'
import { withQueryTimeout } from '#lib/database/timeouts.js'
import { makeProxy } from '../../cluster.ts'
import { createDatabase } from '../../helper.ts'

const url = await createDatabase(t)
const observer = postgres(url, { max: 1 })
t.teardown(() => observer.end())
await observer`CREATE TABLE notes (text text)`

const LATE = { name: 'TimeoutError', message: 'no answer within 0.3 s' }

/** A pool with one connection, which is busy until `release`. */
function pool (t: Test, address = url) {
  const sql: Sql = postgres(address, { max: 1, fetch_types: false })
  t.teardown(() => sql.end({ timeout: 0 }))
  return { sql: withQueryTimeout(sql, 0.3), unlimited: sql }
}

/** The rows that were written. */
async function notes () {
  const rows = await observer<{ text: string }[]>`SELECT text FROM notes ORDER BY text`
  return rows.map(({ text }) => text)
}

t.test('a query that waits for a connection fails after the timeout, and is never run', async t => {
  const { sql, unlimited } = pool(t)
  let release!: () => void
  const busy = unlimited.begin(() => new Promise<void>(resolve => { release = resolve }))
  await t.rejects(sql`INSERT INTO notes VALUES ('never')`, LATE)
  await t.rejects(Promise.all([sql`SELECT 1`, sql`SELECT 2`]), LATE)
  await t.rejects(sql`SELECT 1`.raw(), LATE)
  await t.rejects(sql`SELECT 1`.forEach(() => {}), LATE)
  await t.rejects(sql.begin(sql => sql`INSERT INTO notes VALUES ('never')`), LATE)
  release()
  await busy
  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }], 'the connection is usable')
  t.strictSame(await notes(), [])
})

t.test('a query on a silent server fails after the timeout, and the pool recovers', async t => {
  const { hostname, port } = new URL(url)
  const sockets: Socket[] = []
  const proxy = createServer(client => {
    const server = connect(Number(port), hostname)
    for (const socket of [client, server]) sockets.push(socket.on('error', () => {}))
    client.pipe(server).pipe(client)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  const address = new URL(url)
  address.port = String((proxy.address() as AddressInfo).port)
  address.hostname = '127.0.0.1'
  const { sql } = pool(t, address.href)

  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  const [client, server] = sockets
  client!.unpipe()
  await t.rejects(sql`SELECT 2 AS two`, LATE)
  await t.rejects(sql.begin(sql => sql`INSERT INTO notes VALUES ('late')`), LATE)
  client!.pipe(server!)
  t.strictSame([...await sql`SELECT 3 AS three`], [{ three: 3 }])
  t.strictSame(await notes(), [])
})

t.test('a query that times out while its connection is opened leaves it to others', async t => {
  const address = new URL(url)
  const proxy = await makeProxy(t, Number(address.port), address.hostname)
  const { sql } = pool(t, Object.assign(address, { host: `127.0.0.1:${proxy.port}` }).href)
  const { release } = proxy.hold()
  await t.rejects(sql`INSERT INTO notes VALUES ('never')`, LATE)
  release()
  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  t.strictSame(await notes(), [])
})

t.test('a query within the timeout is unaffected', async t => {
  const { sql } = pool(t)
  const inserted = sql`INSERT INTO notes VALUES (${'one'}), (${'two'}) RETURNING text`
  t.strictSame([...await inserted], [{ text: 'one' }, { text: 'two' }])
  t.strictSame([...await inserted], [{ text: 'one' }, { text: 'two' }], 'and may be awaited twice')
  const fragment = sql`WHERE text = ${'one'}`
  t.strictSame([...await sql`SELECT text FROM ${sql('notes')} ${fragment}`], [{ text: 'one' }])
  await t.rejects(sql`SELECT 1 / 0`, { code: '22012' })
  t.equal(await sql.begin(async sql => (await sql`DELETE FROM notes`).count), 2)
  await t.rejects(sql.begin(async sql => {
    await sql`INSERT INTO notes VALUES ('taken back')`
    throw new Error('No')
  }), { message: 'No' })
  t.strictSame(await notes(), [])
})
