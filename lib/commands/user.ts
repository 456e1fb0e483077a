import { type Account, createAccount, listAccounts, type Role, ROLES, setPassword, setRole } from '../accounts.ts'
import type { Sql } from '../database.ts'
import { isEmail, isText } from '../formats.ts'
import { assertMigrated } from '../migrations.ts'
import { StartupError } from '../startup-error.ts'
import { onDatabase, parseCommandLine, UsageError } from './command-line.ts'
import { readPassword } from './read-password.ts'

const USAGE = `Usage: npm run user -- COMMAND

  create --email EMAIL --role ROLE --first-name NAME --last-name NAME
  set-role --email EMAIL --role ROLE
  set-password --email EMAIL
  list

ROLE is STUDENT, CLUB_HEAD or ADMIN. A token that was issued before keeps its role until it expires.
create and set-password ask for the password; with --password-stdin they read it from standard input.
--json shows the accounts to programs, as a list.`

/** `npm run user`: adds and changes accounts, whatever their role. */
export default async function userCommand (args: string[]) {
  const { command, values } = parseCommandLine(args, {
    email: { type: 'string' },
    role: { type: 'string' },
    'first-name': { type: 'string' },
    'last-name': { type: 'string' },
    'password-stdin': { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  })
  if (values.help) return console.log(USAGE)
  const show = values.json ? showJson : showLines

  /** The value of an option that must be there. */
  function take (option: 'email' | 'role' | 'first-name' | 'last-name', isRight: (value: string) => boolean) {
    const value = values[option]
    if (!value) throw new UsageError(`${command} needs --${option}`)
    if (!isRight(value)) throw new UsageError(`--${option} "${value}" will not do`)
    return value
  }
  const email = () => take('email', isEmail)
  const role = () => take('role', value => ROLES.includes(value as Role)) as Role

  switch (command) {
    case 'create': {
      const account = {
        email: email(), role: role(), firstName: take('first-name', isText), lastName: take('last-name', isText),
      }
      const password = await readPassword(values['password-stdin'])
      const created = await onAccounts(sql => createAccount(sql, { ...account, password }))
      if (!created) throw new StartupError(`${account.email} has an account already`)
      return show(created)
    }
    case 'set-role': {
      const change = [email(), role()] as const
      return show(found(await onAccounts(sql => setRole(sql, ...change))))
    }
    case 'set-password': {
      const change = [email(), await readPassword(values['password-stdin'])] as const
      return show(found(await onAccounts(sql => setPassword(sql, ...change))))
    }
    case 'list': return show(...await onAccounts(listAccounts))
    default: throw new UsageError(command ? `There is no command "${command}"` : 'A command is missing')
  }
}

function onAccounts<T> (work: (sql: Sql) => Promise<T>) {
  return onDatabase(async ({ sql }) => {
    await assertMigrated(sql)
    return work(sql)
  })
}

function found (account: Account | undefined) {
  if (!account) throw new StartupError('No account has this email')
  return account
}

function showJson (...accounts: Account[]) {
  console.log(JSON.stringify(accounts))
}

function showLines (...accounts: Account[]) {
  for (const { email, role, id, firstName, lastName } of accounts) {
    console.log(`${role.padEnd(9)}  ${id}  ${email}  ${firstName} ${lastName}`)
  }
}
