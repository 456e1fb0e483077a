import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { databaseTime } from '#lib/database-time.js'
import { loggerOptions } from '#lib/logger.js'
import { build, inject } from '../helper.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

/** The milliseconds that an answer names. */
function timesOf (header: unknown) {
  const [, database, total] = /^db;dur=([\d.]+), total;dur=([\d.]+)$/.exec(String(header)) ?? []
  return { database: Number(database), total: Number(total) }
}

t.test('The ids that a request brings along are in every line of the log, and its own in the answer', async t => {
  const output = new PassThrough({ encoding: 'utf8' })
  let text = ''
  output.on('data', chunk => { text += chunk })
  const app = await build(t, {}, loggerOptions('trace', output as unknown as NodeJS.WriteStream))
  text = ''

  const given = { 'x-request-id': 'request-1', traceparent: `00-${TRACE}-${PARENT}-01` }
  const response = await inject(app, 'GET', '/clubs', undefined, given)
  t.equal(response.headers['x-request-id'], 'request-1')
  const lines = text.trim().split('\n').map(line => JSON.parse(line))
  t.ok(lines.length >= 2)
  for (const line of lines) t.match(line, { reqId: 'request-1', traceId: TRACE, parentId: PARENT })

  text = ''
  const other = await inject(app, 'GET', '/nowhere', undefined, { 'x-request-id': 'not\tone', traceparent: 'nor that' })
  t.match(other.headers['x-request-id'], /^[\da-f-]{36}$/)
  for (const line of text.trim().split('\n').map(line => JSON.parse(line))) {
    t.equal(line.reqId, other.headers['x-request-id'])
    t.notOk('traceId' in line || 'parentId' in line)
  }
})

t.test('Outside production an answer tells how long it took, and of that the database', async t => {
  const app = await build(t)
  const [health, missing] = [await inject(app, 'GET', '/livez'), await inject(app, 'GET', '/nowhere')]
  for (const { headers } of [health, missing]) t.equal(timesOf(headers['server-timing']).database, 0)

  await app.sql`
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.05); RETURN new; END'
  `
  await app.sql`CREATE TRIGGER wait BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION wait()`
  const body = { email: 'ada@example.org', password: 'a password', firstName: 'Ada', lastName: 'Lovelace' }
  const { headers } = await inject(app, 'POST', '/auth/register', body)
  const { database, total } = timesOf(headers['server-timing'])
  t.ok(database >= 50 && total > database, String(headers['server-timing']))
})

t.test('A transaction counts as a whole', async t => {
  const app = await build(t)
  const time = { total: 0 }
  await databaseTime.run(time, () => app.sql.begin(async sql => {
    await sql`SELECT 1`
    await sleep(20)
  }))
  t.ok(time.total >= 19, `${time.total} ms`)
})

t.test('In production it does not', async t => {
  const app = await build(t, { NODE_ENV: 'production' })
  const { headers } = await inject(app, 'GET', '/clubs')
  t.equal(headers['server-timing'], undefined)
  t.ok(headers['x-request-id'])
})
