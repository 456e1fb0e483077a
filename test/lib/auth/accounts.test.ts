import { ensureAdmin } from '#lib/auth/accounts.js'
import { build, untilBlocked } from '../../helper.ts'
import t from '../../suite.ts'

t.test('Of five concurrent ensureAdmin calls, one creates the account and four find it', async t => {
  const app = await build(t)
  const { sql } = app
  const email = 'only@example.org'
  let running: Promise<{ outcome: string }[]>
  await sql.begin(async sql => {
    // Wait until all five have looked for the account and found none.
    await sql`LOCK TABLE users IN EXCLUSIVE MODE`
    running = Promise.all(Array.from({ length: 5 }, () => ensureAdmin(app.sql, email, 'correct horse')))
    await untilBlocked(app.sql, 5)
  })
  t.strictSame((await running!).map(({ outcome }) => outcome).sort(), ['created', 'found', 'found', 'found', 'found'])
  t.equal((await sql`SELECT FROM users WHERE email = ${email}`).length, 1)
})
