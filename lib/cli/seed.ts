import type { TransactionSql } from 'postgres'

import { type Config, loadConfig } from '../config.ts'
import { prepareSchema } from '../database/migrations.ts'
import { hashPassword } from '../auth/passwords.ts'
import { StartupError } from '../errors.ts'
import { onDatabase, parseOptions, UsageError } from './command-line.ts'
import { PASSWORD, seedDemo, SIGN_INS } from './seed/demo.ts'

const USAGE = `Usage: npm run seed [-- [--force] [--json]]

Adds a small demo community: either all of it or nothing. It prints the accounts you can use; --json prints them for
programs.

--force   add to a database that is not empty, without a change to its rows; and in production, where anyone could
          sign in with the password that is shown here

The database is the one at DATABASE_URL, else the embedded one in DATA_DIR.`

/** `npm run seed`: fills the database with a demo community. */
export default async function seedCommand (args: string[]) {
  const { operands, values: { help, force, json } } = parseOptions(args, {
    force: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, 1)
  if (help) return console.log(USAGE)
  if (operands.length > 0) throw new UsageError('npm run seed takes only options')
  const config = loadConfig()
  if (config.NODE_ENV === 'production' && !force) {
    throw new StartupError('In production anyone could sign in with the password of the demo accounts, as an ' +
      'admin too: if that is wanted, npm run seed -- --force')
  }

  const added = await onDatabase(async database => {
    await prepareSchema(database, config, { info: console.error, warn: console.error })
    return database.sql.begin(async sql => {
      await assertNoDemo(sql)
      if (!force) await assertEmpty(sql, config)
      return seedDemo(sql, await hashPassword(PASSWORD))
    }).catch(explain)
  }, config)

  if (json) return console.log(JSON.stringify({ added, password: PASSWORD, signIns: SIGN_INS }))
  console.log(`Added ${Object.entries(added).map(([kind, count]) => `${count} ${kind}`).join(', ')}`)
  console.log(`Sign in with the password ${PASSWORD} as`)
  for (const { role, email } of SIGN_INS) console.log(`${role.padEnd(9)}  ${email}`)
}

/** Throws a StartupError if the demo accounts exist. */
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

/** Turns an error of the database or of its connection into a line. Any other error is a defect. */
function explain (error: Error & { code?: string }): never {
  throw error.code ? new StartupError(`Nothing was added: ${error.message}`) : error
}
