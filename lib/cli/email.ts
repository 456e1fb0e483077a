import { idOfEmail } from '../auth/accounts.ts'
import type { Sql } from '../database/client.ts'
import { assertMigrated } from '../database/migrations.ts'
import { loadConfig } from '../config.ts'
import { StartupError } from '../errors.ts'
import { isText } from '../formats.ts'
import { enqueueEmails, type ListedEmail, listEmails, retryEmails, STATES } from '../email/outbox.ts'
import { isEmailConfigured } from '../email/transport.ts'
import { onDatabase, OPERAND, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run email -- COMMAND

  list [--state STATE] [--json]
      list the emails that are not sent, or those in a state: ${STATES.join(', ')}
  retry ID
  retry --all
      send an email again that has failed, or all that have failed
  test --email EMAIL
      send an email to the account with this email

The service sends; this only writes to its outbox. list shows why an email was not sent.
--json shows the emails to programs, as a list.`

/** `npm run email`: shows and changes the outbox. */
export default async function emailCommand (args: string[]) {
  const { command, operand, values } = parseCommandLine(args, {
    state: { type: 'string' },
    email: { type: 'string' },
    all: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, { list: ['state', 'json'], retry: ['all', OPERAND], test: ['email'] })
  if (values.help) return console.log(USAGE)

  switch (command) {
    case 'list': {
      const state = STATES.find(name => name === values.state)
      if (values.state !== undefined && !state) throw new UsageError(`--state must be ${STATES.join(' or ')}`)
      const emails = await onOutbox(sql => listEmails(sql, state))
      return values.json ? console.log(JSON.stringify(emails)) : showLines(emails)
    }
    case 'retry': {
      if ((operand === undefined) === (values.all === undefined)) throw new UsageError('retry needs an ID or --all')
      const count = await onOutbox(sql => retryEmails(sql, operand))
      if (operand && count === 0) throw new StartupError('No email with this id has failed')
      return console.log(`${count} ${count === 1 ? 'email' : 'emails'} will be sent`)
    }
    case 'test': {
      const { email } = values
      if (!email || !isText(email)) throw new UsageError('test needs --email with the email address of an account')
      if (!isEmailConfigured(loadConfig())) throw new StartupError('Email is not configured: set SMTP_URL')
      const [written] = await onOutbox(sql => enqueueEmails(sql, 'test', sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${idOfEmail(sql, email)}
      `))
      if (!written) throw new StartupError('No account has this email')
      return console.log(`The service will send the email ${written.id}: see list --state sent`)
    }
  }
}

function onOutbox<T> (work: (sql: Sql) => Promise<T>) {
  return onDatabase(async ({ sql }) => {
    await assertMigrated(sql)
    return work(sql)
  })
}

function showLines (emails: ListedEmail[]) {
  for (const { id, status, template, createdAt, attempts, error } of emails) {
    console.log([status.padEnd(10), id, createdAt, template, `${attempts} attempts`, error].filter(Boolean).join('  '))
  }
}
