import emailCommand from '#lib/cli/email.js'
import { build, person } from '../../helper.ts'
import { call } from '../../process.ts'
import t from '../../suite.ts'

const app = await build(t)
const { sql } = app
const { DATABASE_URL } = app.config

const SMTP = { SMTP_URL: 'smtp://localhost', MAIL_FROM: 'community@example.org' }

const run = (...args: string[]) => call(emailCommand, { DATABASE_URL, NODE_ENV: 'test', ...SMTP }, { args })

const succeeded = (stdout: string) => ({ code: 0, signal: null, stdout, stderr: '' })
const failed = (stderr: string) => ({ code: 1, signal: null, stdout: '', stderr: `${stderr}\n` })

t.beforeEach(async () => { await sql`DELETE FROM emails` })

let inserted = 0

/** Inserts an email in this state, a second later than the previous email. Returns its id. */
async function insert (status: string, error: string | null = null) {
  const { id } = await person(app)
  const [row] = await sql<[{ id: string }]>`
    INSERT INTO emails (template, bulk, user_id, data, status, error, attempts, created_at)
    VALUES ('test', false, ${id}, '{}', ${status}, ${error}, 2, now() + ${`${inserted++} s`}::interval) RETURNING id
  `
  return row.id
}

t.test('test writes an email to the outbox', async t => {
  const { id, email } = await person(app)
  const { stdout } = await run('test', '--email', email)
  const [row] = await sql`SELECT id, user_id AS "userId", template, status, data FROM emails`
  t.match(row, { userId: id, template: 'test', status: 'pending', data: {} })
  t.equal(stdout, `The service will send email ${row!.id}. To check, run list --state sent.\n`)
  t.strictSame(await run('test', '--email', 'eve@example.org'), failed('Account not found. Check the email address.'))
  const needsEmail = failed('test needs --email with the email address of an account (see --help)')
  t.strictSame(await run('test'), needsEmail)
  t.strictSame(await run('test', '--email', '\0'), needsEmail)
  t.strictSame(await call(emailCommand, { DATABASE_URL, NODE_ENV: 'production', JWT_SECRET: 'x'.repeat(32) }, {
    args: ['test', '--email', email],
  }), failed('Email is not configured. Set SMTP_URL.'))
})

t.test('list shows unsent emails, or the emails in a state, with recipients', async t => {
  t.strictSame(await run('list'), succeeded('No emails\n'))
  const sent = await insert('sent')
  const refused = await insert('failed', 'RCPT TO: 550 5.1.1')
  const pending = await insert('pending')
  const { stdout } = await run('list')
  const lines = stdout.trim().split('\n')
  t.equal(lines.length, 3)
  t.match(lines[0], /^STATE +ID +CREATED +TEMPLATE +ATTEMPTS {2}TO {2}ERROR$/)
  t.match(lines[1], new RegExp(`^failed {4}${refused}  \\d{4}-\\S+Z  test +2  \\S+@\\S+  RCPT TO: 550 5\\.1\\.1$`))
  t.match(lines[2], new RegExp(`^pending {3}${pending}  \\S+  test +2  \\S+@\\S+$`))
  t.match((await run('list', '--state', 'sent')).stdout, sent)
  const json = JSON.parse((await run('list', '--state', 'failed', '--json')).stdout)
  t.match(json, [{ id: refused, template: 'test', status: 'failed', attempts: 2, error: 'RCPT TO: 550 5.1.1' }])
  t.strictSame(await run('list', '--state', 'lost'), failed('--state must be pending or sent or failed (see --help)'))
})

t.test('retry sends failed emails again', async t => {
  const states = async () => (await sql`SELECT status FROM emails ORDER BY created_at`).map(({ status }) => status)
  const refused = await insert('failed')
  for (const state of ['failed', 'failed', 'sent']) await insert(state)
  t.strictSame(await run('retry', refused), succeeded('1 email will be sent\n'))
  t.strictSame(await run('retry', refused), failed('The outbox does not contain a failed email with this id'))
  t.strictSame(await states(), ['pending', 'failed', 'failed', 'sent'])
  t.strictSame(await run('retry', '--all'), succeeded('2 emails will be sent\n'))
  t.strictSame(await states(), ['pending', 'pending', 'pending', 'sent'])
  t.strictSame(await run('retry'), failed('retry needs an ID or --all (see --help)'))
  t.strictSame(await run('retry', refused, '--all'), failed('retry needs an ID or --all (see --help)'))
})

t.test('dismiss deletes failed emails', async t => {
  const states = async () => (await sql`SELECT status FROM emails ORDER BY created_at`).map(({ status }) => status)
  const mistyped = await insert('failed')
  for (const state of ['pending', 'failed', 'failed', 'sent']) await insert(state)
  t.strictSame(await run('dismiss', mistyped), succeeded('Deleted 1 email\n'))
  t.strictSame(await run('dismiss', mistyped), failed('The outbox does not contain a failed email with this id'))
  t.strictSame(await states(), ['pending', 'failed', 'failed', 'sent'])
  t.strictSame(await run('dismiss', '--all'), succeeded('Deleted 2 emails\n'))
  t.strictSame(await states(), ['pending', 'sent'])
  t.strictSame(await run('dismiss'), failed('dismiss needs an ID or --all (see --help)'))
})
