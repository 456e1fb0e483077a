import { randomInt } from 'node:crypto'

import postgres from 'postgres'

import type { Sql } from '#lib/database/pools.js'
import { migrate, migrationStatus } from '#lib/database/migrations.js'
import { createDatabase } from '../helper.ts'
import t from '../suite.ts'

const url = await createDatabase()
const sql: Sql = postgres(url, { max: 8, onnotice () {} })
t.teardown(() => sql.end())

/** Stored counts that differ from the number of rows. */
function differences () {
  return sql`
    SELECT 'registrations' AS what, id::text AS of, kept, real FROM (
      SELECT id,
        coalesce((SELECT sum(count)::int FROM event_registration_counts WHERE event_id = events.id), 0) AS kept,
        (SELECT count(*)::int FROM event_registrations WHERE event_id = events.id) AS real
      FROM events
    ) AS counts WHERE kept <> real
    UNION ALL
    SELECT 'likes', id::text, kept, real FROM (
      SELECT id,
        coalesce((SELECT sum(count)::int FROM mentor_like_counts WHERE mentor_id = mentors.id), 0) AS kept,
        (SELECT count(*)::int FROM mentor_likes WHERE mentor_id = mentors.id) AS real
      FROM mentors
    ) AS counts WHERE kept <> real
    UNION ALL
    SELECT 'rows', relation, kept, real FROM (
      SELECT relation, real,
        coalesce((SELECT sum(count)::int FROM row_counts WHERE row_counts.relation = counted.relation), 0) AS kept
      FROM (
        SELECT 'events' AS relation, count(*)::int AS real FROM events
        UNION ALL SELECT 'testimonials', count(*)::int FROM testimonials
      ) AS counted
    ) AS counts WHERE kept <> real
  `
}

await sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'A club')`
await sql`
  INSERT INTO users (email, password, first_name, last_name)
  SELECT 'user' || n || '@example.org', '!', 'Ada', 'Lovelace' FROM generate_series(1, 50) AS n
`

const some = (table: string) => sql`(SELECT id FROM ${sql(table)} ORDER BY random() LIMIT ${randomInt(4)})`

/** Random statements on the counted rows, by an operator or the service. */
const work = [
  () => sql`
    INSERT INTO events (title, description, date, club_id)
    SELECT 'An event', 'Its description', now(), id FROM clubs, generate_series(1, ${randomInt(5)})
  `,
  () => sql`
    INSERT INTO mentors (name, expertise, image_url, club_id)
    SELECT 'Grace', 'Chess', '', id FROM clubs, generate_series(1, ${randomInt(3)})
  `,
  () => sql`
    INSERT INTO testimonials (name, batch_year, content)
    SELECT 'Ada', 2020, 'Good' FROM generate_series(1, ${randomInt(5)})
  `,
  () => sql`
    INSERT INTO event_registrations (user_id, event_id)
    SELECT users.id, events.id FROM users, events WHERE random() < 0.2 ORDER BY random() ON CONFLICT DO NOTHING
  `,
  () => sql`
    INSERT INTO mentor_likes (user_id, mentor_id)
    SELECT users.id, mentors.id FROM users, mentors WHERE random() < 0.2 ORDER BY random() ON CONFLICT DO NOTHING
  `,
  () => sql`DELETE FROM event_registrations WHERE random() < 0.1`,
  () => sql`DELETE FROM mentor_likes WHERE random() < 0.1`,
  () => sql`DELETE FROM mentors WHERE id IN ${some('mentors')}`,
  () => sql`DELETE FROM testimonials WHERE id IN ${some('testimonials')}`,
  () => sql`
    WITH gone AS (SELECT id FROM events ORDER BY random() LIMIT 2), registrations AS (
      DELETE FROM event_registrations USING gone WHERE event_id = gone.id
    )
    DELETE FROM events USING gone WHERE events.id = gone.id
  `,
  () => sql`
    UPDATE event_registrations SET event_id = (SELECT id FROM events ORDER BY random() LIMIT 1)
    WHERE id IN (SELECT id FROM event_registrations ORDER BY random() LIMIT 1)
  `,
  () => sql`UPDATE mentor_likes SET mentor_id = mentor_id WHERE random() < 0.1`,
  () => sql`DELETE FROM users WHERE id IN (SELECT id FROM users WHERE NOT EXISTS (
    SELECT FROM event_registrations WHERE user_id = users.id) LIMIT 1)`,
]

/** Ignores constraint violations and deadlocks: they roll the statement back, and must not change the counts. */
const refused = ['23503', '23505', '40P01']

t.test('stored counts equal the rows after random statements on eight connections', async t => {
  for (let round = 0; round < 25; round++) {
    await Promise.all(Array.from({ length: 8 }, async () => {
      try {
        await work[randomInt(work.length)]!()
      } catch (error) {
        if (!refused.includes((error as postgres.PostgresError).code)) throw error
      }
    }))
    t.strictSame([...await differences()], [])
  }
})

t.test('stored counts equal the rows after a rollback', async t => {
  await t.rejects(sql.begin(async sql => {
    await sql`INSERT INTO testimonials (name, batch_year, content) VALUES ('Ada', 2020, 'Good')`
    throw new Error('changed my mind')
  }), { message: 'changed my mind' })
  t.strictSame([...await differences()], [])
})

t.test('the migration counts existing rows', async t => {
  const names = (await migrationStatus(sql)).map(({ name }) => name)
  await migrate(url, 'down', names.length - names.findIndex(name => name.endsWith('_counts')))
  await work[0]!()
  await migrate(url)
  t.strictSame([...await differences()], [])
})

t.test('TRUNCATE resets the counts', async t => {
  await sql`TRUNCATE event_registrations, event_answers, mentor_likes, testimonials`
  t.strictSame([...await differences()], [])
  await sql`TRUNCATE events, mentors CASCADE`
  t.strictSame([...await differences()], [])
  t.strictSame([...await sql`SELECT sum(count)::int AS left FROM event_registration_counts`], [{ left: null }])
})
