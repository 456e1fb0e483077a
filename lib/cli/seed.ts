import type { TransactionSql } from 'postgres'

import { type Config, loadConfig } from '../config/config.ts'
import { prepareSchema } from '../database/migrations.ts'
import { hashPassword } from '../auth/passwords.ts'
import { StartupError } from '../config/startup-error.ts'
import { onDatabase, parseOptions } from './command-line.ts'
import { PASSWORD, seedDemo, SIGN_INS } from './seed/demo.ts'

const USAGE = `Usage: npm run seed [-- [--force] [--json]]

Adds a small demo community and prints the accounts you can use.

--force   also run if the database is not empty (existing rows stay unchanged) or in production (anyone can sign in with
          the public password)
--json    print JSON for programs

The database is DATABASE_URL or, if unset, the embedded database in DATA_DIR.`

/** `npm run seed`: adds a demo community. */
export default async function seedCommand (args: string[]) {
  const { values: { help, force, json } } = parseOptions(args, {
    force: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, 0)
  if (help) return console.log(USAGE)
  const config = loadConfig()
  if (config.NODE_ENV === 'production' && !force) {
    throw new StartupError('The password of the demo accounts is public, so anyone could sign in as an admin. ' +
      'To add them in production anyway, run npm run seed -- --force.')
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
  if (found.length > 0) {
    throw new StartupError('The demo data was not added: the database already contains the demo accounts')
  }
}

/** Throws a StartupError if the database contains any row except the configured admin. */
async function assertEmpty (sql: TransactionSql, { ADMIN_EMAIL = '' }: Config) {
  const [found] = await sql<{ what: string }[]>`
    SELECT 'users' AS what FROM users WHERE email <> ${ADMIN_EMAIL}
    UNION ALL SELECT 'clubs' FROM clubs
    UNION ALL SELECT 'blogs' FROM blogs
    UNION ALL SELECT 'testimonials' FROM testimonials
    LIMIT 1
  `
  if (found) {
    throw new StartupError(`The database already contains ${found.what}. To add the demo data anyway, run ` +
      'npm run seed -- --force.')
  }
}

/** Turns a database error into one line. Any other error is a defect. */
function explain (error: Error & { code?: string }): never {
  throw error.code ? new StartupError(`The demo data was not added: ${error.message}`) : error
}
