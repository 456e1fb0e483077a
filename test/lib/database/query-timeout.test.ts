import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { makeProxy } from '../../postgres-server.ts'
import { createDatabase } from '../../helper.ts'
import t, { type Test } from '../../suite.ts'

const url = await createDatabase(t)
const observer = postgres(url, { max: 1 })
t.teardown(() => observer.end())
await observer`CREATE TABLE notes (text text)`

const LATE = { code: 'QUERY_TIMEOUT', message: 'QUERY_TIMEOUT: No result within 0.3 s' }

/** A pool with one connection, which is busy until `release`. */
function pool (t: Test, address = url) {
  const sql = postgres(address, {
    max: 1, fetch_types: false, backoff: () => 0, query_timeout: 0.3, silence_timeout: 0.6,
  })
  t.teardown(() => sql.end({ timeout: 0 }))
  return sql
}

/** The rows that were written. */
async function notes () {
  const rows = await observer<{ text: string }[]>`SELECT text FROM notes ORDER BY text`
  return rows.map(({ text }) => text)
}

t.test('a query that waits for a connection fails after the timeout, and is never run', async t => {
  const sql = pool(t)
  let release!: () => void
  // A transaction may take longer.
  const busy = sql.begin(() => new Promise<void>(resolve => { release = resolve }))
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
  const address = new URL(url)
  const proxy = await makeProxy(t, Number(address.port), address.hostname)
  const sql = pool(t, Object.assign(address, { host: `127.0.0.1:${proxy.port}` }).href)
  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  const end = proxy.swallow()
  await t.rejects(sql`SELECT 2 AS two`, LATE)
  // It was sent, so it ends with its connection.
  await t.rejects(sql.begin(sql => sql`INSERT INTO notes VALUES ('late')`), { code: 'CONNECTION_CLOSED' })
  end()
  t.strictSame([...await sql`SELECT 3 AS three`], [{ three: 3 }])
  t.strictSame(await notes(), [])
})

t.test('a transaction that begins late gives its connection back', async t => {
  const address = new URL(url)
  const proxy = await makeProxy(t, Number(address.port), address.hostname)
  const sql = pool(t, Object.assign(address, { host: `127.0.0.1:${proxy.port}` }).href)
  await sql`SELECT 1`
  const { arrived, release } = proxy.hold()
  const late = sql.begin(sql => sql`INSERT INTO notes VALUES ('late')`)
  await arrived
  await sleep(400)
  release()
  await late
  t.strictSame([...await sql`DELETE FROM notes RETURNING text`], [{ text: 'late' }])
})

t.test('a query that times out while its connection is opened leaves it to others', async t => {
  const address = new URL(url)
  const proxy = await makeProxy(t, Number(address.port), address.hostname)
  const sql = pool(t, Object.assign(address, { host: `127.0.0.1:${proxy.port}` }).href)
  const { release } = proxy.hold()
  await t.rejects(sql`INSERT INTO notes VALUES ('never')`, LATE)
  release()
  t.strictSame([...await sql`SELECT 1 AS one`], [{ one: 1 }])
  t.strictSame(await notes(), [])
})

t.test('a query within the timeout is unaffected', async t => {
  const sql = pool(t)
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
