import { readdir } from 'node:fs/promises'

import { assertMigrated, migrate, migrationStatus } from '#lib/database/migrations.js'
import { StartupError } from '#lib/config/startup-error.js'
import { build, emptyDatabase, insert, person } from '../../helper.ts'
import t from '../../suite.ts'

const app = await build(t)
const NAMES = (await readdir('migrations')).sort().map(file => file.replace('.sql', ''))

t.test('concurrent runs apply each migration once', async t => {
  const { url, sql } = await emptyDatabase(t)
  const steps = await Promise.all([migrate(url), migrate(url), migrate(url)])
  t.strictSame(steps.flat().sort(), NAMES)
  t.strictSame((await sql`SELECT name FROM pgmigrations ORDER BY id`).map(({ name }) => name), NAMES)
})

t.test('migrate closes its connection, also when it fails', async t => {
  const { url, sql } = await emptyDatabase(t)
  const others = () => sql`
    SELECT state, query FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  `
  await migrate(url)
  t.strictSame([...await others()], [])
  await migrate(url, 'down', NAMES.length)
  await sql`CREATE TABLE events ()`
  await t.rejects(migrate(url))
  t.strictSame([...await others()], [])
})

t.test('a failed migration is rolled back, and earlier migrations stay', async t => {
  const { url, sql } = await emptyDatabase(t)
  await sql`CREATE TABLE event_registrations ()`
  const failed = NAMES.findIndex(name => name.endsWith('_events'))
  await t.rejects(migrate(url), {
    message: `Migration ${NAMES[failed]} failed: relation "event_registrations" already exists`,
    cause: { code: '42P07' },
  })
  t.strictSame((await migrationStatus(sql)).filter(({ applied }) => applied).map(({ name }) => name),
    NAMES.slice(0, failed))
  t.strictSame([...await sql`SELECT to_regclass('events')`], [{ to_regclass: null }])

  await sql`DROP TABLE event_registrations`
  t.strictSame(await migrate(url), NAMES.slice(failed), 'the next run continues there')
})

t.test('migrationStatus and assertMigrated', async t => {
  const { url, sql } = await emptyDatabase(t)
  const status = (applied: number) => NAMES.map((name, i) => ({ name, applied: i < applied }))
  const lacks = (count: number) => new StartupError(
    `The database lacks ${count} migrations. Run "npm run migrate", or start with MIGRATE_ON_START=true.`
  )
  t.strictSame(await migrationStatus(sql), status(0), 'without the table of migrations')
  await t.rejects(assertMigrated(sql), lacks(NAMES.length))
  t.strictSame([...await sql`SELECT to_regclass('pgmigrations')`], [{ to_regclass: null }], 'not created')

  await migrate(url, 'up', 2)
  t.strictSame(await migrationStatus(sql), status(2))
  await t.rejects(assertMigrated(sql), lacks(NAMES.length - 2))

  await migrate(url)
  t.strictSame(await migrationStatus(sql), status(NAMES.length))
  await t.resolves(assertMigrated(sql))
})

t.test('a database with newer migrations counts as migrated', async t => {
  const { url, sql } = await emptyDatabase(t)
  await migrate(url)
  await sql`INSERT INTO pgmigrations (name, run_on) VALUES ('29990101000000000_hoverboards', now())`
  t.strictSame(await migrationStatus(sql), NAMES.map(name => ({ name, applied: true })))
  await t.resolves(assertMigrated(sql))
  t.strictSame(await migrate(url), [])
})

t.test('new_id() generates UUIDs of version 7 and variant 2 with ascending timestamps', async t => {
  const rows = await app.sql<{ before: number, id: string, after: number }[]>`
    SELECT
      floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS before,
      new_id() AS id,
      floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS after
    FROM generate_series(1, 10000)
  `
  const milliseconds = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
  const layout = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  t.strictSame(rows.filter(({ id }) => !layout.test(id)), [])
  t.strictSame(rows.filter(({ before, id, after }) => milliseconds(id) < before || milliseconds(id) > after), [])
  t.strictSame(rows.filter(({ id }, i) => i > 0 && milliseconds(id) < milliseconds(rows[i - 1]!.id)), [])
  t.equal(new Set(rows.map(({ id }) => id)).size, rows.length)
})

t.test('Triggers find their tables, whatever the path of the session, such as the path of pg_restore', async t => {
  const club = await insert(app, 'clubs')
  const [ada, event] = [await person(app), await insert(app, 'events', { club_id: club })]
  const mentor = await insert(app, 'mentors', { club_id: club })
  await app.sql.begin(async sql => {
    await sql`SET LOCAL search_path = ''`
    await sql`INSERT INTO public.event_registrations (user_id, event_id) VALUES (${ada.id}, ${event})`
    await sql`INSERT INTO public.mentor_likes (user_id, mentor_id) VALUES (${ada.id}, ${mentor})`
    await sql`INSERT INTO public.testimonials (name, content, batch_year) VALUES ('Ada', 'Good', 2020)`
    await sql`UPDATE public.events SET title = 'Another' WHERE id = ${event}`
    await sql`UPDATE public.users SET email = ${`${ada.id}@example.org`} WHERE id = ${ada.id}`
  })
  t.equal((await app.sql`SELECT FROM event_registration_counts WHERE event_id = ${event}`).length, 1)
  const functions = await app.sql<{ proname: string }[]>`
    SELECT proname FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND prorettype = 'trigger'::regtype
      AND NOT coalesce(proconfig::text LIKE '%search_path=%', false)
  `
  t.strictSame([...functions], [])
})

t.test('People who registered before an event had a number of seats get their place in line', async t => {
  const { url, sql } = await emptyDatabase(t)
  const name = NAMES.find(name => name.endsWith('_lines'))!
  await migrate(url, 'up', NAMES.indexOf(name))
  const [club] = await sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'They play') RETURNING id`
  const events = await sql`
    INSERT INTO events (title, description, date, club_id)
    SELECT 'Event', 'Chess', now(), ${club!.id} FROM generate_series(1, 2) RETURNING id
  `
  const register = (email: string) => sql`
    WITH person AS (
      INSERT INTO users (email, password, first_name, last_name) VALUES (${email}, '!', 'Ada', 'Lee') RETURNING id
    )
    INSERT INTO event_registrations (user_id, event_id) SELECT person.id, events.id FROM person, events
  `
  const setSeats = (event = events[0]!) => sql`
    INSERT INTO event_details (event_id, capacity) VALUES (${event.id}, 2)
    ON CONFLICT (event_id) DO UPDATE SET capacity = excluded.capacity
  `
  const inLine = (event = events[0]!) => sql`
    SELECT email, since = registered_at AS "isSince", answered_at = registered_at::timestamptz(3) AS "isAnswered"
    FROM event_registrations AS registrations
      JOIN users ON users.id = user_id JOIN event_answers ON registration_id = registrations.id
    WHERE registrations.event_id = ${event.id} ORDER BY since
  `
  await register('ada')
  await setSeats()
  const ada = { email: 'ada', isSince: true, isAnswered: true }
  t.strictSame([...await inLine()], [])

  await migrate(url)
  t.strictSame([...await inLine()], [ada], 'before the migration')
  t.strictSame([...await inLine(events[1])], [])
  await setSeats(events[1])
  t.strictSame([...await inLine(events[1])], [ada], 'after it')
  await sql`UPDATE event_details SET capacity = NULL WHERE event_id = ${events[0]!.id}`
  await register('eve')
  t.strictSame([...await inLine()], [ada], 'no row without seats')
  await setSeats()
  t.strictSame([...await inLine()], [ada, { ...ada, email: 'eve' }], 'when it has seats again')
})

t.test('Mentors have a natural order, whatever the locale of the server', async t => {
  const names = ['adam', 'Bela', 'Émile', 'Frida', 'zoe', 'Zoe']
  const club = await insert(app, 'clubs')
  for (const name of names.toReversed()) await insert(app, 'mentors', { name, club_id: club })
  const rows = await app.sql`SELECT name FROM mentors WHERE club_id = ${club} ORDER BY name`
  t.strictSame(rows.map(({ name }) => name), names)
})

t.test('A server that cannot be reached fails a migration with the cause', async t => {
  await t.rejects(migrate('postgres://postgres@127.0.0.1:1/postgres'), { message: /ECONNREFUSED/ })
})
