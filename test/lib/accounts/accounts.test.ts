import { idOfEmail } from '#lib/accounts/accounts.js'
import { ensureFirstAdmin } from '#lib/accounts/first-admin.js'
import emailCommand from '#lib/cli/email.js'
import userCommand from '#lib/cli/user.js'
import { build, person, untilBlocked } from '../../helper.ts'
import { call } from '../../process.ts'
import t from '../../suite.ts'

const app = await build(t)
const { sql } = app

t.test('Of five instances that start at once, one creates the admin and four find it', async t => {
  const email = 'only@example.org'
  const config = { ...app.config, ADMIN_EMAIL: email, ADMIN_PASSWORD: 'correct horse' }
  const messages: unknown[] = []
  const log = { info (...line: unknown[]) { messages.push(line.at(-1)) } }
  let running: Promise<void[]>
  await sql.begin(async sql => {
    // Wait until all five have looked for the missing account.
    await sql`LOCK TABLE users IN EXCLUSIVE MODE`
    running = Promise.all(Array.from({ length: 5 }, () => ensureFirstAdmin(app.sql, config, log)))
    await untilBlocked(app.sql, 5)
  })
  await running!
  t.strictSame(messages, ['Admin account created from ADMIN_EMAIL'])
  t.equal((await sql`SELECT FROM users WHERE email = ${email}`).length, 1)
})

t.test('An account is found by its exact email, else by the only one that differs in case', async t => {
  const add = async (email: string) => (await sql<[{ id: string }]>`
    INSERT INTO users (email, password, first_name, last_name) VALUES (${email}, '!', 'Ada', 'L') RETURNING id
  `)[0].id
  const find = async (email: string) => (await sql`SELECT ${idOfEmail(sql, email)} AS id`)[0]!.id
  const [one, upper] = [await add('One@example.org'), await add('ADA@example.org')]
  const [lower, other] = [await add('ada@example.org'), await add('jörg@example.org')]
  const found: [email: string, id: string | null][] = [
    ['One@example.org', one], ['oNE@EXAMPLE.ORG', one], ['ADA@example.org', upper], ['ada@example.org', lower],
    ['Ada@example.org', null], ['JöRG@example.org', other], ['nobody@example.org', null], ['', null],
  ]
  for (const [email, id] of found) t.equal(await find(email), id, email)
})

t.test('Commands find an account whose email differs in case, and do not create a second account', async t => {
  await sql`TRUNCATE users, rate_limits CASCADE`
  const environment = { DATABASE_URL: app.config.DATABASE_URL, SMTP_URL: 'smtp://localhost', MAIL_FROM: 'c@example.org' }
  const run = async (command: typeof userCommand, args: string, input = '') =>
    await call(command, environment, { args: [...args.split(' '), '--email', 'ADA@example.org'], input })
  const { id } = await person(app, 'STUDENT', { email: 'Ada@example.org' })
  await app.sql`INSERT INTO rate_limits VALUES ('test', 'Ada@example.org', 1, now())`
  const create = 'create --role ADMIN --first-name Ada --last-name L --password-stdin'
  const taken = { code: 1, stderr: 'ADA@example.org already has an account\n' }
  t.match(await run(userCommand, create, 'correct horse'), taken)
  const twin = await person(app, 'STUDENT', { email: 'aDa@example.org' })
  t.match(await run(userCommand, create, 'correct horse'), taken, 'even if it has two')
  await app.sql`DELETE FROM users WHERE id = ${twin.id}`
  for (const args of ['set-role --role ADMIN', 'set-password --password-stdin', 'sign-out', 'export']) {
    t.match(await run(userCommand, args, 'correct horse'), { code: 0, stdout: id }, args)
  }
  t.equal((await run(emailCommand, 'test')).code, 0)
  t.match(await run(userCommand, 'erase'), { code: 0, stdout: id })
  t.strictSame([...await app.sql`SELECT FROM users UNION ALL SELECT FROM rate_limits`], [])
})
