// Runs migrations alongside a service, and each migration up and down.
import { readdir } from 'node:fs/promises'

import postgres from 'postgres'
import t from 'tap'

import type { Role } from '#lib/values/roles.js'
import { createPools } from '#lib/database/pools.js'
import { migrate } from '#lib/database/migrations.js'
import { toggleLike } from '#routes/mentors/queries.js'
import { emptyDatabase, testConfig } from '../../helper.ts'

const NAMES = (await readdir('migrations')).sort().map(file => file.replace('.sql', ''))

/** The schema, as PostgreSQL describes it. */
async function dump (sql: postgres.Sql) {
  const rows = await sql<{ definition: string }[]>`
    SELECT concat_ws(
      ' ', 'column', relname, attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END,
      pg_get_expr(adbin, adrelid), collname, 'identity', attidentity, 'generated', attgenerated
    ) AS definition
    FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
    LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm', 'p') AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT concat_ws(' ', 'relation', relkind, relname, relpersistence, relacl)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT concat_ws(' ', 'type', typtype, typname) FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'extension', extname) FROM pg_extension
    ORDER BY 1
  `
  return rows.map(({ definition }) => definition)
}

t.test('the down part of each migration reverts its up part', async t => {
  const { url, sql } = await emptyDatabase(t)
  t.strictSame(await migrate(url, 'down'), [], 'nothing to revert')
  for (const name of NAMES) {
    const before = await dump(sql)
    t.strictSame(await migrate(url, 'up', 1), [name])
    const after = await dump(sql)
    t.strictNotSame(after, before)
    t.strictSame(await migrate(url, 'down'), [name])
    t.strictSame(await dump(sql), before, `down ${name}`)
    t.strictSame(await migrate(url, 'up', 1), [name])
    t.strictSame(await dump(sql), after, `up ${name}`)
  }
})

t.test('uploaded pictures are found by addresses in upper case that 1.0.0 has stored', async t => {
  const { url, sql } = await emptyDatabase(t)
  await migrate(url, 'up', NAMES.findIndex(name => name.endsWith('_pictures')) + 1)
  const id = '0190A1B2-C3D4-7E5F-8A6B-7C8D9E0F1A2B'
  await sql`INSERT INTO clubs (name, description, image_url) VALUES ('Chess', '', ${`https://example.org/pictures/${id}`})`
  await migrate(url)
  await sql`SET enable_seqscan = off`
  const { count } = await sql`SELECT FROM clubs WHERE picture_ids(image_url) @> ARRAY[${id}::uuid]`
  t.equal(count, 1)
})

// Statements that do not need the last migration run while it is reverted and applied again. It locks only `users`.
t.test('operations continue while a migration waits for a long read', async t => {
  const { url } = await emptyDatabase(t)
  const last = NAMES.findIndex(name => name.endsWith('_tokens-and-limits'))
  await migrate(url, 'up', last + 1)

  const { sql, close } = createPools(url, testConfig({ DATABASE_POOL_SIZE: '4' }), console)
  t.teardown(close)
  const [club] = await sql<{ id: string }[]>`INSERT INTO clubs (name, description) VALUES ('Chess', '') RETURNING id`
  const [mentor] = await sql<{ id: string }[]>`
    INSERT INTO mentors (name, expertise, image_url, club_id) VALUES ('Grace', '', '', ${club!.id}) RETURNING id
  `
  const users = await sql<{ id: string, role: Role }[]>`
    INSERT INTO users (email, password, first_name, last_name, role, club_id)
    SELECT n || '@example.org', '!', 'Ada', 'Lovelace', 'ADMIN', ${club!.id} FROM generate_series(1, 4) AS n
    RETURNING id, role
  `

  const migrated = new AbortController()
  let longest = 0
  const timed = async <T>(operation: PromiseLike<T>) => {
    const begin = performance.now()
    const result = await operation
    longest = Math.max(longest, performance.now() - begin)
    return result
  }
  const operate = async (user: { id: string, role: Role }) => {
    while (!migrated.signal.aborted) {
      const [event] = await timed(sql<{ id: string }[]>`
        INSERT INTO events (title, description, image_url, date, club_id)
        VALUES ('Open day', 'All day', '', '2026-01-31', ${club!.id}) RETURNING id
      `)
      await timed(sql`INSERT INTO event_registrations (user_id, event_id) VALUES (${user.id}, ${event!.id})`)
      await timed(toggleLike(sql, user.id, mentor!.id))
      await timed(sql`UPDATE events SET title = 'Closed day' WHERE id = ${event!.id}`)
      await timed(sql`INSERT INTO blogs (title, content, author_id) VALUES ('Title', 'Content', ${user.id})`)
      await timed(sql`SELECT iso8601(blogs.created_at) FROM blogs JOIN users ON users.id = author_id LIMIT 10`)
      await timed(sql`DELETE FROM event_registrations WHERE event_id = ${event!.id}`)
      await timed(sql`DELETE FROM events WHERE id = ${event!.id}`)
    }
  }
  const operations = Promise.all(users.map(operate))
  operations.catch(() => {})

  const reader = postgres(url, { max: 1, connection: { application_name: 'pg_dump' } })
  t.teardown(() => reader.end())
  /** How long the reader held its locks while a migration waited for them, in milliseconds. */
  const held: number[] = []
  const name = NAMES[last]!
  for (const direction of ['down', 'up'] as const) {
    let migration: Promise<string[]>
    await reader.begin('ISOLATION LEVEL REPEATABLE READ READ ONLY', async reader => {
      const tables = await reader<{ tablename: string }[]>`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
      for (const { tablename } of tables) await reader`SELECT FROM ${reader(tablename)}`
      const begin = performance.now()
      const messages: string[] = []
      const waitedTwice = new Promise<void>(resolve => {
        const warn = (message: string) => { if (messages.push(message) === 2) resolve() }
        migration = migrate(url, direction, 1, { log: { warn } })
      })
      await Promise.race([migration!, waitedTwice])
      if (messages.length < 2) return
      held.push(performance.now() - begin)
      const message = new RegExp(`^Migration ${name} waits for .*pg_dump \\(pid \\d+\\).*. Next attempt in [12] s.$`)
      t.match(messages, [message, message])
    })
    t.strictSame(await migration!, [name])
  }
  migrated.abort()
  await t.resolves(operations, 'none failed')
  t.ok(held.length > 0, 'migrations waited for the reader')
  t.ok(longest < Math.min(...held), `operations did not: ${longest} of ${held} ms`)
})

t.test('a migration that gets no lock', async t => {
  const { url, sql } = await emptyDatabase(t)
  await migrate(url)
  const last = NAMES.length - NAMES.findIndex(name => name.endsWith('_emails'))
  await migrate(url, 'down', last)
  const name = NAMES.at(-last)

  await t.test('fails in the end', t => sql.begin(async sql => {
    await sql`LOCK TABLE users`
    await t.rejects(migrate(url, 'up', 1, { patienceMs: 0 }), {
      message: `Migration ${name} failed: canceling statement due to lock timeout`,
      cause: { code: '55P03' },
    })
  }))

  await t.test('waits for a hanging migration, and logs it', async t => {
    const lines: string[] = []
    const log = { warn (line: string) { lines.push(line) } }
    await sql.begin(async sql => {
      await sql`SELECT pg_advisory_xact_lock(7241865325)`
      await t.rejects(migrate(url, 'up', 1, { patienceMs: 1600, log }), {
        message: 'The list of migrations failed: canceling statement due to lock timeout',
      })
    })
    t.strictSame(lines.length, 1)
    t.match(lines[0], /^The list of migrations waits for .*\(pid \d+\)\. Next attempt in 1 s\.$/)
  })

  await t.test('fails when its connection is lost', t => sql.begin(async sql => {
    await sql`LOCK TABLE users`
    let migration: Promise<unknown>
    await new Promise(resolve => { migration = migrate(url, 'up', 1, { log: { warn: resolve } }) })
    await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
    `
    await t.rejects(migration!, { message: new RegExp(`^Migration ${name} failed: .*connection`) })
  }))
})
