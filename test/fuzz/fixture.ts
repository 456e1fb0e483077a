import postgres from 'postgres'

import { type Role, ROLES } from '#lib/values/roles.js'
import { hashSecretToken } from '#lib/auth/secret-tokens.js'
import { hashPassword } from '#lib/auth/passwords.js'
import { driverOptions } from '#lib/database/pools.js'
import { PNG } from '../fixtures.ts'
import type { Scope } from '../scope.ts'

/** The tables that requests change, with their primary keys. Referenced tables come first. */
const TABLES: Record<string, string> = {
  clubs: 'id',
  users: 'id',
  club_details: 'club_id',
  club_members: 'user_id, club_id',
  blogs: 'id',
  mentors: 'id',
  mentor_likes: 'user_id, mentor_id',
  testimonials: 'id',
  events: 'id',
  event_details: 'event_id',
  event_registrations: 'id',
  event_answers: 'registration_id',
  calendar_tokens: 'user_id',
  revoked_tokens: 'user_id',
  account_tokens: 'user_id, purpose',
  pictures: 'id',
  emails: 'id',
  rate_limits: 'name, key',
}

/** The password of all users. */
export const PASSWORD = 'correct horse battery staple'

/** The calendar token of the first user. */
export const CALENDAR_TOKEN = 'kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'

/** The tokens of links that set a password and of links that verify an address, one user each. */
export const LINK_TOKENS = {
  password: ['qJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A', 'rJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'],
  email: ['sJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A', 'tJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'],
}

/** The claims of a token. */
export interface Bearer {
  id: string
  role: Role
}

/** The rows in the database before each request, the same in every run. */
export interface Fixture {
  sql: postgres.Sql
  /** The ids in each table. */
  ids: Record<string, string[]>
  emails: string[]
  registrations: { id: string, event_id: string }[]
  /** Users with their current role. */
  people: Bearer[]
  /** Deleted users, one of each role. */
  strangers: Bearer[]
  /** Restores the initial rows. */
  restore (): Promise<void>
}

/** A deterministic id, so that a seed reproduces a run. */
const idOf = (table: number, row: number) =>
  `0190a1b2-c3d4-7e5f-8a6b-${String(table).padStart(4, '0')}${String(row).padStart(8, '0')}`

const CLUBS = 3
const USERS = 12

/** Inserts a few rows into every table. */
export async function createFixture (scope: Scope, url: string): Promise<Fixture> {
  const sql = postgres({ ...driverOptions(url), fetch_types: false, onnotice () {} })
  scope.teardown(() => sql.end())
  const times = <Row>(count: number, make: (n: number) => Row) => Array.from({ length: count }, (_, n) => make(n))
  const id = (table: string, row: number) => idOf(Object.keys(TABLES).indexOf(table), row)
  const password = await hashPassword(PASSWORD)
  const image = 'https://example.org/picture.png'

  const rows: Record<string, object[]> = {
    clubs: times(CLUBS, n => ({
      id: id('clubs', n),
      name: `Club ${n}`,
      description: 'A club',
      image_url: n ? image : null,
      club_head_id: n ? id('users', n * ROLES.length + 1) : null,
    })),
    // Each role with a club and without one.
    users: times(USERS, n => ({
      id: id('users', n),
      email: `user${n}@example.org`,
      password,
      first_name: 'Ada',
      last_name: `Lovelace ${n}`,
      role: ROLES[n % ROLES.length]!,
      club_id: n < USERS / 2 ? id('clubs', n % CLUBS) : null,
      idp_id: n === 2 ? 'somebody' : null,
      avatar: n % 2 ? image : null,
    })),
    club_details: [{ club_id: id('clubs', 0), joining: 'open' }, { club_id: id('clubs', 2), joining: 'closed' }],
    // Next to the memberships that follow from the users
    club_members: times(USERS / 2, n => ({
      user_id: id('users', n + USERS / 2),
      club_id: id('clubs', n % CLUBS),
      state: n % 4 ? 'member' : 'requested',
      message: n % 4 ? null : 'I play chess.',
      // By the last admin, without a club
      offered: n % 4 ? 'deputy' : null,
      offered_by: n % 4 ? id('users', USERS - 1) : null,
      offered_at: n % 4 ? new Date() : null,
    })),
    // Each of three authors in each status.
    blogs: times(9, n => ({
      id: id('blogs', n),
      title: `Blog ${n}`,
      content: 'Twenty characters or more',
      image_url: n % 2 ? image : null,
      status: ['DRAFT', 'PUBLISHED', 'ARCHIVED'][n % 3]!,
      author_id: id('users', Math.floor(n / 3)),
    })),
    mentors: times(4, n => ({
      id: id('mentors', n), name: `Mentor ${n}`, expertise: 'Go', image_url: image, club_id: id('clubs', n % CLUBS),
    })),
    mentor_likes: times(4, n => ({ user_id: id('users', n), mentor_id: id('mentors', n % 3) })),
    testimonials: times(4, n => ({
      id: id('testimonials', n), name: `Person ${n}`, batch_year: 2000 + n, content: 'Words', image_url: n ? null : '',
    })),
    events: times(6, n => ({
      id: id('events', n),
      title: `Event ${n}`,
      description: 'Ten characters or more',
      image_url: n ? image : null,
      date: new Date(Date.UTC(2030, n)),
      club_id: id('clubs', n % CLUBS),
    })),
    event_details: times(3, n => ({
      event_id: id('events', n),
      duration_ms: n ? 3_600_000 : null,
      place: n ? 'A room' : null,
      capacity: n + 1,
      online_url: image,
      seated_until: null,
      draw_at: n ? null : new Date(Date.UTC(2026, 0)),
      draw_from: n ? null : new Date(Date.UTC(2026, 0)),
      draw_seed: n ? null : '0'.repeat(64),
      drawn_at: n ? null : new Date(Date.UTC(2026, 0)),
    })),
    event_registrations: times(8, n => ({
      id: id('event_registrations', n),
      user_id: id('users', n % 5),
      event_id: id('events', n % 3 + 3 * Math.floor(n / 5)),
    })),
    event_answers: [],
    calendar_tokens: times(USERS / 2, n => ({
      user_id: id('users', n), token_hash: hashSecretToken(n ? `${CALENDAR_TOKEN}${n}` : CALENDAR_TOKEN),
    })),
    // Belongs to a user who does not send requests.
    revoked_tokens: [{ user_id: id('users', USERS + ROLES.length) }],
    account_tokens: Object.entries(LINK_TOKENS).flatMap(([purpose, tokens]) => tokens.map((token, n) => ({
      user_id: id('users', n), purpose, hash: hashSecretToken(token), expires_at: new Date(Date.UTC(2099)),
    }))),
    pictures: times(4, n => ({
      id: id('pictures', n), user_id: id('users', n), large: PNG, small: PNG, width: 1, height: 1,
    })),
    emails: [],
    rate_limits: [],
  }
  for (const [table, all] of Object.entries(rows)) {
    if (all.length > 0) await sql`INSERT INTO ${sql(table)} ${sql(all)}`
  }
  await sql.unsafe(await restoration(sql))

  return {
    sql,
    ids: Object.fromEntries(Object.keys(TABLES).map(table =>
      [table, rows[table]!.flatMap(row => 'id' in row ? [String(row.id)] : [])])),
    registrations: rows.event_registrations as Fixture['registrations'],
    emails: times(USERS, n => `user${n}@example.org`),
    people: times(USERS, n => ({ id: id('users', n), role: ROLES[n % ROLES.length]! })),
    strangers: ROLES.map((role, n) => ({ id: id('users', USERS + n), role })),
    restore: async () => { await sql`SELECT fixture.restore()` },
  }
}

/** SQL that copies every table, and a function that restores differences from the copies. */
async function restoration (sql: postgres.Sql) {
  const copies: string[] = []
  const removals: string[] = []
  const returns: string[] = []
  for (const [table, key] of Object.entries(TABLES)) {
    const columns = await sql<{ name: string }[]>`
      SELECT column_name AS name FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name = ${table} AND column_name <> 'updated_at'
    `
    const names = columns.map(({ name }) => name).join(', ')
    copies.push(`CREATE TABLE fixture.${table} AS SELECT ${names} FROM ${table};`)
    copies.push(`ALTER TABLE fixture.${table} ADD PRIMARY KEY (${key});`)
    const given = columns.map(({ name }) => `excluded.${name}`).join(', ')
    const [live, copy] = [`SELECT ${names} FROM ${table}`, `SELECT ${names} FROM fixture.${table}`]
    // Check first: the triggers of a statement cost more than the check.
    returns.push(`
      IF EXISTS (${copy} EXCEPT ${live}) THEN
        INSERT INTO ${table} (${names}) ${copy} EXCEPT ${live}
        ON CONFLICT (${key}) DO UPDATE SET (${names}) = ROW (${given});
      END IF;
    `)
    removals.unshift(`
      IF EXISTS (${live} EXCEPT ${copy}) THEN
        DELETE FROM ${table} WHERE (${key}) NOT IN (SELECT ${key} FROM fixture.${table});
      END IF;
    `)
  }
  return `
    CREATE SCHEMA fixture;
    ${copies.join('\n')}
    CREATE FUNCTION fixture.restore() RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN ${[...returns, ...removals].join('\n')} END $$;
  `
}
