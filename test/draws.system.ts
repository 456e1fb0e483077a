// A draw of seats when processes are killed, during registrations on two instances, and over many draws.
import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres, { type TransactionSql } from 'postgres'
import t from 'tap'

import { drawSeats, newSeed } from '#lib/agenda/draws.js'
import { tellDraw } from '#lib/email/enqueue-seats.js'
import { build, createDatabase, insert, MAIL, person, untilBlocked } from './helper.ts'
import { startService, stop } from './process.ts'

const app = await build(t, MAIL)
const { sql } = app
const DATABASE_URL = app.database.url
const club = await insert(app, 'clubs')
const admin = await person(app, 'ADMIN')
const people = await Promise.all(Array.from({ length: 12 }, () =>
  person(app, 'STUDENT', { email_verified_at: new Date() })))

/** An event whose seats will be drawn. */
async function withDraw (capacity = 4) {
  const id = await insert(app, 'events', { date: new Date('2999-01-01'), club_id: club })
  await admin.inject('PUT', `/agenda/${id}`, { capacity, drawAt: '2998-01-01T00:00:00Z' })
  return id
}

const letBeDue = (id: string) => sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
const drawOf = async (id: string) => (await app.inject(`/agenda/${id}/draw`)).json().draw
interface Listed { registrationId: string, userId: string, state: string }
const list = async (id: string): Promise<Listed[]> => (await admin.inject('GET', `/agenda/${id}/seats`)).json().seats

/** The ids of the registrations in the order of their lots. */
async function lotsOf (id: string) {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM event_registrations JOIN event_details USING (event_id)
    WHERE event_id = ${id} ORDER BY lot_of(draw_seed, id)
  `
  return rows.map(({ id }) => id)
}

/** Locks that stop a drawing at each of its statements that write or lock. */
const STATEMENTS: Record<string, (sql: TransactionSql, id: string) => Promise<unknown>> = {
  'the lock of the event': (sql, id) => sql`SELECT FROM events WHERE id = ${id} FOR KEY SHARE`,
  'the time of the draw': (sql, id) => sql`SELECT FROM event_details WHERE event_id = ${id} FOR UPDATE`,
  'the places in line': sql => sql`LOCK TABLE event_answers IN EXCLUSIVE MODE`,
  'the emails': sql => sql`LOCK TABLE email_batches IN EXCLUSIVE MODE`,
}

t.test('A process that is killed at any statement of a draw leaves no trace, and the next draws it', async t => {
  // A database of its own, because the service above would draw as well.
  const environment = { ...MAIL, DATABASE_URL: await createDatabase(), JWT_SECRET: 'x'.repeat(32) }
  const sql = postgres(environment.DATABASE_URL)
  t.teardown(() => sql.end())
  const club = await insert({ sql }, 'clubs')
  await sql`
    INSERT INTO users (email, password, first_name, last_name, email_verified_at)
    SELECT n || '@example.org', '!', 'Ada', 'Lovelace', now() FROM generate_series(1, 12) AS n
  `
  const find = async (id: string) => {
    const [found] = await sql<[{ isDrawn: boolean, order: string[], lots: string[], emails: number }]>`
      SELECT drawn_at IS NOT NULL AS "isDrawn",
        to_jsonb(ARRAY(
          SELECT registration_id FROM event_answers AS answers WHERE answers.event_id = ${id} ORDER BY since
        )) AS order,
        to_jsonb(ARRAY(
          SELECT id FROM event_registrations AS registrations WHERE registrations.event_id = ${id}
          ORDER BY lot_of(draw_seed, id)
        )) AS lots,
        (SELECT count(*)::int FROM email_batches WHERE key = ${id} AND template = 'draw') AS emails
      FROM event_details WHERE event_id = ${id}
    `
    return found
  }
  for (const [name, lock] of Object.entries(STATEMENTS)) {
    const id = await insert({ sql }, 'events', { date: new Date('2999-01-01'), club_id: club })
    await sql`
      INSERT INTO event_details (event_id, capacity, draw_at, draw_from, draw_seed)
      VALUES (${id}, 4, now(), now() - interval '1 hour', ${newSeed(sql)})
    `
    await sql`INSERT INTO event_registrations (user_id, event_id) SELECT id, ${id} FROM users`
    await sql.begin(async transaction => {
      await lock(transaction, id)
      const service = await startService(t, environment)
      await untilBlocked(sql)
      await stop(service, 'SIGKILL')
    })
    t.match(await find(id), { isDrawn: false, order: [], emails: 0 }, name)
    const service = await startService(t, environment)
    let found
    do found = await find(id); while (!found.isDrawn)
    await stop(service)
    t.strictSame(found.order, found.lots, name)
    t.equal(found.emails, 1, `${name}: told once`)
  }
})

t.test('Registrations beside a draw on two instances are in it or behind it, and nobody loses a seat', async t => {
  const other = await build(t, { ...MAIL, DATABASE_URL })
  for (let round = 0; round < 100; round++) {
    const id = await withDraw()
    const instances = [app, other]
    const registering = { isDone: false }
    const seated = new Set<string>()
    const poll = async () => {
      while (!registering.isDone) {
        const all = await list(id)
        const now = all.filter(({ state }) => state === 'seated').map(({ userId }) => userId)
        for (const who of seated) t.ok(now.includes(who), 'who was seen with a seat keeps it')
        for (const who of now) seated.add(who)
      }
    }
    const polling = poll()
    await Promise.all([
      ...people.map(async (who, n) => {
        await sleep(randomInt(60))
        const response = await instances[n % 2]!.inject({
          method: 'POST', url: `/events/${id}/register`, headers: { authorization: `Bearer ${who.token}` },
        })
        t.equal(response.statusCode, 201)
      }),
      sleep(30).then(async () => {
        await letBeDue(id)
        await Promise.all(instances.map(({ sql, outbox }) =>
          sql.begin(sql => drawSeats(sql, id, tellDraw(outbox)))))
      }),
    ])
    registering.isDone = true
    await polling
    const all = await list(id)
    const { order } = await drawOf(id)
    t.equal(all.length, people.length)
    t.strictSame(all.slice(0, order.length).map(({ registrationId }) => registrationId), order)
    const lots = (await lotsOf(id)).filter(lot => order.includes(lot))
    t.strictSame(order, lots)
    t.strictSame(all.map(({ state }) => state), people.map((_, n) => n < 4 ? 'seated' : 'waiting'))
  }
})

t.test('The chance of a seat does not depend on the time of the registration (concrexit #3524)', async t => {
  const [rounds, draws, size, capacity] = [20, 100, 40, 10]
  await sql`
    INSERT INTO users (email, password, first_name, last_name)
    SELECT 'crowd' || n || '@example.org', '!', 'Ada', 'Lovelace' FROM generate_series(1, ${size}) AS n
  `
  for (let round = 0; round < rounds; round++) {
    const events = await sql<{ id: string }[]>`
      WITH added AS (
        INSERT INTO events (title, description, date, club_id)
        SELECT 'Draw', 'Come and see', '2999-01-01', ${club} FROM generate_series(1, ${draws}) RETURNING id
      )
      INSERT INTO event_details (event_id, capacity, draw_at, draw_from, draw_seed)
      SELECT id, ${capacity}::integer, '2998-01-01', '2020-01-01', ${newSeed(sql)} FROM added RETURNING event_id AS id
    `
    const ids = events.map(({ id }) => id)
    await sql`
      INSERT INTO event_registrations (user_id, event_id)
      SELECT users.id, events.id FROM events CROSS JOIN users WHERE events.id IN ${sql(ids)} AND email ~ '^crowd'
      ORDER BY events.id, substring(email FROM '[0-9]+')::integer
    `
    await sql`UPDATE event_details SET draw_at = now() WHERE event_id IN ${sql(ids)}`
    for (const id of ids) await sql.begin(sql => drawSeats(sql, id, async () => {}))
  }
  const rows = await sql<{ seats: number }[]>`
    SELECT count(*) FILTER (WHERE place <= ${capacity})::int AS seats FROM (
      SELECT row_number() OVER (PARTITION BY registrations.event_id ORDER BY since) AS place,
        row_number() OVER (PARTITION BY registrations.event_id ORDER BY registrations.id) AS nth
      FROM event_registrations AS registrations JOIN event_answers ON registration_id = registrations.id
        JOIN events ON events.id = registrations.event_id
      WHERE title = 'Draw'
    ) AS drawn GROUP BY nth ORDER BY nth
  `
  t.equal(rows.length, size)
  const expected = rounds * draws * capacity / size
  const sum = rows.reduce((sum, { seats }) => sum + (seats - expected) ** 2 / expected, 0)
  // The seats of a draw are not independent, because their number is fixed.
  const chiSquared = sum / (1 - capacity / size) * (size - 1) / size
  t.comment(`χ² = ${chiSquared.toFixed(1)} with ${size - 1} degrees of freedom`)
  // By chance, one of 100,000 runs exceeds this.
  t.ok(chiSquared < 89, `${chiSquared}`)
})
