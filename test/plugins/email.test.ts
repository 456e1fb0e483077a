import { EventEmitter, once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { Type } from '@sinclair/typebox'
import postgres from 'postgres'

import { stopClock } from '../clock.ts'
import { createDatabase, inject, make, person, untilBlocked } from '../helper.ts'
import { startMailServer } from '../smtp.ts'
import t, { type Test } from '../suite.ts'

/** For tests that send no email */
const DATABASE_URL = await createDatabase()

/** A service with a route that needs email. */
async function buildWithRoute (t: Test, variables: NodeJS.Dict<string>) {
  const messages: string[] = []
  const { app } = await make(t, variables)
  app.log.info = ((...line: unknown[]) => { messages.push(String(line.at(-1))) }) as typeof app.log.info
  app.register(async app => {
    app.post('/emails', {
      onRequest: [app.requireEmail, app.authenticate],
      schema: { response: { 200: Type.Object({ emails: Type.Integer() }) } },
    }, async ({ user }) => ({
      emails: (await app.outbox.enqueue('test', app.sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${user.id}
      `, user.id)).length,
    }))
  })
  await app.ready()
  return { app, messages, ada: await person(app) }
}

t.test('Without SMTP_URL, an operation that needs email responds with 501', async t => {
  const { app, messages, ada } = await buildWithRoute(t, { DATABASE_URL, NODE_ENV: 'production' })
  const response = await ada.inject('POST', '/emails')
  t.equal(response.statusCode, 501)
  t.strictSame(response.json(), { message: 'Email is not configured' })
  t.equal((await inject(app, 'POST', '/emails')).statusCode, 501)
  const [line, ...others] = messages.filter(message => message.startsWith('Email '))
  t.equal(line, 'Email is not configured. Operations that need email respond with 501. Set SMTP_URL.')
  t.strictSame(others, [])
  t.equal(app.outbox.isConfigured, false)
  t.equal((await app.outbox.enqueue('test', app.sql`SELECT 1`, null)).length, 0)
  t.equal(app.outbox.deliveries().sent, 0)
})

t.test('In production, a start without FRONTEND_URL says that emails have no links', async t => {
  const { url } = await startMailServer(t)
  const variables = { DATABASE_URL, NODE_ENV: 'production', SMTP_URL: url, MAIL_FROM: 'community@example.org' }
  const about = ({ messages }: { messages: string[] }) => messages.filter(message => /FRONTEND_URL/.test(message))
  t.strictSame(about(await buildWithRoute(t, variables)), [
    'Frontend URL not configured. Emails do not contain links, and operations that need links respond with 501. ' +
      'Set FRONTEND_URL.',
  ])
  const FRONTEND_URL = 'https://app.example.org'
  t.strictSame(about(await buildWithRoute(t, { ...variables, FRONTEND_URL })), [])
})

t.test('With SMTP_URL the email of a route is sent', async t => {
  const { url, emails } = await startMailServer(t)
  const { app, ada } = await buildWithRoute(t, { SMTP_URL: url, MAIL_FROM: 'community@example.org' })
  t.strictSame((await ada.inject('POST', '/emails')).json(), { emails: 1 })
  while (emails.length === 0) await sleep(10)
  t.strictSame(emails[0]!.to, [ada.email])
  await app.close()
  t.equal(app.outbox.deliveries().sent, 1)
})

t.test('A stop finishes emails while requests finish', { timeout: 30_000 }, async t => {
  const smtp = new EventEmitter()
  const { url } = await startMailServer(t, {
    onData (stream, _session, done) { stream.resume().on('end', () => smtp.emit('mail', done)) },
  })
  const { app, ada } = await buildWithRoute(t, { SMTP_URL: url, MAIL_FROM: 'community@example.org', STOP_DELAY: '0' })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const received = once(app.server, 'request')
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  t.teardown(() => client.destroy())
  client.write('POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n')
  await received
  await app.sql`
    INSERT INTO emails (template, bulk, user_id, data) SELECT 'test', false, ${ada.id}, '{}' FROM generate_series(1, 2)
  `
  const [finish] = await once(smtp, 'mail')
  const pass = stopClock(t)
  const stopped = app.stop()
  const states = async () => (await app.sql`SELECT status FROM emails ORDER BY status`).map(({ status }) => status)
  while (app.server.listening) await sleep(5)
  finish(null)
  while (app.outbox.deliveries().sent === 0) await sleep(5)
  // The second delivery is given up.
  pass(5000)
  while (String(await states()) !== 'pending,sent') await sleep(10)
  client.destroy()
  await stopped
})

t.test('An email that cannot be written to its folder stays pending', async t => {
  const DATA_DIR = t.testdir()
  const { app, ada } = await buildWithRoute(t, { NODE_ENV: 'development', DATA_DIR })
  await rm(join(DATA_DIR, 'mail'), { recursive: true, force: true })
  await writeFile(join(DATA_DIR, 'mail'), 'no folder')
  await ada.inject('POST', '/emails')
  while ((await app.sql`SELECT FROM emails WHERE error IS NOT NULL`).count === 0) await sleep(10)
  t.match(await app.outbox.count(), { pending: { count: 1 } })
})

t.test('A lock on emails or on draws, such as that of a migration, delays no list and no token', async t => {
  const server = await startMailServer(t)
  const DATABASE_URL = await createDatabase()
  const { app } = await make(t, { DATABASE_URL, SMTP_URL: server.url, MAIL_FROM: 'community@example.org' })
  const locking = postgres(DATABASE_URL, { max: 1 })
  t.teardown(() => locking.end())
  await locking.begin(async sql => {
    await sql`LOCK TABLE emails, event_details`
    // A start looks for emails and for draws.
    await app.ready()
    await untilBlocked(app.database.monitor, 2)
    const ada = await person(app)
    for (const path of ['/events', '/events/registered']) {
      const start = performance.now()
      t.equal((await ada.inject('GET', path)).statusCode, 200)
      t.ok(performance.now() - start < 1000, path)
    }
  })
})
