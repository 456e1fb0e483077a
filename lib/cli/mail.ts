import { idOfEmail } from '../auth/accounts.ts'
import type { Sql } from '../database/client.ts'
import { assertMigrated } from '../database/migrations.ts'
import { loadConfig } from '../config.ts'
import { StartupError } from '../errors.ts'
import { isText } from '../formats.ts'
import { enqueueMails, type ListedMail, listMails, retryMails, STATES } from '../mail/outbox.ts'
import { isMailConfigured } from '../mail/transport.ts'
import { onDatabase, OPERAND, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run mail -- COMMAND

  list [--state STATE] [--json]
      list the mails that are not sent, or those in a state: ${STATES.join(', ')}
  retry ID
  retry --all
      send a mail again that has failed, or all that have failed
  test --email EMAIL
      send a mail to the account with this email

The service sends; this only writes to its outbox. list shows why a mail was not sent.
--json shows the mails to programs, as a list.`

/** `npm run mail`: shows and changes the outbox. */
export default async function mailCommand (args: string[]) {
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
      const mails = await onOutbox(sql => listMails(sql, state))
      return values.json ? console.log(JSON.stringify(mails)) : showLines(mails)
    }
    case 'retry': {
      if ((operand === undefined) === (values.all === undefined)) throw new UsageError('retry needs an ID or --all')
      const count = await onOutbox(sql => retryMails(sql, operand))
      if (operand && count === 0) throw new StartupError('No mail with this id has failed')
      return console.log(`${count} ${count === 1 ? 'mail' : 'mails'} will be sent`)
    }
    case 'test': {
      const { email } = values
      if (!email || !isText(email)) throw new UsageError('test needs --email, that of an account')
      if (!isMailConfigured(loadConfig())) throw new StartupError('Mail is not configured: set SMTP_URL')
      const [mail] = await onOutbox(sql => enqueueMails(sql, 'test', sql`
        SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM users WHERE id = ${idOfEmail(sql, email)}
      `))
      if (!mail) throw new StartupError('No account has this email')
      return console.log(`The service will send the mail ${mail.id}: see list --state sent`)
    }
  }
}

function onOutbox<T> (work: (sql: Sql) => Promise<T>) {
  return onDatabase(async ({ sql }) => {
    await assertMigrated(sql)
    return work(sql)
  })
}

function showLines (mails: ListedMail[]) {
  for (const { id, status, kind, createdAt, attempts, error } of mails) {
    console.log([status.padEnd(10), id, createdAt, kind, `${attempts} attempts`, error].filter(Boolean).join('  '))
  }
}
