import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { SignJWT } from 'jose'
import postgres from 'postgres'

import { hashPassword } from '#lib/passwords.js'
import { atEnd } from './cleanup.ts'

/** Signs the tokens of every request; each run has its own. */
export const SECRET = 'the secret of a benchmark, known to all'

/** The accounts that sign in, one for each connection, and their password. */
const LOGINS = 256
const PASSWORD = 'correct horse battery staple'

/** The users at most in whose name requests are sent. */
const USERS = 20_000

/** A filled database, and what the requests against it are made of. */
export interface World {
  /** What the tables call it. */
  name: string
  databaseUrl: string
  sql: postgres.Sql
  /** A folder for the files that wrk reads. */
  directory: string
  /** Tokens of an admin, of the head of a club, and of users; the last in a file too. */
  admin: string
  head: string
  users: string[]
  userFile: string
  /** A published blog's id; in files: the ids of all mentors, and what signs in. */
  blog: string
  mentorFile: string
  loginFile: string
  close (): Promise<void>
}

export async function openWorld (name: string, databaseUrl: string, parent: string): Promise<World> {
  const directory = join(parent, name)
  await mkdir(directory)
  const sql = postgres(databaseUrl, { max: 4, onnotice () {} })
  const close = () => sql.end({ timeout: 5 })
  atEnd(close)

  await addLogins(sql)
  // Nothing is left to be done behind the back of what is measured.
  await sql`VACUUM ANALYZE`
  await sql`CHECKPOINT`

  const file = async (name: string, lines: string[]) => {
    const path = join(directory, name)
    await writeFile(path, lines.join('\n') + '\n')
    return path
  }
  const ids = async (rows: Promise<{ id: string }[]>) => (await rows).map(({ id }) => id)
  const students = await ids(sql<{ id: string }[]>`
    SELECT id FROM users WHERE role = 'STUDENT' ORDER BY id LIMIT ${USERS}
  `)
  const [admin] = await ids(sql<{ id: string }[]>`SELECT id FROM users WHERE role = 'ADMIN' LIMIT 1`)
  const [head] = await ids(sql<{ id: string }[]>`
    SELECT users.id FROM users JOIN clubs ON club_head_id = users.id WHERE club_id = clubs.id ORDER BY users.id LIMIT 1
  `)
  const [blog] = await ids(sql<{ id: string }[]>`SELECT id FROM blogs WHERE status = 'PUBLISHED' ORDER BY id LIMIT 1`)
  const users = await Promise.all(students.map(id => signToken(id, 'STUDENT')))
  return {
    name,
    databaseUrl,
    sql,
    directory,
    admin: await signToken(admin!, 'ADMIN'),
    head: await signToken(head!, 'CLUB_HEAD'),
    users,
    userFile: await file('users', users),
    blog: blog!,
    mentorFile: await file('mentors', await ids(sql<{ id: string }[]>`SELECT id FROM mentors`)),
    loginFile: await file('logins', emails().map(email => JSON.stringify({ email, password: PASSWORD }))),
    close,
  }
}

/** Adds events that nobody has registered for, before all others in the list; returns a file of their ids. */
export async function addEvents ({ sql, directory }: World, count: number) {
  const rows = await sql<{ id: string }[]>`
    INSERT INTO events (title, description, image_url, date, club_id)
    SELECT 'Benchmark', 'To register for', 'https://images.example.org/benchmark.jpg', '2100-01-01', clubs.id
    FROM generate_series(1, ${count}), (SELECT id FROM clubs LIMIT 1) AS clubs
    RETURNING id
  `
  const ids = rows.map(({ id }) => id)
  const path = join(directory, `events-${ids[0]}`)
  await writeFile(path, ids.join('\n') + '\n')
  return { ids, path }
}

function signToken (id: string, role: string) {
  return new SignJWT({ role }).setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(id).setIssuedAt().setExpirationTime('1d').sign(new TextEncoder().encode(SECRET))
}

const emails = () => Array.from({ length: LOGINS }, (_, n) => `login-${n}@bench.example.org`)

async function addLogins (sql: postgres.Sql) {
  const password = await hashPassword(PASSWORD)
  const users = emails().map(email => ({ email, password, first_name: 'Ada', last_name: 'Lovelace' }))
  await sql`INSERT INTO users ${sql(users)}`
}
