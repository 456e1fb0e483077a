import { setTimeout as sleep } from 'node:timers/promises'

import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import type { LightMyRequestResponse } from 'fastify'

import { assertResponse } from '../assertions.ts'
import { bearer, build, inject, insert, make, person, type Person } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const app = await build(t)
let admin: Person
t.beforeEach(async () => {
  await app.sql`TRUNCATE users CASCADE`
  admin = await person(app, 'ADMIN')
})

const addClub = () => insert(app, 'clubs')

const addEvent = (club: string, title = 'Chess Night') =>
  insert(app, 'events', { title, date: new Date('2030-01-31T23:30:00Z'), club_id: club })

/** Registers users for an event, a minute apart. */
async function register (event: string, people: Pick<Person, 'id'>[]) {
  for (const [n, { id }] of people.entries()) {
    const time = new Date(Date.UTC(2026, 0, 31, 9, n))
    await insert(app, 'event_registrations', { user_id: id, event_id: event, registered_at: time })
  }
}

const exportOf = (event: string) => `/exports/events/${event}/registrations.csv`

/** Parses a CSV response into rows. */
function rowsOf (t: Test, { statusCode, headers, body }: LightMyRequestResponse): string[][] {
  t.strictSame([statusCode, headers['content-type']], [200, 'text/csv; charset=utf-8'])
  t.equal(headers['cache-control'], 'no-store')
  t.ok(body.startsWith('\ufeff'), 'a BOM, so that spreadsheets detect UTF-8')
  t.ok(body.endsWith('\r\n'))
  return parse(body, { bom: true, record_delimiter: '\r\n' })
}

t.test('GET /exports/events/:id/registrations.csv lists the registrations, newest first', async t => {
  const event = await addEvent(await addClub())
  const [ada, bob] = [await person(app), await person(app, 'STUDENT', { first_name: 'Bob, "the"', last_name: 'Bée\n' })]
  await register(event, [ada, bob])
  await register(await addEvent(await addClub()), [admin])
  const response = await admin.inject('GET', exportOf(event))
  t.strictSame(rowsOf(t, response), [
    ['name', 'email', 'registeredAt', 'state', 'answeredAt'],
    ['Bob, "the" Bée ', bob.email, '2026-01-31T09:01:00.000Z', 'seated', '2026-01-31T09:01:00.000Z'],
    ['Ada Lovelace', ada.email, '2026-01-31T09:00:00.000Z', 'seated', '2026-01-31T09:00:00.000Z'],
  ])
  t.equal(response.headers['content-disposition'], 'attachment; filename="registrations-2030-01-31-chess-night.csv"')
})

t.test('GET /exports/events/:id/registrations.csv has the states of the list of seats, in all batches', async t => {
  const { sql } = app
  await sql`
    INSERT INTO users (email, password, first_name, last_name)
    SELECT 'crowd' || n || '@example.org', '!', 'Ada', 'Lovelace' FROM generate_series(1, 600) AS n
  `
  for (const [capacity, waiting] of [[550, 20], [5, 565], [600, 0], [null, 0]] as const) {
    const event = await addEvent(await addClub())
    await admin.inject('PUT', `/agenda/${event}`, { capacity })
    // Ten registrations have the same time, and the same place in line but for their ids.
    await sql`
      INSERT INTO event_registrations (user_id, event_id, registered_at)
      SELECT id, ${event}, now() + row_number() OVER () / 10 * interval '1 ms' FROM users WHERE email ~ '^crowd'
    `
    await sql`
      UPDATE event_answers SET since = registered_at FROM event_registrations AS registrations
      WHERE registrations.id = registration_id AND registrations.event_id = ${event}
    `
    await sql`
      INSERT INTO event_answers (registration_id, event_id)
      SELECT id, event_id FROM event_registrations WHERE event_id = ${event} ORDER BY registered_at, id LIMIT 30
      ON CONFLICT (registration_id) DO UPDATE SET since = NULL
    `
    const { seats } = (await admin.inject('GET', `/agenda/${event}/seats`)).json()
    const states = new Map(seats.map(({ email, state }: { email: string, state: string }) => [email, state]))
    const [, ...rows] = rowsOf(t, await admin.inject('GET', exportOf(event)))
    t.equal(rows.length, 600)
    t.strictSame(rows.filter(([, email, , state]) => states.get(email) !== state), [])
    t.equal(rows.filter(([, , , state]) => state === 'waiting').length, waiting)
  }
})

t.test('GET /exports/events/:id/registrations.csv without registrations has only the header', async t => {
  const names = [['Soirée: "Échecs"', '-soiree-echecs'], ['将棋', ''], ['x'.repeat(99), `-${'x'.repeat(50)}`]]
  for (const [title, name] of names) {
    const response = await admin.inject('GET', exportOf(await addEvent(await addClub(), title)))
    t.strictSame(rowsOf(t, response), [['name', 'email', 'registeredAt', 'state', 'answeredAt']])
    t.equal(response.headers['content-disposition'], `attachment; filename="registrations-2030-01-31${name}.csv"`)
  }
})

t.test('GET /exports/users.csv lists every user, newest first', async t => {
  await app.sql`DELETE FROM users`
  const club = await insert(app, 'clubs', { name: 'Chess' })
  const time = (n: number) => new Date(Date.UTC(2026, 0, 31, 9, n))
  const head = await person(app, 'CLUB_HEAD', { club_id: club, created_at: time(0) })
  const admin = await person(app, 'ADMIN', { created_at: time(1), password: '$argon2id$secret', idp_id: 'subject' })
  const response = await admin.inject('GET', '/exports/users.csv')
  t.strictSame(rowsOf(t, response), [
    ['email', 'firstName', 'lastName', 'role', 'club', 'createdAt'],
    [admin.email, 'Ada', 'Lovelace', 'ADMIN', '', '2026-01-31T09:01:00.000Z'],
    [head.email, 'Ada', 'Lovelace', 'CLUB_HEAD', 'Chess', '2026-01-31T09:00:00.000Z'],
  ])
  t.equal(response.headers['content-disposition'], 'attachment; filename="users.csv"')
})

t.test('Every row is exported once, even when all sort alike', async t => {
  await app.sql`
    INSERT INTO users (email, password, first_name, last_name, created_at)
    SELECT n || '@example.org', '!', 'Ada', 'Lovelace', timestamptz '2026-01-31' + n / 700 * interval '1 s'
    FROM generate_series(1, 2500) AS n
  `
  const [, ...rows] = rowsOf(t, await admin.inject('GET', '/exports/users.csv'))
  t.equal(rows.length, 2501)
  t.equal(new Set(rows.map(([email]) => email)).size, 2501)
  const times = rows.map(row => row.at(-1)!)
  t.strictSame(times, times.toSorted().reverse())
  const thousand = await app.sql`DELETE FROM users WHERE ctid IN (SELECT ctid FROM users OFFSET 1000)`
  t.equal(thousand.count, 1501)
  t.equal(rowsOf(t, await admin.inject('GET', '/exports/users.csv')).length, 1001, 'a full batch and a last one')
})

t.test('Long rows are exported in batches that end by bytes', async t => {
  await app.sql`
    INSERT INTO users (email, password, first_name, last_name)
    SELECT n || '@example.org', '!', repeat('x', 100000), 'Lovelace' FROM generate_series(1, 10) AS n
  `
  const [, ...rows] = rowsOf(t, await admin.inject('GET', '/exports/users.csv'))
  t.strictSame(rows.map(([email]) => email).sort(),
    [...Array.from({ length: 10 }, (_, n) => `${n + 1}@example.org`), admin.email].sort())
})

t.test('One batch at a time is read of four connections', async t => {
  const four = await build(t, { DATABASE_URL: app.config.DATABASE_URL, DATABASE_POOL_SIZE: '4' })
  let responses: Promise<LightMyRequestResponse[]>
  await app.sql.begin(async sql => {
    await sql`LOCK TABLE clubs`
    const get = () => inject(four, 'GET', '/exports/users.csv', undefined, bearer(admin.token))
    responses = Promise.all(Array.from({ length: 3 }, get))
    const reading = () => app.database.shortSql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `
    while ((await reading()).length === 0 || four.queues.lists.waiting < 2) await sleep(10)
    t.equal((await reading()).length, 1)
  })
  for (const { statusCode } of await responses!) t.equal(statusCode, 200)
})

t.test('Cells contain the text as entered, except that formulas are escaped and line breaks are spaces', async t => {
  const text = fc.array(fc.oneof(fc.string({ unit: 'binary', maxLength: 10 }), fc.constantFrom(
    '=1+1', '+', '-', '@SUM(A1)', '\t', '\r', '\n', '"', ',', ';', '=cmd|\' /C calc\'!A0', '\r\n=1', '\ufeff', '＝1', '|'
  )), { maxLength: 4 }).map(parts => parts.join('').replaceAll('\0', ''))
  const event = await addEvent(await addClub())
  const ada = await person(app)
  await register(event, [ada])
  await fc.assert(fc.asyncProperty(text, text, async (first, last) => {
    await app.sql`UPDATE users SET first_name = ${first}, last_name = ${last} WHERE id = ${ada.id}`
    const [, [name] = []] = rowsOf(t, await admin.inject('GET', exportOf(event)))
    const whole = `${first} ${last}`.replaceAll(/\r\n|[\r\n]/g, ' ')
    t.equal(name!.replaceAll("'", ''), whole.replaceAll("'", ''), JSON.stringify([whole, name]))
    t.notMatch(name, /^[=+\-@\t]|[\r\n]/)
    if (!t.passing()) throw new Error('It is another')
  }), { numRuns: 60 })
})

t.test('A file that cannot be read to the end is truncated detectably', async t => {
  // The recording of responses buffers them, and would hide it.
  const { app: service } = await make(t, { DATABASE_URL: app.config.DATABASE_URL })
  await app.sql`
    INSERT INTO users (email, password, first_name, last_name, created_at)
    SELECT n || '@example.org', '!', repeat('x', 3000), 'Lovelace', timestamptz '2026-01-31'
    FROM generate_series(1, 12000) AS n
  `
  const url = await service.listen({ host: '127.0.0.1', port: 0 })
  const response = await fetch(`${url}/exports/users.csv`, { headers: bearer(admin.token) })
  t.equal(response.status, 200)
  await service.sql.end({ timeout: 0 })
  await t.rejects(response.text())
})

t.test('HEAD of a file has its headers, and reads no rows', async t => {
  const event = await addEvent(await addClub())
  for (const [path, table] of [['/exports/users.csv', 'users'], [exportOf(event), 'event_registrations']] as const) {
    await app.sql`ALTER TABLE ${app.sql(table)} RENAME TO unread`
    const { statusCode, headers, body } = await inject(app, 'HEAD', path, undefined, bearer(admin.token))
    t.strictSame([statusCode, headers['content-type'], body], [200, 'text/csv; charset=utf-8', ''])
    t.match(headers['content-disposition'], /^attachment; filename="[\w-]+\.csv"$/)
    await app.sql`ALTER TABLE unread RENAME TO ${app.sql(table)}`
  }
})

t.test('A file that cannot be read is an error, not a file', async t => {
  await app.sql`ALTER TABLE users RENAME TO broken`
  const response = await admin.inject('GET', '/exports/users.csv')
  await app.sql`ALTER TABLE broken RENAME TO users`
  assertResponse(t, response, 500, { message: 'Error fetching users' })
  t.equal(response.headers['content-disposition'], undefined)
})

t.test('No reader finds a row or a formula of its own in a name', async t => {
  const names = [
    'Mallory\n=HYPERLINK(A1)', 'Mallory\r\n+1', 'Mallory;=1+1', 'Mallory\t@SUM(A1)', 'x;"=1', 'x\t "-1', ';;=1',
    '=1;=2', '"\n=1', '\t=1', '\r', "x;'=1", 'x; ＝1', ',=1', 'Mallory;"', 'Mallory\t',
  ]
  for (const name of names) await person(app, 'STUDENT', { first_name: name, last_name: name })
  const { body } = await admin.inject('GET', '/exports/users.csv')
  for (const delimiter of [',', ';', '\t']) {
    const rows: string[][] = parse(body, {
      bom: true, delimiter, record_delimiter: ['\r\n', '\n', '\r'], relax_quotes: true, relax_column_count: true,
    })
    t.equal(rows.length, 1 + names.length + 1, JSON.stringify(delimiter))
    t.strictSame(rows.flat().filter(cell => /^["\s]*[=+\-@＝]/.test(cell)), [], JSON.stringify(delimiter))
  }
})
