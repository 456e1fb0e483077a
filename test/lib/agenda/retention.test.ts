import postgres from 'postgres'

import { eraseUser } from '#lib/accounts/erasure.js'
import { removePastRegistrations } from '#lib/agenda/retention.js'
import databaseCommand from '#lib/cli/database.js'
import { PNG } from '../../fixtures.ts'
import { build, createDatabase, inject, insert, person, untilBlocked } from '../../helper.ts'
import { call } from '../../process.ts'
import t from '../../suite.ts'

const app = await build(t)
const { sql } = app
const { DATABASE_URL } = app.config

const retention = (...args: string[]) => call(databaseCommand, { DATABASE_URL }, { args: ['retention', ...args] })
const two = ['--registrations-older-than', '2y']

const succeeded = (stdout: string, stderr = '') => ({ code: 0, signal: null, stdout, stderr })

const [club] = await sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'A club') RETURNING id`

/** Inserts an event some days from now, with registrations of some days ago. */
async function addEvent (days: number, ...registrations: number[]) {
  const [event] = await sql`
    INSERT INTO events (title, description, date, club_id)
    VALUES ('An event', 'Come', now() + ${days} * interval '1 day', ${club!.id}) RETURNING id
  `
  for (const ago of registrations) {
    const { id } = await person(app)
    await sql`
      INSERT INTO event_registrations (user_id, event_id, registered_at)
      VALUES (${id}, ${event!.id}, now() - ${ago} * interval '1 day')
    `
  }
  return event!.id as string
}

/** The counts of registrations in the list of events. */
async function listed () {
  const { events } = (await inject(app, 'GET', '/events?limit=100')).json()
  return Object.fromEntries(events.map(({ id, registrationCount }: { id: string, registrationCount: number }) =>
    [id, registrationCount]))
}

t.test('retention deletes older registrations for past events', async t => {
  const past = await addEvent(-720, 1000, 800, 729)
  const old = await addEvent(-3000, 3001)
  const coming = await addEvent(1, 1000)
  t.strictSame(await retention(...two, '--dry-run'), succeeded('Would delete 3 registrations for 2 events\n'))
  t.strictSame(await listed(), { [past]: 3, [old]: 1, [coming]: 1 })
  t.strictSame(await retention(...two), succeeded('Deleted 3 registrations\n', '3 deleted\n'))
  t.strictSame(await listed(), { [past]: 1, [old]: 0, [coming]: 1 })
  t.strictSame(await retention(...two), succeeded('Deleted 0 registrations\n'))
  const shorter = ['--registrations-older-than', '103w']
  t.strictSame(await retention(...shorter), succeeded('Deleted 1 registrations\n', '1 deleted\n'))
  t.strictSame(await listed(), { [past]: 0, [old]: 0, [coming]: 1 })
})

t.test('retention deletes no registrations for an event that is running', async t => {
  const [hours, days, over] = [await addEvent(-1 / 24, 1000), await addEvent(-3, 1000), await addEvent(-1 / 24, 1000)]
  await sql`
    INSERT INTO event_details (event_id, duration_ms)
    VALUES (${days}, 4 * 86400000), (${over}, 1800000)
  `
  t.strictSame(await retention(...two, '--dry-run'), succeeded('Would delete 1 registrations for 1 events\n'))
  t.strictSame(await retention(...two), succeeded('Deleted 1 registrations\n', '1 deleted\n'))
  t.match(await listed(), { [hours]: 1, [days]: 1, [over]: 0 })
})

t.test('retention deletes pictures that have been unused for a day', async t => {
  const add = async (hours: number) => {
    const row = { large: PNG, small: PNG, width: 1, height: 1, unused_since: new Date(Date.now() - hours * 3_600_000) }
    return await insert(app, 'pictures', row)
  }
  await add(25)
  const [used, fresh] = [await add(25), await add(23)]
  await sql`UPDATE clubs SET image_url = ${`https://api.example.org/pictures/${used}`} WHERE id = ${club!.id}`
  t.strictSame(await retention(...two, '--dry-run'),
    succeeded('Would delete 0 registrations for 0 events\nWould delete 1 unused pictures\n'))
  t.strictSame(await retention(...two), succeeded('Deleted 0 registrations\nDeleted 1 unused pictures\n'))
  t.strictSame((await sql`SELECT id FROM pictures ORDER BY id`).map(({ id }) => id), [used, fresh].sort())
})

t.test('retention deletes in batches, during deletions of events and new registrations', async t => {
  const [event, other, fresh] = [await addEvent(-1000), await addEvent(-1000), await addEvent(-1)]
  await sql`
    WITH added AS (
      INSERT INTO users (email, password, first_name, last_name)
      SELECT n || '@many.example.org', '!', 'Ada', 'Lovelace' FROM generate_series(1, 1500) AS n RETURNING id
    )
    INSERT INTO event_registrations (user_id, event_id, registered_at)
    SELECT added.id, events.id, now() - interval '1001 days'
    FROM added, (SELECT id FROM events WHERE id IN (${event}, ${other})) AS events
  `
  const [ada, admin] = [await person(app), await person(app, 'ADMIN')]
  const [outcome, registered, deleted] = await Promise.all([
    retention(...two),
    ada.inject('POST', `/events/${fresh}/register`),
    admin.inject('DELETE', `/events/${other}`),
  ])
  t.equal(outcome.code, 0)
  t.strictSame([registered.statusCode, deleted.statusCode], [201, 200])
  const counts = await listed()
  t.strictSame([counts[event], counts[other], counts[fresh]], [0, undefined, 1])
  const [{ shown, real } = {}] = await sql`
    SELECT
      (SELECT sum(count)::int FROM event_registration_counts) AS shown,
      (SELECT count(*)::int FROM event_registrations) AS real
  `
  t.equal(shown, real)
})

t.test('retention requires an age', async t => {
  const wrong = ['2', '0d', '9999y'].map(age => ['--registrations-older-than', age])
  for (const args of [[], ['2y'], ...wrong]) {
    const { code, stderr } = await retention(...args)
    t.equal(code, 1)
    t.match(stderr, /see --help/)
  }
})

t.test('retention takes the longest ages', async t => {
  for (const age of ['9999d', '9999w', '999y']) {
    t.strictSame(await retention('--registrations-older-than', age, '--dry-run'),
      succeeded('Would delete 0 registrations for 0 events\n'), age)
  }
})

t.test('A retention and an erasure at the same time do not deadlock', async t => {
  const DATABASE_URL = await createDatabase()
  const preparation = postgres(DATABASE_URL, { max: 1 })
  // Statements find the rows by different indexes, whose orders may be opposite.
  for (const scan of ['enable_seqscan', 'enable_bitmapscan']) {
    await preparation.unsafe(`ALTER DATABASE "${new URL(DATABASE_URL).pathname.slice(1)}" SET ${scan} = off`)
  }
  await preparation.end()
  const app = await build(t, { DATABASE_URL })
  const ada = await person(app)
  const id = (n: number) => `00000000-0000-7000-8000-00000000000${n}`
  await app.sql`INSERT INTO clubs (id, name, description) VALUES (${id(1)}, 'Chess', 'A club')`
  for (const n of [1, 2, 3]) {
    await app.sql`
      INSERT INTO events (id, title, description, date, club_id)
      VALUES (${id(n)}, 'An event', 'Come', now() - interval '3 years', ${id(1)})
    `
    await app.sql`
      INSERT INTO event_registrations (id, event_id, user_id, registered_at)
      VALUES (${id(4 - n)}, ${id(n)}, ${ada.id}, now() - interval '3 years')
    `
  }
  let release!: () => void
  const released = new Promise<void>(resolve => { release = resolve })
  let holder!: Promise<unknown>
  await new Promise<void>(resolve => {
    holder = app.sql.begin(async sql => {
      await sql`SELECT FROM event_registrations WHERE id = ${id(2)} FOR UPDATE`
      resolve()
      await released
    })
  })
  const both = Promise.all([removePastRegistrations(app.sql, '2y', () => {}), eraseUser(app.sql, ada.email, {})])
  await untilBlocked(app.sql, 2)
  release()
  await t.resolves(both)
  await holder
  t.strictSame([...await app.sql`SELECT FROM event_registrations`], [])
})
