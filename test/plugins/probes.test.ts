import postgres from 'postgres'

import { createLogger } from '#lib/http/logger.js'
import { build, createDatabase, inject, readOnly, untilBlocked } from '../helper.ts'
import t from '../suite.ts'

const DATABASE_URL = await createDatabase()
const app = await build(t, { DATABASE_URL })

t.test('GET /livez returns 200 while the process runs', async t => {
  const response = await inject(app, 'GET', '/livez')
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(response.json(), { message: 'Alive' })
})

t.test('GET /livez ignores credentials', async t => {
  t.equal((await inject(app, 'GET', '/livez', undefined, { authorization: 'Bearer garbage' })).statusCode, 200)
})

t.test('GET /readyz returns 200 when the database is reachable and its schema up to date', async t => {
  const response = await inject(app, 'GET', '/readyz')
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(response.json(), { message: 'Ready' })
})

t.test('GET /readyz returns 503 while a migration is missing', async t => {
  const lines: { level: number, reqId: string, err: { message: string } }[] = []
  const stream = { write (line: string) { lines.push(JSON.parse(line)) } }
  const app = await build(t, { DATABASE_URL }, createLogger('warn', stream))
  const [last] = await app.sql`
    DELETE FROM pgmigrations WHERE id = (SELECT max(id) FROM pgmigrations) RETURNING name, run_on::text
  `
  // The second passes when the test says so.
  const { setTimeout } = globalThis
  const timers: (() => void)[] = []
  const timeouts = t.capture(globalThis, 'setTimeout', ((...timer: [() => void, number]) =>
    timer[1] === 1000 ? { unref: () => timers.push(timer[0]) } : setTimeout(...timer)) as typeof setTimeout)
  const response = await inject(app, 'GET', '/readyz')
  t.strictSame([response.statusCode, response.json()], [503, { message: 'Not ready' }])
  t.match(lines, [{ level: 40, reqId: /./, err: { message: /lacks 1 migration\. / } }], 'the log has the reason')

  await app.sql`INSERT INTO pgmigrations (name, run_on) VALUES (${last!.name}, ${last!.run_on}::timestamp)`
  t.equal((await inject(app, 'GET', '/readyz')).statusCode, 503, 'the check counts for a second')
  timeouts.restore()
  t.equal(timers.length, 1)
  timers[0]!()
  t.equal((await inject(app, 'GET', '/readyz')).statusCode, 200, 'ready again')
})

t.test('GET /readyz returns 503 without a schema', async t => {
  const app = await build(t)
  await app.sql`DROP TABLE pgmigrations`
  const response = await inject(app, 'GET', '/readyz')
  t.strictSame([response.statusCode, response.json()], [503, { message: 'Not ready' }])
})

t.test('GET /readyz returns 200 for a read-only database, and says that it is', async t => {
  const app = await build(t, { DATABASE_URL: readOnly(DATABASE_URL) })
  const response = await inject(app, 'GET', '/readyz')
  t.strictSame([response.statusCode, response.json()], [200, { message: 'Ready, but the database is read-only' }])
  t.equal((await inject(app, 'GET', '/clubs')).statusCode, 200, 'people can read')
})

t.test('GET /livez returns 200 without a database, and GET /readyz 503', async t => {
  const app = await build(t, { DATABASE_URL })
  await Promise.all([app.sql, app.database.monitor].map(sql => sql.end({ timeout: 0 })))
  t.equal((await inject(app, 'GET', '/livez')).statusCode, 200)
  const response = await inject(app, 'GET', '/readyz')
  t.strictSame([response.statusCode, response.json()], [503, { message: 'Not ready' }])
})

t.test('GET /readyz returns 200 while slow statements use all connections', async t => {
  const app = await build(t, { DATABASE_URL, DATABASE_POOL_SIZE: '1' })
  const locking = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => locking.end())
  const slow = await locking.begin(async sql => {
    await sql`LOCK TABLE mentors`
    const slow = Array.from({ length: 3 }, () => app.sql`SELECT FROM mentors`.execute())
    await untilBlocked(app.database.monitor)
    t.equal((await inject(app, 'GET', '/readyz')).statusCode, 200)
    return { ended: Promise.allSettled(slow) }
  })
  await slow.ended
})

t.test('Probes share a check, which delays no cached response', async t => {
  const app = await build(t, { DATABASE_URL })
  t.equal((await inject(app, 'GET', '/clubs')).statusCode, 200)
  await app.sql.begin(async sql => {
    await sql`LOCK TABLE pgmigrations`
    const ready = Array.from({ length: 20 }, () => inject(app, 'GET', '/readyz'))
    await untilBlocked(app.sql)
    t.equal((await inject(app, 'GET', '/clubs')).statusCode, 200)
    const [{ count }] = await app.sql`
      SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    ` as unknown as [{ count: number }]
    t.equal(count, 1)
    return { ready }
  }).then(async ({ ready }) => {
    for (const { statusCode } of await Promise.all(ready)) t.equal(statusCode, 200)
  })
})
