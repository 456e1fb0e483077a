import { readdir } from 'node:fs/promises'

import type { FastifyInstance } from 'fastify'
import postgres from 'postgres'
import t from 'tap'

import { build, createDatabase, inject, insert, MAIL, person } from '../../helper.ts'
import userCommand from '#lib/cli/user.js'
import { call } from '../../process.ts'

const MIGRATIONS = (await readdir('migrations')).length
const PASSWORD = 'correct horse'
const GRACE = ['--email', 'grace@example.org', '--role', 'CLUB_HEAD', '--first-name', 'Grace', '--last-name', 'Hopper']

const app = await build(t)
const { DATABASE_URL } = app.config

/** Runs `user` with these arguments, and the password on standard input. */
const user = (variables: NodeJS.Dict<string>, args: string[], input = '') =>
  call(userCommand, variables, { args, input })

const succeeded = (stdout: string | RegExp) => ({ code: 0, signal: null, stdout, stderr: '' })
const failed = (line: string) => ({ code: 1, signal: null, stdout: '', stderr: `${line}\n` })

const login = async (app: FastifyInstance, email: string, password: string) =>
  (await inject(app, 'POST', '/auth/login', { email, password })).statusCode

const stored = async (email: string) => (await app.sql<{ id: string, role: string, password: string }[]>`
  SELECT id, role, password FROM users WHERE email = ${email}
`)[0]

t.test('create adds an account that can sign in', async t => {
  const outcome = await user({ DATABASE_URL }, ['create', ...GRACE, '--password-stdin'], `${PASSWORD}\n`)
  const { id } = (await stored('grace@example.org'))!
  t.strictSame(outcome, succeeded(`CLUB_HEAD  ${id}  grace@example.org  Grace Hopper\n`))
  t.equal(await login(app, 'grace@example.org', PASSWORD), 200)
})

t.test('create leaves an existing account unchanged', async t => {
  const { email } = await person(app)
  const before = await stored(email)
  const args = ['create', '--email', email, '--role', 'ADMIN', '--first-name', 'A', '--last-name', 'B']
  t.strictSame(
    await user({ DATABASE_URL }, [...args, '--password-stdin'], PASSWORD), failed(`${email} already has an account`)
  )
  t.strictSame(await stored(email), before)
})

t.test('set-role changes only the role', async t => {
  const { id, email } = await person(app)
  const before = await stored(email)
  t.strictSame(
    await user({ DATABASE_URL }, ['set-role', '--email', email, '--role', 'ADMIN']),
    succeeded(`ADMIN      ${id}  ${email}  Ada Lovelace\n`)
  )
  t.strictSame(await stored(email), { ...before, role: 'ADMIN' })
})

t.test('set-password changes only the password', async t => {
  const { id, email, role } = await person(app)
  t.equal(await login(app, email, PASSWORD), 401)
  t.strictSame(
    await user({ DATABASE_URL }, ['set-password', '--email', email, '--password-stdin'], PASSWORD),
    succeeded(`STUDENT    ${id}  ${email}  Ada Lovelace\n`)
  )
  t.equal(await login(app, email, PASSWORD), 200)
  t.equal((await stored(email))!.role, role)
})

t.test('sign-out and set-password end all tokens of the account', async t => {
  const bob = await person(app)
  for (const [command, input] of [['sign-out', ''], ['set-password', PASSWORD]] as const) {
    const ada = await person(app)
    const args = ['--email', ada.email, ...input ? ['--password-stdin'] : []]
    t.strictSame(await user({ DATABASE_URL }, [command, ...args], input),
      succeeded(`STUDENT    ${ada.id}  ${ada.email}  Ada Lovelace\n`))
    const response = await ada.inject('GET', '/auth/me')
    t.strictSame([response.statusCode, response.json()], [401, { message: 'Invalid or expired token' }], command)
  }
  t.equal((await bob.inject('GET', '/auth/me')).statusCode, 200, 'others stay signed in')
})

t.test('list is sorted by newest, then by id', async t => {
  const app = await build(t)
  const list = () => user({ DATABASE_URL: app.config.DATABASE_URL }, ['list'])
  t.strictSame(await list(), succeeded(''), 'no accounts, no output')

  const old = await person(app, 'ADMIN', { created_at: '2026-01-01T00:00:00Z' })
  const same = [
    await person(app, 'STUDENT', { created_at: '2026-01-02T00:00:00Z' }),
    await person(app, 'CLUB_HEAD', { created_at: '2026-01-02T00:00:00Z' }),
  ]
  await app.sql`UPDATE users SET first_name = 'Zoë' WHERE id = ${old.id}`
  const [first, second] = same.sort((a, b) => a.id < b.id ? -1 : 1)
  t.strictSame(await list(), succeeded([
    `${first!.role.padEnd(9)}  ${first!.id}  ${first!.email}  Ada Lovelace\n`,
    `${second!.role.padEnd(9)}  ${second!.id}  ${second!.email}  Ada Lovelace\n`,
    `ADMIN      ${old.id}  ${old.email}  Zoë Lovelace\n`,
  ].join('')))
})

t.test('A name cannot forge a line, nor send the terminal an escape sequence', async t => {
  const app = await build(t)
  const names = { first_name: 'Ada\r\nADMIN  x', last_name: '\u001b[2J\u009b1mL\u2028' }
  const { id, email } = await person(app, 'STUDENT', names)
  t.strictSame(await user({ DATABASE_URL: app.config.DATABASE_URL }, ['list']),
    succeeded(`STUDENT    ${id}  ${email}  Ada ADMIN x [2J1mL\n`))
})

t.test('erase tells who gets the seat of the erased person', async t => {
  const [admin, ada] = [await person(app, 'ADMIN'), await person(app)]
  const bob = await person(app, 'STUDENT', { email_verified_at: new Date() })
  const event = await insert(app, 'events', {
    date: new Date(Date.now() + 86_400_000), club_id: await insert(app, 'clubs'),
  })
  t.equal((await admin.inject('PUT', `/agenda/${event}`, { capacity: 1 })).statusCode, 200)
  for (const who of [ada, bob]) await who.inject('POST', `/events/${event}/register`)
  t.equal((await user({ DATABASE_URL, ...MAIL }, ['erase', '--email', ada.email])).code, 0)
  const told = await app.sql`SELECT to_jsonb(user_ids) AS users FROM email_batches WHERE template = 'seat'`
  t.strictSame([...told], [{ users: [bob.id] }])
})

t.test('An account with an address of any form can be exported, changed and erased', async t => {
  const app = await build(t)
  const { DATABASE_URL } = app.config
  for (const email of ['jörg@example.org', 'former-member', 'a..b@example.org']) {
    await person(app, 'STUDENT', { email })
    t.match(JSON.parse((await user({ DATABASE_URL }, ['export', '--email', email])).stdout), { account: { email } })
    t.equal((await user({ DATABASE_URL }, ['set-role', '--email', email, '--role', 'ADMIN'])).code, 0)
    t.equal((await user({ DATABASE_URL }, ['erase', '--email', email])).code, 0)
    t.strictSame([...await app.sql`SELECT FROM users WHERE email = ${email}`], [])
  }
})

t.test('--json prints the accounts as JSON', async t => {
  const app = await build(t)
  const { DATABASE_URL } = app.config
  t.strictSame(await user({ DATABASE_URL }, ['list', '--json']), succeeded('[]\n'))
  const { id, email } = await person(app, 'STUDENT', { first_name: 'Zoë' })
  const account = { id, email, firstName: 'Zoë', lastName: 'Lovelace', role: 'ADMIN' }
  const shown = succeeded(`${JSON.stringify([account])}\n`)
  t.strictSame(await user({ DATABASE_URL }, ['set-role', '--email', email, '--role', 'ADMIN', '--json']), shown)
  t.strictSame(await user({ DATABASE_URL }, ['list', '--json']), shown)
})

t.test('reports an unknown account in one line', async t => {
  const email = ['--email', 'nobody@example.org']
  await Promise.all([
    user({ DATABASE_URL }, ['set-role', ...email, '--role', 'ADMIN']),
    user({ DATABASE_URL }, ['set-password', ...email, '--password-stdin'], PASSWORD),
    user({ DATABASE_URL }, ['sign-out', ...email]),
  ].map(async outcome => t.strictSame(await outcome, failed('Account not found. Check the email address.'))))
  t.equal(await stored('nobody@example.org'), undefined)
})

t.test('rejects unknown arguments', async t => {
  const help = (line: string) => `${line} (see --help)`
  const without = (option: string) => ['create', ...GRACE.toSpliced(GRACE.indexOf(option), 2), '--password-stdin']
  const refusals: [args: string[], line: string, input?: string][] = [
    [without('--email'), help('create needs --email')],
    [without('--role'), help('create needs --role')],
    [without('--first-name'), help('create needs --first-name')],
    [without('--last-name'), help('create needs --last-name')],
    [['set-role', '--role', 'ADMIN'], help('set-role needs --email')],
    [['set-role', '--email', 'a@b.org'], help('set-role needs --role')],
    [['set-role', '--email', 'a@b.org', '--role', 'admin'], help('--role "admin" is not valid')],
    [['create', '--email', 'a@b', '--role', 'ADMIN'], help('--email "a@b" is not valid')],
    [['set-password', '--password-stdin'], help('set-password needs --email')],
    [['set-password', '--email', 'a@b.org'], 'Cannot ask for the password without a terminal. Use --password-stdin.'],
    [['set-password', '--email', 'a@b.org', '--password-stdin'], 'The password must have at least 8 characters', 'x'],
  ]
  const before = await app.sql`SELECT count(*) FROM users`
  for (const [args, line, input] of refusals) {
    t.strictSame(await user({ DATABASE_URL }, args, input), failed(line), `user ${args.join(' ')}`)
  }
  t.strictSame(await app.sql`SELECT count(*) FROM users`, before)
})

t.test('reports a read-only server in one line', async t => {
  const DATABASE_URL = await createDatabase()
  const sql = postgres(DATABASE_URL, { max: 1 })
  await sql.unsafe(`ALTER DATABASE "${new URL(DATABASE_URL).pathname.slice(1)}" SET default_transaction_read_only = on`)
  await sql.end()
  t.strictSame(await user({ DATABASE_URL }, ['sign-out', '--email', 'ada@example.org']),
    failed('PostgreSQL: cannot execute SELECT FOR NO KEY UPDATE in a read-only transaction'))
})

t.test('reports an outdated schema in one line', async t => {
  const DATABASE_URL = await createDatabase({ migrated: false })
  t.strictSame(await user({ DATABASE_URL }, ['list']), failed(
    `The database lacks ${MIGRATIONS} migrations. Run "npm run migrate", or start with MIGRATE_ON_START=true.`
  ))
})
