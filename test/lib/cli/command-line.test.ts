import databaseCommand from '#lib/cli/database.js'
import emailCommand from '#lib/cli/email.js'
import migrateCommand from '#lib/cli/migrate.js'
import openapiCommand from '#lib/cli/openapi.js'
import seedCommand from '#lib/cli/seed.js'
import userCommand from '#lib/cli/user.js'
import { NOT_A_NAME } from '#lib/values/formats.js'
import { call, run } from '../../process.ts'
import t from '../../suite.ts'

const ADA = '--email ada@example.org'
const NEW = `${ADA} --role ADMIN --first-name A --last-name L`

t.test('A command refuses unknown arguments', async t => {
  const refusals: [command: (args: string[]) => Promise<void>, args: string, message: string][] = [
    [databaseCommand, 'url --dry-run', 'url does not take --dry-run'],
    [databaseCommand, 'url --registrations-older-than 2y', 'url does not take --registrations-older-than'],
    [databaseCommand, 'retention --registrations-older-than 2y --hold', 'retention does not take --hold'],
    [databaseCommand, 'url x', 'Unexpected argument "x"'],
    [databaseCommand, 'drop', 'Unknown command "drop"'],
    [emailCommand, 'list --email x', 'list does not take --email'],
    [emailCommand, 'retry 1 --json', 'retry does not take --json'],
    [emailCommand, 'test --state sent', 'test does not take --state'],
    [emailCommand, 'list x', 'Unexpected argument "x"'],
    [migrateCommand, 'create x --json', 'create does not take --json'],
    [migrateCommand, 'up 1', 'Unexpected argument "1"'],
    [migrateCommand, 'toString', 'Unknown command "toString"'],
    [openapiCommand, 'a b', 'Unexpected argument "b"'],
    [seedCommand, 'now', 'Unexpected argument "now"'],
    [userCommand, `create ${NEW} --dry-run`, 'create does not take --dry-run'],
    [userCommand, `set-role ${ADA} --role ADMIN --dry-run`, 'set-role does not take --dry-run'],
    [userCommand, `set-password ${ADA} --role ADMIN`, 'set-password does not take --role'],
    [userCommand, `sign-out ${ADA} --dry-run`, 'sign-out does not take --dry-run'],
    [userCommand, 'import file --role ADMIN', 'import does not take --role'],
    [userCommand, `export ${ADA} --json`, 'export does not take --json'],
    [userCommand, `erase ${ADA} --json`, 'erase does not take --json'],
    [userCommand, 'list --role ADMIN', 'list does not take --role'],
    // Node decodes invalid UTF-8 like this.
    [userCommand, `create ${ADA} --role ADMIN --last-name L --first-name \u3164`, `--first-name ${NOT_A_NAME}`],
    [userCommand, 'create --first-name Zo\ufffd', '"Zo\ufffd" is not UTF-8'],
  ]
  for (const [command, args, message] of refusals) {
    t.strictSame(await call(command, {}, { args: args.split(' ') }),
      { code: 1, signal: null, stdout: '', stderr: `${message} (see --help)\n` }, args)
  }
})

t.test('Every command has a usage, and refuses an unknown option', async t => {
  const commands = {
    database: databaseCommand,
    email: emailCommand,
    migrate: migrateCommand,
    openapi: openapiCommand,
    seed: seedCommand,
    user: userCommand,
  }
  for (const [name, command] of Object.entries(commands)) {
    for (const args of [['--help'], ['nonsense', '--help']]) {
      const stdout = new RegExp(`^Usage: npm run (--silent )?${name} `)
      t.match(await call(command, {}, { args }), { code: 0, stdout, stderr: '' }, args.join(' '))
    }
    t.match(await call(command, {}, { args: ['--nonsense'] }), {
      code: 1, stdout: '', stderr: /^Unknown option '--nonsense'.* \(see --help\)\n$/,
    }, name)
  }
  for (const command of [databaseCommand, emailCommand, userCommand]) {
    t.match(await call(command, {}, {}), { code: 1, stderr: 'Missing command (see --help)\n' })
  }
})

t.test('The service takes no arguments', async t => {
  const stderr = 'Unexpected argument "--port=4000". Environment variables configure the service.\n'
  const result = await run(t, 'dist/lib/server.js', {}, { args: ['--port=4000'], covered: true })
  t.match(result, { code: 1, stdout: '', stderr })
})
