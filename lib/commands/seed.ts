import type { TransactionSql } from 'postgres'

import { type Config, loadConfig } from '../config.ts'
import type { Database } from '../database.ts'
import { prepareSchema } from '../migrations.ts'
import { hashPassword } from '../passwords.ts'
import { StartupError } from '../startup-error.ts'
import { onDatabase, parseCommandLine, UsageError } from './command-line.ts'
import { findEdition, PASSWORD, SIGN_INS } from './seed/edition.ts'
import { type Amounts, clubName, KINDS, seedMany } from './seed/many.ts'

const USAGE = `Usage: npm run seed -- --KIND NUMBER … [--force] [--json]

KIND is users, clubs, events, registrations, blogs, mentors, likes or testimonials; none of those that are not named are
added. All or nothing is added. At the end it tells whom to sign in as; --json tells it to programs.

A database that anybody has put something into is refused, and so is NODE_ENV=production, because everybody can know the
password of these accounts. With --force their data are added to what is there, under addresses and club names of their
own.`

/** `npm run seed`: fills the database with a community to look around in, or with a lot of rows to measure with. */
export default async function seedCommand (args: string[]) {
  const { command, values: { help, force, json, ...given } } = parseCommandLine(args, {
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
  })
  if (help) return console.log(USAGE)
  if (command !== undefined) throw new UsageError(`There is no command "${command}"`)
  if (Object.keys(given).length === 0) throw new UsageError('Say what to add')
  const amounts = toAmounts(given)
  const config = loadConfig()
  if (config.NODE_ENV === 'production' && !force) {
    throw new StartupError('In production everybody could sign in with the passwords of a demo, as an admin too: ' +
      'if that is what you want, use --force')
  }

  const domain = await onDatabase(async database => {
    await prepareSchema(database, config, { info: console.error })
    const domain = await database.sql.begin(async sql => {
      if (!force) await assertEmpty(sql, config)
      const edition = await findEdition(sql, Array.from({ length: amounts.clubs }, (_, number) => clubName(number)))
      await seedMany(sql, amounts, edition, await hashPassword(PASSWORD), line => console.error(line))
      return edition.domain
    })
    console.error('tidying up')
    await tidyUp(database)
    return domain
  }, config, { statementTimeout: 0 })

  const signIns = amounts.users > 0 ? SIGN_INS.map(({ role, name }) => ({ role, email: `${name}@${domain}` })) : []
  if (json) return console.log(JSON.stringify({ added: amounts, password: PASSWORD, signIns }))
  console.log(`Added ${KINDS.map(kind => `${amounts[kind].toLocaleString('en')} ${kind}`).join(', ')}`)
  if (signIns.length === 0) return
  console.log(`\nSign in with the password ${PASSWORD} as`)
  for (const { role, email } of signIns) console.log(`  ${role.padEnd(9)}  ${email}`)
}

/** Reads how many of each kind there shall be, none where nothing is said. Throws a UsageError when that cannot be. */
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

/** Throws a StartupError when anybody has put anything into the database but the admin of the configuration. */
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

/** Lets the planner know what there is now, and index-only scans skip the rows. */
async function tidyUp ({ sql }: Database) {
  await sql`
    VACUUM ANALYZE clubs, users, events, event_registrations, event_registration_counts, blogs, mentors, mentor_likes,
      mentor_like_counts, testimonials, row_counts
  `
}
