// The commands of docs/run/operate.md that back up and restore a database.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'

import postgres, { type Sql } from 'postgres'

import seed from '#lib/cli/seed.js'
import { driverOptions } from '#lib/database/pools.js'
import { migrate } from '#lib/database/migrations.js'
import { commandsOf, SHELL } from '../../documents.ts'
import { emptyDatabase } from '../../helper.ts'
import { call } from '../../process.ts'
import { withDatabase } from '../../run.ts'
import t, { type Test } from '../../suite.ts'

const source = await emptyDatabase(t)
await migrate(source.url)
await call(seed, { DATABASE_URL: source.url }, {})
await source.sql`UPDATE blogs SET status = 'PUBLISHED' WHERE status = 'DRAFT'`
await source.sql`
  WITH picture AS (
    INSERT INTO pictures (user_id, large, small, width, height) SELECT id, '', '', 1, 1 FROM users LIMIT 1 RETURNING *
  )
  UPDATE users SET avatar = 'https://api.example.org/pictures/' || picture.id FROM picture WHERE users.id = user_id
`

const [{ version }] = await source.sql<[{ version: number }]>`
  SELECT current_setting('server_version_num')::int / 10000 AS version
`
/** The programs of this version. The embedded PostgreSQL contains no pg_dump. */
const BIN = `/usr/lib/postgresql/${version}/bin`
const areThere = await access(`${BIN}/pg_dump`).then(() => true, () => false)

/** Runs the commands of a section, with the addresses of these databases in place of the examples. */
async function run (t: Test, heading: string, addresses: Record<string, string>) {
  const cwd = t.testdir()
  let script = (await commandsOf('docs/run/operate.md', heading)).join('')
  for (const [example, address] of Object.entries(addresses)) script = script.replaceAll(example, address)
  const env = { PATH: `${BIN}:${process.env.PATH}`, DATABASE_URL: source.url }
  return promisify(execFile)('bash', ['-c', SHELL + script], { cwd, env })
}

t.test('A backup is restored into a new database that belongs to the role of the service', async t => {
  if (!areThere) return t.pass(`skipped: it needs ${BIN}/pg_dump`, { skip: true })
  const name = `restored_${randomUUID().replaceAll('-', '')}`
  const role = `community_${name}`
  await source.sql`CREATE ROLE ${source.sql(role)} LOGIN PASSWORD 'of-a-test'`
  t.teardown(async () => {
    await source.sql`DROP DATABASE IF EXISTS ${source.sql(name)} WITH (FORCE)`
    await source.sql`DROP ROLE ${source.sql(role)}`
  })
  const url = Object.assign(new URL(withDatabase(source.url, name)), { username: role, password: 'of-a-test' }).href

  const { stdout } = await run(t, 'Back up and restore', {
    'postgres://admin@db.example.org/postgres': `'${source.url}'`,
    '--owner=community restored': `--owner=${role} ${name}`,
    'postgres://community@db.example.org/restored': `'${url}'`,
  })
  t.match(stdout, /^applied /)
  t.notMatch(stdout, /pending/)
  const sql = postgres({ ...driverOptions(url), max: 1 })
  t.teardown(() => sql.end())
  const rows = await content(source.sql)
  t.ok(rows.length > 100)
  t.strictSame(await content(sql), rows, 'the role of the service can read every table')
})

t.test('The data alone is restored into a migrated database', async t => {
  if (!areThere) return t.pass(`skipped: it needs ${BIN}/pg_dump`, { skip: true })
  const target = await emptyDatabase(t)
  await migrate(target.url)
  await run(t, 'Restore the data alone', { 'postgres://community@db.example.org/restored': `'${target.url}'` })
  t.strictSame(await content(target.sql), await content(source.sql))
})

/** All rows, and the sums of the counts, as text. */
async function content (sql: Sql) {
  const tables = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_stat_user_tables WHERE relname <> 'pgmigrations' AND relname NOT LIKE '%\\_counts'
  `
  const rows = await Promise.all([
    ...tables.map(({ name }) => sql`SELECT ${name} || row::text AS text FROM ${sql(name)} AS row`),
    sql`SELECT concat_ws(' ', event_id, sum(count)) AS text FROM event_registration_counts GROUP BY event_id`,
    sql`SELECT concat_ws(' ', mentor_id, sum(count)) AS text FROM mentor_like_counts GROUP BY mentor_id`,
    sql`SELECT concat_ws(' ', relation, sum(count)) AS text FROM row_counts GROUP BY relation`,
  ])
  return rows.flat().map(({ text }) => String(text)).sort()
}
