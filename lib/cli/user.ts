import { text } from 'node:stream/consumers'

import {
  type Account, assertFound, createAccount, idOfEmail, isTaken, listAccounts, setPassword, setRole, signOut,
} from '../accounts/accounts.ts'
import { type Erasure, eraseUser } from '../accounts/erasure.ts'
import { readPersonalData } from '../accounts/personal-data.ts'
import { retryConflict } from '../database/conflicts.ts'
import { loadConfig } from '../config/config.ts'
import { hashPassword } from '../auth/passwords.ts'
import { enqueueBatch } from '../email/batches.ts'
import { isEmailConfigured } from '../email/transport.ts'
import { isEmail, isName, isText, NOT_A_NAME, printableLine } from '../values/formats.ts'
import { type Role, ROLES } from '../values/roles.ts'
import { StartupError } from '../config/startup-error.ts'
import { NO_TIMEOUT, onTables, OPERAND, parseCommandLine, UsageError } from './command-line.ts'
import { importUsers } from './import-users.ts'
import { readPassword } from './read-password.ts'

const USAGE = `Usage: npm run user -- COMMAND

  create --email EMAIL --role ROLE --first-name NAME --last-name NAME
      add an account
  set-role --email EMAIL --role ROLE
      change the role of an account. Tokens keep the old role until they expire, so you can also use sign-out
  set-password --email EMAIL
      set a new password, and revoke all tokens of the account
  sign-out --email EMAIL
      revoke all tokens of the account
  import FILE [--dry-run]
      add the accounts in a CSV file (UTF-8), for example from GET /exports/users.csv. The first line must name the
      columns email, firstName and lastName. It can also name role (STUDENT if empty) and club (the name of a club). If
      any line is wrong, you see all wrong lines, and no accounts are added. Imported users sign in with the identity
      provider, or request a password reset
  export --email EMAIL
      print all data about a person, like GET /me/export
  erase --email EMAIL [--with-blogs] [--dry-run]
      delete an account with its registrations, likes, unpublished posts and unused pictures. Published posts stay
      without the name of the author; --with-blogs deletes them instead
  list
      list all accounts

ROLE is STUDENT, CLUB_HEAD or ADMIN.

--dry-run          check the file, or count the rows, without changing anything
--json             print JSON for programs
--password-stdin   read the password from standard input. Otherwise create and set-password ask you for it`

/** `npm run user`: adds, changes, exports and erases accounts. */
export default async function userCommand (args: string[]) {
  const { command, operand, values } = parseCommandLine(args, {
    email: { type: 'string' },
    role: { type: 'string' },
    'first-name': { type: 'string' },
    'last-name': { type: 'string' },
    'password-stdin': { type: 'boolean' },
    'dry-run': { type: 'boolean' },
    'with-blogs': { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, {
    create: ['email', 'role', 'first-name', 'last-name', 'password-stdin', 'json'],
    'set-role': ['email', 'role', 'json'],
    'set-password': ['email', 'password-stdin', 'json'],
    'sign-out': ['email', 'json'],
    import: [OPERAND, 'dry-run'],
    export: ['email'],
    erase: ['email', 'with-blogs', 'dry-run'],
    list: ['json'],
  })
  if (values.help) return console.log(USAGE)
  const show = values.json ? showJson : showLines

  /** Returns the value of a required option. */
  function take (option: 'email' | 'role' | 'first-name' | 'last-name', isRight: (value: string) => boolean) {
    const value = values[option]
    if (!value) throw new UsageError(`${command} needs --${option}`)
    if (!isRight(value)) throw new UsageError(`--${option} "${value}" is not valid`)
    return value
  }
  function name (option: 'first-name' | 'last-name') {
    const value = take(option, isText)
    if (!isName(value)) throw new UsageError(`--${option} ${NOT_A_NAME}`)
    return value
  }
  const email = () => take('email', isEmail)
  // An account from the identity provider may have an unusual address.
  const known = () => take('email', isText)
  const role = () => take('role', value => ROLES.includes(value as Role)) as Role

  switch (command) {
    case 'create': {
      const account = {
        email: email(), role: role(), firstName: name('first-name'), lastName: name('last-name'),
      }
      const password = await hashPassword(await readPassword(values['password-stdin']))
      const created = await onTables(async sql => {
        return await isTaken(sql, account.email) ? undefined : createAccount(sql, { ...account, password })
      })
      if (!created) throw new StartupError(`${account.email} already has an account`)
      return show(created)
    }
    case 'set-role': {
      const change = [known(), role()] as const
      return show(await onTables(sql => setRole(sql, ...change)))
    }
    case 'set-password': {
      const change = [known(), await readPassword(values['password-stdin'])] as const
      return show(await onTables(sql => setPassword(sql, ...change)))
    }
    case 'sign-out': {
      const address = known()
      return show(await onTables(sql => signOut(sql, address)))
    }
    case 'import': {
      if (!operand) throw new UsageError('import needs a FILE')
      const dryRun = values['dry-run']
      const count = await onTables(sql => importUsers(sql, operand, { dryRun }), NO_TIMEOUT)
      const accounts = `${count} ${count === 1 ? 'account' : 'accounts'}`
      return console.log(dryRun ? `${accounts} would be imported` : `${accounts} imported`)
    }
    case 'export': {
      const address = known()
      const { PUBLIC_URL = '' } = loadConfig()
      const json = await onTables(async sql => {
        const [account] = await sql<{ id: string }[]>`SELECT id FROM users WHERE id = ${idOfEmail(sql, address)}`
        const data = account && await readPersonalData(work => work(sql), account.id, `${PUBLIC_URL}/pictures/`)
        return text(assertFound(data))
      })
      return console.log(JSON.stringify(JSON.parse(json), null, 2))
    }
    case 'erase': {
      const address = known()
      const options = { withBlogs: values['with-blogs'], dryRun: values['dry-run'] }
      const isTelling = isEmailConfigured(loadConfig())
      const erasure = await onTables(sql => retryConflict(() => eraseUser(sql, address, {
        ...options,
        ...isTelling && { outbox: { enqueueBatch: (...batch) => enqueueBatch(sql, ...batch) } },
      })), NO_TIMEOUT)
      return console.log(describeErasure(erasure, options))
    }
    case 'list': return show(...await onTables(listAccounts))
  }
}

/** Describes an erasure. The text identifies the account by its id only. */
function describeErasure (erasure: Erasure, { withBlogs = false, dryRun = false }) {
  const { id, registrations, likes, unpublishedBlogs, publishedBlogs, ...others } = erasure
  const { testimonialsOfThatName, mentorsOfThatName, pictures, keptPictures } = others
  const lines = [
    `${dryRun ? 'Would erase' : 'Erased'} account ${id}`,
    `  registrations      ${registrations}`,
    `  likes              ${likes}`,
    `  unpublished posts  ${unpublishedBlogs}`,
    `  published posts    ${publishedBlogs}${withBlogs ? '' : ', kept under “Former member”'}`,
    `  pictures           ${pictures}`,
  ]
  if (keptPictures > 0) {
    lines.push(`Not deleted, because pages or published posts show them: ${keptPictures} pictures.`)
  }
  if (testimonialsOfThatName + mentorsOfThatName > 0) {
    lines.push(`Not deleted, because they do not belong to an account: ${testimonialsOfThatName} testimonials and ` +
      `${mentorsOfThatName} mentors with the same name.`)
  }
  return lines.join('\n')
}

function showJson (...accounts: Account[]) {
  console.log(JSON.stringify(accounts))
}

function showLines (...accounts: Account[]) {
  for (const { email, role, id, firstName, lastName } of accounts) {
    // A line break or an escape sequence in a name could fake output.
    console.log(`${role.padEnd(9)}  ${id}  ${printableLine(email)}  ${printableLine(`${firstName} ${lastName}`)}`)
  }
}
