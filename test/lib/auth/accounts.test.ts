import { setTimeout as sleep } from 'node:timers/promises'

import { createAccount, ensureAdmin, listAccounts, setPassword, setRole } from '#lib/auth/accounts.js'
import { verifyPassword } from '#lib/auth/passwords.js'
import { build, person } from '../../helper.ts'
import t from '../../suite.ts'

const PASSWORD = 'correct horse'
const KEYS = ['email', 'firstName', 'id', 'lastName', 'role']
const GRACE = { email: 'grace@example.org', firstName: 'Grace', lastName: 'Hopper', role: 'CLUB_HEAD' as const }

const app = await build(t)
const { sql } = app

const stored = async (email: string) => (await sql`SELECT * FROM users WHERE email = ${email}`)[0]
const accepts = async (email: string, password: string) => verifyPassword((await stored(email))!.password, password)

t.test('createAccount stores a hash of the password, and does not return it', async t => {
  const account = await createAccount(sql, { ...GRACE, password: PASSWORD })
  const row = await stored(GRACE.email)
  t.strictSame(account, { id: row!.id, ...GRACE })
  t.match(row, { first_name: 'Grace', last_name: 'Hopper', role: 'CLUB_HEAD', idp_id: null, club_id: null })
  t.match(row!.password, /^\$argon2id\$/)
  t.equal(await accepts(GRACE.email, PASSWORD), true)
})

t.test('createAccount leaves an existing account unchanged', async t => {
  const { email } = await person(app)
  const before = await stored(email)
  t.equal(await createAccount(sql, { ...GRACE, email, password: PASSWORD }), undefined)
  t.strictSame(await stored(email), before)
})

t.test('Of concurrent createAccount calls for one email, one creates the account', async t => {
  const account = { ...GRACE, email: 'race@example.org', password: PASSWORD }
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => createAccount(sql, account)))
  t.equal(outcomes.filter(Boolean).length, 1)
  t.equal((await sql`SELECT FROM users WHERE email = ${account.email}`).length, 1)
})

t.test('setRole', async t => {
  const { id, email } = await person(app)
  for (const role of ['ADMIN', 'ADMIN', 'CLUB_HEAD', 'STUDENT'] as const) {
    t.strictSame(await setRole(sql, email, role), { id, email, firstName: 'Ada', lastName: 'Lovelace', role })
    t.equal((await stored(email))!.role, role)
  }
  t.equal(await setRole(sql, 'nobody@example.org', 'ADMIN'), undefined)
  t.equal(await stored('nobody@example.org'), undefined)
})

t.test('setPassword', async t => {
  const { id, email } = await person(app, 'ADMIN')
  t.strictSame(
    await setPassword(sql, email, PASSWORD), { id, email, firstName: 'Ada', lastName: 'Lovelace', role: 'ADMIN' }
  )
  t.equal(await accepts(email, PASSWORD), true)
  t.equal(await setPassword(sql, 'nobody@example.org', PASSWORD), undefined)
})

t.test('listAccounts sorts by newest, then by id', async t => {
  const dates = ['2990-01-01', '2990-01-02', '2990-01-02', '2990-01-02']
  const people = await Promise.all(dates.map(date => person(app, 'STUDENT', { created_at: date })))
  const [oldest, ...tied] = people.map(({ id }) => id)
  const accounts = await listAccounts(sql)
  t.strictSame(accounts.slice(0, 4).map(({ id }) => id), [...tied.sort(), oldest])
  t.equal(accounts.length, (await sql`SELECT FROM users`).length)
  for (const account of accounts) t.strictSame(Object.keys(account).sort(), KEYS)
})

t.test('ensureAdmin creates a missing account once', async t => {
  const email = 'first@example.org'
  const { outcome, id } = await ensureAdmin(sql, email, PASSWORD)
  t.equal(outcome, 'created')
  const row = await stored(email)
  t.equal(id, row!.id)
  t.match(row, { role: 'ADMIN', first_name: 'Platform', last_name: 'Admin' })
  t.equal(await accepts(email, PASSWORD), true)
  t.strictSame(await ensureAdmin(sql, email, 'another password'), { id, outcome: 'found' })
  t.equal((await stored(email))!.password, row!.password)
})

t.test('ensureAdmin makes an existing account an admin, and keeps its password', async t => {
  const { id, email } = await person(app, 'CLUB_HEAD')
  await setPassword(sql, email, PASSWORD)
  const { role, updated_at: updated, ...before } = (await stored(email))!
  t.strictSame(await ensureAdmin(sql, email, 'another password'), { id, outcome: 'promoted' })
  t.match(await stored(email), { ...before, role: 'ADMIN' })
  t.equal(await accepts(email, PASSWORD), true)
})

t.test('Of five concurrent ensureAdmin calls, one creates the account and four find it', async t => {
  const email = 'only@example.org'
  let running: Promise<{ outcome: string }[]>
  await sql.begin(async sql => {
    // Wait until all five have looked for the account and found none.
    await sql`LOCK TABLE users IN EXCLUSIVE MODE`
    running = Promise.all(Array.from({ length: 5 }, () => ensureAdmin(app.sql, email, PASSWORD)))
    while ((await app.sql`SELECT FROM pg_locks WHERE relation = 'users'::regclass AND NOT granted`).length < 5) {
      await sleep(5)
    }
  })
  t.strictSame((await running!).map(({ outcome }) => outcome).sort(), ['created', 'found', 'found', 'found', 'found'])
  t.equal((await sql`SELECT FROM users WHERE email = ${email}`).length, 1)
})
