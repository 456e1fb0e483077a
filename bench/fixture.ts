import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { SignJWT } from 'jose'
import postgres from 'postgres'

import { hashPassword } from '#lib/auth/passwords.js'
import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import { asSuperuser } from '../test/run.ts'
import { atEnd, startServer } from './programs.ts'
import { type Amounts, seed } from './seed.ts'

/** The names of the service in the tables: with its defaults, and with LOG_LEVEL=warn. */
export const SERVICE = 'service'
export const SERVICE_WARN = 'service, warn'

const VARIABLES: Record<string, NodeJS.Dict<string>> = { [SERVICE_WARN]: { LOG_LEVEL: 'warn' } }

/** Signs the tokens of all requests. */
export const JWT_SECRET = 'the secret of a benchmark, known to everyone'

/** Of all accounts. */
const PASSWORD = 'the password of a benchmark'

const NONE: Amounts = {
  clubs: 0, users: 0, events: 0, registrations: 0, blogs: 0, mentors: 0, likes: 0, testimonials: 0,
}

function times (factor: number, amounts: Amounts) {
  return Object.fromEntries(Object.entries(amounts).map(([kind, count]) => [kind, count * factor])) as Amounts
}

/** The size of a university, for most measurements. */
const MAIN = {
  ...{ users: 5_000, clubs: 100, events: 10_000, registrations: 200_000 },
  ...{ blogs: 100, mentors: 50, likes: 10_000, testimonials: 200 },
}

/** Grows a hundredfold. */
const SMALL = { ...NONE, users: 1_000, clubs: 10, events: 100, registrations: 10_000 }

/** For lists of 100,000 rows. */
const LARGE = { ...NONE, users: 100_000, clubs: 100_000, events: 10_000, registrations: 100_000, blogs: 100_000 }

/** A tenth, except users, because all register for events. */
const TENTH = { ...times(0.1, MAIN), users: MAIN.users }

/** The rows for each part of the benchmark; with `quick` a tenth of most. */
export const amountsOf = (quick: boolean) => ({
  main: quick ? TENTH : MAIN,
  mailing: TENTH,
  small: SMALL,
  grown: times(quick ? 10 : 100, SMALL),
  large: times(quick ? 0.1 : 1, LARGE),
})

/** The database server. */
export interface Postgres {
  url: string
  version: string
}

/** Starts an embedded PostgreSQL with its data in this folder. */
export async function startPostgres (directory: string): Promise<Postgres> {
  const start = () => startEmbeddedPostgres(join(directory, 'data'), { info () {}, warn: console.error })
  const first = await start()
  const sql = connect(asSuperuser(first.url))
  // pgbench uses 64 connections, in addition to the services and the alternative.
  await sql`ALTER SYSTEM SET max_connections = 200`
  const [row] = await sql<[{ version: string }]>`SELECT current_setting('server_version') AS version`
  await sql.end()
  await first.release()
  const { url, release } = await start()
  atEnd(release)
  return { url: asSuperuser(url), version: row.version }
}

function connect (url: string) {
  const sql = postgres(url, { max: 4 })
  atEnd(() => sql.end({ timeout: 1 }))
  return sql
}

/** A database with rows, and values for requests. */
export type Fixture = Awaited<ReturnType<typeof createFixture>>

/** Creates a database with these numbers of rows. Its files are in the folder. */
export async function createFixture ({ url }: Postgres, name: string, amounts: Amounts, directory: string) {
  const databaseUrl = Object.assign(new URL(url), { pathname: name }).href
  const server = connect(url)
  await server`CREATE DATABASE ${server(name)}`
  await migrate(databaseUrl)
  const sql = connect(databaseUrl)
  const hash = await hashPassword(PASSWORD)
  await sql.begin(sql => seed(sql, amounts, hash))
  await sql`VACUUM ANALYZE`
  await sql`CHECKPOINT`

  async function tokens (role: string) {
    const users = await sql<{ id: string }[]>`SELECT id FROM users WHERE role = ${role} ORDER BY id LIMIT 5000`
    return Promise.all(users.map(({ id }) => new SignJWT({ role })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).setSubject(id).setIssuedAt().setExpirationTime('1d')
      .sign(new TextEncoder().encode(JWT_SECRET))))
  }
  // As long as the versions of a photo.
  const [picture] = await sql<{ id: string }[]>`
    INSERT INTO pictures (user_id, large, small, width, height)
    SELECT id, ${randomBytes(250_000)}, ${randomBytes(25_000)}, 2000, 1500 FROM users LIMIT 1 RETURNING id
  `
  const [published] = await sql<{ id: string }[]>`SELECT id FROM blogs WHERE status = 'PUBLISHED' LIMIT 1`
  let files = 0
  return {
    databaseUrl,
    sql,
    directory,
    // Tokens by role.
    admins: await tokens('ADMIN'),
    heads: await tokens('CLUB_HEAD'),
    students: await tokens('STUDENT'),
    // The id of a published blog post.
    blog: published?.id,
    // The id of a picture.
    picture: picture?.id,
    // Of all accounts.
    password: PASSWORD,
    hash,
    /** Writes a file of lines for wrk. Returns its path. */
    async file (lines: string[]) {
      const path = join(directory, `${name}-${files++}`)
      await writeFile(path, lines.join('\n') + '\n')
      return path
    },
    /** Drops the database. */
    async drop () {
      await sql.end({ timeout: 5 })
      await server`DROP DATABASE ${server(name)} WITH (FORCE)`
    },
  }
}

/** Starts the service as operators do: `npm start` with NODE_ENV=production and otherwise the defaults. */
export function startService ({ databaseUrl, directory }: Fixture, name = SERVICE, env: NodeJS.Dict<string> = {}) {
  return startServer({
    name,
    command: ['npm', 'start'],
    env: { DATABASE_URL: databaseUrl, JWT_SECRET, ...VARIABLES[name], ...env },
    directory,
    path: '/readyz',
  })
}

/** Inserts events without registrations at the top of the list. Returns their ids. */
export async function addEvents ({ sql }: Fixture, count: number) {
  const rows = await sql<{ id: string }[]>`
    INSERT INTO events (title, description, image_url, date, club_id)
    SELECT 'Benchmark', 'To register for', 'https://images.example.org/benchmark.jpg', '2100-01-01', clubs.id
    FROM generate_series(1, ${count}), (SELECT id FROM clubs LIMIT 1) AS clubs
    RETURNING id
  `
  return rows.map(({ id }) => id)
}

/**
 * Prepares up to 60,000 commits, each a registration for an event on the first page of the list, so that the response
 * changes. Returns a function that runs the next one.
 */
export async function prepareCommits ({ sql }: Fixture) {
  const pairs = await sql<{ user_id: string, event_id: string }[]>`
    SELECT users.id AS user_id, events.id AS event_id
    FROM (SELECT id FROM events ORDER BY date DESC, id LIMIT 12) AS events CROSS JOIN users
    WHERE NOT EXISTS (SELECT FROM event_registrations WHERE user_id = users.id AND event_id = events.id)
    LIMIT 60000
  `
  return async () => {
    const pair = pairs.pop()
    if (!pair) throw new Error('All registrations are used')
    await sql`INSERT INTO event_registrations ${sql(pair)}`
  }
}
