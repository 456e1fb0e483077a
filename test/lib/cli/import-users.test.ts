import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import userCommand from '#lib/cli/user.js'
import { NOT_A_NAME } from '#lib/values/formats.js'
import { build, inject, person } from '../../helper.ts'
import { call } from '../../process.ts'
import t, { type Test } from '../../suite.ts'

const app = await build(t)
const { DATABASE_URL } = app.config
await app.sql`INSERT INTO clubs (name, description) VALUES ('Chess, "the" Club', 'A club')`

/** Runs `user import` on a file with this content. */
async function importFile (t: Test, content: string | Buffer | string[], ...options: string[]) {
  const file = join(t.testdir({}), 'members.csv')
  await writeFile(file, Array.isArray(content) ? content.map(line => `${line}\r\n`).join('') : content)
  return await call(userCommand, { DATABASE_URL }, { args: ['import', file, ...options] })
}

const count = async () => (await app.sql`SELECT FROM users`).count

const succeeded = (stdout: string, stderr = '') => ({ code: 0, signal: null, stdout, stderr })
const failed = (...lines: string[]) => ({ code: 1, signal: null, stdout: '', stderr: `${lines.join('\n')}\n` })

t.test('import creates the accounts in a file', async t => {
  const outcome = await importFile(t, [
    '\ufefflastName,email,firstName,club,role,createdAt',
    'Lovelace,ada@example.org,Ada,,,x',
    '"O""Hara, Jr.",bob@example.org,"Bob, the",,CLUB_HEAD,',
    '',
    'Hopper,grace@example.org,Grace,"Chess, ""the"" Club",ADMIN,',
  ])
  t.strictSame(outcome, succeeded('3 accounts imported\n'))
  const users = await app.sql`
    SELECT email, first_name, last_name, role, clubs.name AS club, password, idp_id
    FROM users LEFT JOIN clubs ON clubs.id = club_id ORDER BY email
  `
  t.strictSame(users.map(user => Object.values(user)), [
    ['ada@example.org', 'Ada', 'Lovelace', 'STUDENT', null, '!', null],
    ['bob@example.org', 'Bob, the', 'O"Hara, Jr.', 'CLUB_HEAD', null, '!', null],
    ['grace@example.org', 'Grace', 'Hopper', 'ADMIN', 'Chess, "the" Club', '!', null],
  ])
  const login = await inject(app, 'POST', '/auth/login', { email: 'ada@example.org', password: '!' })
  t.equal(login.statusCode, 401, 'without a password there is no sign-in')
})

t.test('import reads the file of GET /exports/users.csv', async t => {
  await app.sql`DELETE FROM users`
  const admin = await person(app, 'ADMIN')
  const names = ['+1', '\'+1', '=1;=2', 'a;', '\t=1', ';"', '"\'-', '＝', ',', 'O\'Hara']
  for (const name of names) {
    const [club] = await app.sql<[{ id: string }]>`
      INSERT INTO clubs (name, description) VALUES (${name}, 'A club') RETURNING id
    `
    await person(app, 'STUDENT', { first_name: name, last_name: `${name}x`, club_id: club.id })
  }
  // Accounts from an identity provider, and the former member, the author of erased users' posts.
  for (const email of ['jörg@example.org', 'ada@localhost', '=ada@example.org', 'former-member']) {
    await person(app, 'STUDENT', { email, last_name: '' })
  }
  const people = () => app.sql`
    SELECT email, first_name, last_name, role, club_id FROM users WHERE email <> 'former-member' ORDER BY email
  `
  const before = await people()
  const { body } = await admin.inject('GET', '/exports/users.csv')
  await app.sql`DELETE FROM users`
  t.strictSame(await importFile(t, body), succeeded(`${before.length} accounts imported\n`))
  t.strictSame(await people(), before)
})

t.test('import reads files from Excel and PowerShell', async t => {
  const lines = ['\ufeff"Email",FIRSTNAME, lastName ,Role', 'ada@example.org,Zoë,L,ADMIN', ',,,', ' , ,,'].join('\r\n')
  for (const encoding of ['utf8', 'utf16le'] as const) {
    await app.sql`DELETE FROM users`
    t.strictSame(await importFile(t, Buffer.from(lines, encoding)), succeeded('1 account imported\n'), encoding)
    t.match(await app.sql`SELECT first_name, role FROM users`, [{ first_name: 'Zoë', role: 'ADMIN' }])
  }
})

t.test('import reports every invalid line, without creating accounts', async t => {
  const { email } = await person(app)
  await person(app, 'STUDENT', { email: 'Grace@Example.org' })
  const before = await count()
  const outcome = await importFile(t, [
    'email,firstName,lastName,role,club',
    'right@example.org,Ada,Lovelace,,',
    'nobody,,,TEACHER,Nowhere',
    `${email},Ada,Lovelace,,`,
    'right@example.org,Ada,Lovelace,,',
    'few@example.org,Ada',
    'many@example.org,Ada,Lovelace,,,,',
    'nul@example.org,A\0da,\u3164,,',
    'RIGHT@example.org,Ada,Lovelace,,',
    'grace@example.org,Grace,Hopper,,',
    'zoe@example.org,Zo\ufffd,Lovelace,,',
    '"line@example.org","Ada\nB",Lovelace,,',
  ])
  t.strictSame(outcome, failed(
    'Line 3: "nobody" is not an email address, firstName is empty, ' +
      '"TEACHER" is not one of STUDENT, CLUB_HEAD, ADMIN, club "Nowhere" does not exist',
    `Line 4: ${email} already has an account`,
    'Line 5: right@example.org is also on line 2',
    'Line 6: 2 cells instead of 5',
    'Line 7: 7 cells instead of 5',
    `Line 8: firstName ${NOT_A_NAME}, lastName ${NOT_A_NAME}`,
    'Line 9: RIGHT@example.org is also on line 2',
    'Line 10: grace@example.org already has an account: Grace@Example.org',
    'Line 11: is not UTF-8. Save the file as "CSV UTF-8"',
    `Line 13: firstName ${NOT_A_NAME}`,
    'No accounts were added'))
  t.equal(await count(), before)
})

t.test('import reports an unreadable file', async t => {
  t.strictSame(await importFile(t, ''), failed('The file is empty'))
  t.strictSame(await importFile(t, ['email,name']),
    failed('The first line must name the columns, separated by commas: ' +
    '"name" is not one of email, firstName, lastName, role, club, createdAt; ' +
    'firstName is missing; lastName is missing'))
  t.match(await importFile(t, ['email;firstName;lastName']), { code: 1, stderr: /separated by commas: "email;first/ })
  t.match(await importFile(t, ['email,firstName,lastName,Role,roles,role']), {
    code: 1, stderr: /: "roles" is not one of .*; role is repeated\n$/,
  })
  for (const encoding of ['latin1', 'utf16le'] as const) {
    t.strictSame(await importFile(t, Buffer.from('email,firstName,lastName,größe', encoding)), failed(
      'The first line is not UTF-8. Save the file as "CSV UTF-8"'
    ))
  }
  const broken = await importFile(t, ['email,firstName,lastName', 'a@example.org,"Ada" x,Lovelace'])
  t.match(broken, { code: 1, stderr: /members\.csv: .*quote.*line 2/i })
  const missing = await call(userCommand, { DATABASE_URL }, { args: ['import', '/nowhere.csv'] })
  t.match(missing, { code: 1, stderr: /^\/nowhere\.csv: ENOENT/ })
  const unnamed = await call(userCommand, { DATABASE_URL }, { args: ['import'] })
  t.match(unnamed, { code: 1, stderr: 'import needs a FILE' })
})

t.test('import --dry-run validates without creating accounts', async t => {
  const before = await count()
  const rows = ['email,firstName,lastName', 'dry@example.org,Ada,Lovelace']
  t.strictSame(await importFile(t, rows, '--dry-run'), succeeded('1 account would be imported\n'))
  t.match(await importFile(t, [...rows, ...rows.slice(1)], '--dry-run'), { code: 1, stderr: 'is also on line 2' })
  t.equal(await count(), before)
})

t.test('import creates all accounts or none', async t => {
  const before = await count()
  const rows = Array.from({ length: 25_000 }, (_, n) => `${n}@many.example.org,Ada,Lovelace`)
  await app.sql`ALTER TABLE users ADD CONSTRAINT few CHECK (email <> '24999@many.example.org')`
  const refused = await importFile(t, ['email,firstName,lastName', ...rows])
  t.match(refused, { code: 1, stderr: /^No accounts were added: .*few/ })
  t.equal(await count(), before)
  await app.sql`ALTER TABLE users DROP CONSTRAINT few`
  const outcome = await importFile(t, ['email,firstName,lastName', ...rows])
  t.strictSame(outcome, succeeded('25000 accounts imported\n'))
  t.equal(await count(), before + 25_000)
})
