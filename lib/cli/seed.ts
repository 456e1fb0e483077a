import type { TransactionSql } from 'postgres'

import { type Config, loadConfig } from '../config.ts'
import type { Database } from '../database/client.ts'
import { prepareSchema } from '../database/migrations.ts'
import { hashPassword } from '../auth/passwords.ts'
import { StartupError } from '../errors.ts'
import { onDatabase, parseOptions, UsageError } from './command-line.ts'
import { seedDemo } from './seed/demo.ts'
import { seedMany } from './seed/many.ts'
import { type Amounts, KINDS, PASSWORD, SIGN_INS } from './seed/seeding.ts'

const USAGE = `Usage: npm run seed [-- [--KIND NUMBER …] [--force] [--json]]

Adds a small demo community to look around in or, where numbers are given, that many rows to measure with: KIND is
users, clubs, events, registrations, blogs, mentors, likes or testimonials, and of a kind without a number there are
none. Either all of it is added or nothing. It prints the accounts to sign in with; --json prints them for programs.

--force   add to a database that is not empty, beside the rows that are there (the demo accounts, and clubs of the
          same names, only once); and in production, where anyone could sign in with the password that is shown here

The database is the one at DATABASE_URL, else the embedded one in DATA_DIR.`

/** `npm run seed`: fills the database with a community to look around in, or with a lot of rows to measure with. */
export default async function seedCommand (args: string[]) {
  const { operands, values: { help, force, json, ...given } } = parseOptions(args, {
    users: { type: 'string' },
    clubs: { type: 'string' },
    events: { type: 'string' },
    registrations: { type: 'string' },
    blogs: { type: 'string' },
    mentors: { type: 'string' },
    likes: { type: 'string' },
    testimonials: { type: 'string' },
    force: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, 1)
  if (help) return console.log(USAGE)
  if (operands.length > 0) throw new UsageError('Only options may follow: npm run seed -- --users 1000')
  const amounts = Object.keys(given).length > 0 ? toAmounts(given) : undefined
  const config = loadConfig()
  if (config.NODE_ENV === 'production' && !force) {
    throw new StartupError('In production anyone could sign in with the password of the demo accounts, as an ' +
      'admin too: if that is wanted, npm run seed -- --force')
  }

  const added = await onDatabase(async database => {
    await prepareSchema(database, config, { info: console.error, warn: console.error })
    const outcome = await database.sql.begin(async sql => {
      if (!amounts || amounts.users > 0) await assertNoDemo(sql)
      if (!force) await assertEmpty(sql, config)
      const password = await hashPassword(PASSWORD)
      return amounts ? seedMany(sql, amounts, password) : seedDemo(sql, password)
    }).catch(explain('Nothing was added'))
    await tidyUp(database).catch(explain('All was added, but VACUUM ANALYZE failed'))
    return outcome
  }, config, { statementTimeout: 0 })

  const signIns = added.users > 0 ? SIGN_INS : []
  if (json) return console.log(JSON.stringify({ added, password: PASSWORD, signIns }))
  console.log(`Added ${KINDS.map(kind => `${added[kind].toLocaleString('en')} ${kind}`).join(', ')}`)
  if (signIns.length > 0) console.log(`Sign in with the password ${PASSWORD} as`)
  for (const { role, email } of signIns) console.log(`${role.padEnd(9)}  ${email}`)
}

/** Reads how many rows of each kind to add, by default none. Throws a UsageError when a number cannot be used. */
function toAmounts (given: Partial<Record<keyof Amounts, string>>): Amounts {
  const amounts = Object.fromEntries(KINDS.map(kind => {
    const value = given[kind] ?? '0'
    if (!/^\d{1,9}$/.test(value)) throw new UsageError(`--${kind} must be a whole number of at most nine digits`)
    return [kind, Number(value)]
  })) as Amounts

  const { users, clubs, events, registrations, blogs, mentors, likes } = amounts
  if (users > 0 && users < SIGN_INS.length) {
    throw new UsageError('--users must be at least 3: an admin, a club head and a student to sign in as are among them')
  }
  if (events > 0 && clubs === 0) throw new UsageError('--events needs --clubs')
  if (mentors > 0 && clubs === 0) throw new UsageError('--mentors needs --clubs')
  if (blogs > 0 && users === 0) throw new UsageError('--blogs needs --users')
  if (registrations > users * events) {
    throw new UsageError(`--registrations can be at most --users times --events, ${users * events}`)
  }
  if (likes > users * mentors) {
    throw new UsageError(`--likes can be at most --users times --mentors, ${users * mentors}`)
  }
  return amounts
}

/** Throws a StartupError when the accounts to sign in as are there: every run that adds users adds them. */
async function assertNoDemo (sql: TransactionSql) {
  const found = await sql`SELECT FROM users WHERE email IN ${sql(SIGN_INS.map(({ email }) => email))} LIMIT 1`
  if (found.length > 0) throw new StartupError('Nothing was added: the database has the demo accounts already')
}

/** Throws a StartupError when the database has any row but the admin of the configuration. */
async function assertEmpty (sql: TransactionSql, { ADMIN_EMAIL = '' }: Config) {
  const [found] = await sql<{ what: string }[]>`
    SELECT 'users' AS what FROM users WHERE email <> ${ADMIN_EMAIL}
    UNION ALL SELECT 'clubs' FROM clubs
    UNION ALL SELECT 'blogs' FROM blogs
    UNION ALL SELECT 'testimonials' FROM testimonials
    LIMIT 1
  `
  if (found) {
    throw new StartupError(`The database has ${found.what} already: to add to them, use npm run seed -- --force`)
  }
}

/** Turns what the database or the connection to it reports into a line; what else goes wrong is a defect. */
function explain (consequence: string) {
  return (error: Error & { code?: string }) => {
    throw error.code ? new StartupError(`${consequence}: ${error.message}`) : error
  }
}

/** Lets the planner know what there is now, and index-only scans skip the rows. */
async function tidyUp ({ sql }: Database) {
  await sql`
    VACUUM ANALYZE clubs, users, events, event_registrations, event_registration_counts, blogs, mentors, mentor_likes,
      mentor_like_counts, testimonials, row_counts
  `
}
