import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { setPassword } from '#lib/accounts/accounts.js'
import { driverOptions } from '#lib/database/pools.js'
import { createLogger } from '#lib/http/logger.js'
import { StartupError } from '#lib/config/startup-error.js'
import { PNG } from '../fixtures.ts'
import {
  bearer, build, createDatabase, inject, insert, make as makeService, person, readOnly, untilBlocked,
} from '../helper.ts'
import { currentRun } from '../run.ts'
import t, { type Test } from '../suite.ts'

const MIGRATIONS = (await readdir('migrations')).length
const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: 'correct horse' }

/** Builds the service, and collects the messages that it logs. */
async function make (t: Test, variables: NodeJS.Dict<string>) {
  const messages: string[] = []
  const logger = createLogger('info', { write (line) { messages.push(JSON.parse(line).msg) } })
  const { app } = await makeService(t, variables, logger)
  return { app, messages, ready: async () => { await app.ready() } }
}

t.test('The service does not start on an outdated schema, but MIGRATE_ON_START brings it up to date, once', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  await t.rejects((await make(t, { DATABASE_URL })).ready(), new StartupError(
    `The database lacks ${MIGRATIONS} migrations. Run "npm run migrate", or start with MIGRATE_ON_START=true.`
  ))
  const variables = { DATABASE_URL, MIGRATE_ON_START: 'true' }
  const first = await make(t, variables)
  await first.app.ready()
  t.strictSame(first.messages, [`Applied migrations: ${MIGRATIONS}`])
  t.equal((await inject(first.app, 'GET', '/readyz')).statusCode, 200)

  const second = await make(t, variables)
  await second.app.ready()
  t.strictSame(second.messages, [])
})

t.test('A start does not write to an account that is an admin already', async t => {
  const DATABASE_URL = await createDatabase()
  const { sql } = await build(t, { DATABASE_URL, ...ADMIN })
  const version = async () => (await sql`SELECT xmin::text, updated_at FROM users`)[0]
  const before = await version()
  await build(t, { DATABASE_URL, ...ADMIN })
  t.strictSame(await version(), before)
})

t.test('The service starts on a read-only database, with a warning', async t => {
  const service = await make(t, { DATABASE_URL: readOnly(await createDatabase()) })
  await service.ready()
  t.strictSame(service.messages, [
    'The database is read-only, so every write fails. Look for default_transaction_read_only, or a standby',
  ])
})

t.test('An acknowledged registration is stored, even during other transactions', async t => {
  const DATABASE_URL = await createDatabase()
  const cases = [
    { pool: 1, likes: 101, changes: 1, registrations: 12 },
    { pool: 10, likes: 836, changes: 4, registrations: 60 },
  ]
  for (const { pool, likes, changes, registrations } of cases) {
    const app = await build(t, { DATABASE_URL, DATABASE_POOL_SIZE: String(pool), DATABASE_TIMEOUT: '60' })
    const { shortSql } = app.database
    const { operations } = app.queues
    const untilQueued = async (count: number) => {
      while (operations.running + operations.waiting < count) await sleep(5)
    }
    const admin = await person(app, 'ADMIN')
    const club = await insert(app, 'clubs')
    const mentor = await insert(app, 'mentors', { club_id: club })
    const event = await insert(app, 'events', { club_id: club })
    const students = await app.sql<{ id: string }[]>`
      INSERT INTO users (email, password, first_name, last_name)
      SELECT ${pool} || '-' || n || '@example.org', '!', 'Ada', 'Lovelace' FROM generate_series(1, ${likes}::int) AS n
      RETURNING id
    `
    const send = (index: number, url: string) =>
      inject(app, 'POST', url, undefined, bearer(app.issueToken({ id: students[index]!.id, role: 'STUDENT' })))
    const holder = postgres(DATABASE_URL, { max: 1 })
    const requests: Promise<{ statusCode: number }>[] = []
    const acknowledged: Promise<{ statusCode: number }>[] = []
    await holder.begin(async sql => {
      await sql`LOCK mentor_likes`
      for (let i = 0; i < likes; i++) requests.push(send(i, `/mentors/${mentor}/like`))
      await untilBlocked(shortSql, pool)
      await untilQueued(likes)
      for (let i = 0; i < changes; i++) requests.push(admin.inject('PUT', `/events/${event}`, { title: `Title ${i}` }))
      await untilQueued(likes + changes)
      for (let i = 0; i < registrations; i++) acknowledged.push(send(i, `/events/${event}/register`))
      await untilQueued(likes + changes + registrations)
    })
    await holder.end()
    t.strictSame(new Set((await Promise.all(requests)).map(({ statusCode }) => statusCode)), new Set([200]))
    t.strictSame(new Set((await Promise.all(acknowledged)).map(({ statusCode }) => statusCode)), new Set([201]))
    const [stored] = await shortSql`SELECT count(*)::int FROM event_registrations WHERE event_id = ${event}`
    t.strictSame(stored, { count: registrations }, `${pool} connections`)
    t.strictSame([...await shortSql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
    `], [])
    t.equal(app.database.connections.stray, 0)
  }
})

t.test('Closing returns every connection, also after a failed start', async t => {
  const sql = postgres({ ...driverOptions(currentRun().url), max: 1 })
  t.teardown(() => sql.end())
  const connections = (url: string) => sql`
    SELECT FROM pg_stat_activity WHERE datname = ${new URL(url).pathname.slice(1)}
  `
  for (const migrated of [true, false]) {
    const url = await createDatabase({ migrated })
    const { app, ready } = await make(t, { DATABASE_URL: url })
    await ready().catch(() => {})
    t.not((await connections(url)).length, 0)
    await app.close()
    // The server notices a closed connection a moment later.
    while ((await connections(url)).length > 0);
    t.strictSame([...await connections(url)], [])
  }
})

t.test('ADMIN_EMAIL and ADMIN_PASSWORD create an admin who can sign in', async t => {
  const DATABASE_URL = await createDatabase()
  const first = await make(t, { DATABASE_URL, ...ADMIN })
  await first.app.ready()
  t.strictSame(first.messages, ['Admin account created from ADMIN_EMAIL'])
  const credentials = { email: ADMIN.ADMIN_EMAIL, password: ADMIN.ADMIN_PASSWORD }
  const response = await inject(first.app, 'POST', '/auth/login', credentials)
  t.equal(response.statusCode, 200)
  t.match(response.json(), { user: { email: ADMIN.ADMIN_EMAIL, role: 'ADMIN' } })
  const rows = await first.app.sql`SELECT id, password, role FROM users`

  const second = await make(t, { DATABASE_URL, ...ADMIN, ADMIN_PASSWORD: 'another password' })
  await second.app.ready()
  t.strictSame(second.messages, [], 'a second start finds the account')
  t.strictSame([...await second.app.sql`SELECT id, password, role FROM users`], [...rows])
})

t.test('An existing account becomes an admin, and keeps its password', async t => {
  const other = await build(t)
  const { id, email } = await person(other, 'STUDENT', { email: ADMIN.ADMIN_EMAIL })
  await setPassword(other.sql, email, 'her own password')

  const { app, messages } = await make(t, { DATABASE_URL: other.config.DATABASE_URL, ...ADMIN })
  await app.ready()
  t.strictSame(messages, ['Existing account promoted to admin by ADMIN_EMAIL'])
  t.strictSame([...await app.sql`SELECT id, role FROM users`], [{ id, role: 'ADMIN' }])
  const signIn = async (password: string) =>
    (await inject(app, 'POST', '/auth/login', { email, password })).statusCode
  t.equal(await signIn('her own password'), 200)
  t.equal(await signIn(ADMIN.ADMIN_PASSWORD), 401)
})

t.test('Dates and pictures are read, however the database writes them for other programs', async t => {
  const DATABASE_URL = await createDatabase()
  const sql = postgres(DATABASE_URL, { max: 1 })
  for (const setting of ["datestyle = 'German'", "bytea_output = 'escape'"]) {
    await sql.unsafe(`ALTER DATABASE "${new URL(DATABASE_URL).pathname.slice(1)}" SET ${setting}`)
  }
  await sql.end()
  const app = await build(t, { DATABASE_URL })
  const picture = await insert(app, 'pictures', { large: PNG, small: PNG, width: 1, height: 1 })
  for (const query of ['', '?width=480']) {
    t.strictSame((await inject(app, 'GET', `/pictures/${picture}${query}`)).rawPayload, PNG)
  }
  const event = await insert(app, 'events', { club_id: await insert(app, 'clubs'), date: '2026-01-31T09:30Z' })
  const endsAt = '2026-01-31T11:30:00.000Z'
  const response = await (await person(app, 'ADMIN')).inject('PUT', `/agenda/${event}`, { endsAt })
  t.equal(response.json().event.endsAt, endsAt)
})
