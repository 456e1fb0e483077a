import { assertFound, idOfEmail } from '../accounts/accounts.ts'
import { loadConfig } from '../config/config.ts'
import { isText, printableLine } from '../values/formats.ts'
import {
  dismissEmails, emailTo, enqueueEmails, type ListedEmail, listEmails, retryEmails, STATUSES,
} from '../email/emails.ts'
import { isEmailConfigured } from '../email/transport.ts'
import { StartupError } from '../config/startup-error.ts'
import { onTables, OPERAND, parseCommandLine, UsageError } from './command-line.ts'

const USAGE = `Usage: npm run email -- COMMAND

  list [--state STATE] [--json]
      list unsent emails, their recipients and errors, or all emails in this state: ${STATUSES.join(', ')}
  retry ID
  retry --all
      send a failed email again, or all failed emails
  dismiss ID
  dismiss --all
      delete a failed email, or all failed emails, for example after a mistyped address
  test --email EMAIL
      send a test email to the account with this email address

This command writes to the outbox, so you can use it while the service runs. The service sends the emails.
--json prints JSON for programs.`

/** `npm run email`: lists, retries and dismisses emails in the outbox. */
export default async function emailCommand (args: string[]) {
  const { command, operand, values } = parseCommandLine(args, {
    state: { type: 'string' },
    email: { type: 'string' },
    all: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  }, { list: ['state', 'json'], retry: ['all', OPERAND], dismiss: ['all', OPERAND], test: ['email'] })
  if (values.help) return console.log(USAGE)

  switch (command) {
    case 'list': {
      const status = STATUSES.find(name => name === values.state)
      if (values.state !== undefined && !status) throw new UsageError(`--state must be ${STATUSES.join(' or ')}`)
      const emails = await onTables(sql => listEmails(sql, status))
      return values.json ? console.log(JSON.stringify(emails)) : showLines(emails)
    }
    case 'retry':
    case 'dismiss': {
      if ((operand === undefined) === (values.all === undefined)) {
        throw new UsageError(`${command} needs an ID or --all`)
      }
      const isRetry = command === 'retry'
      const count = await onTables(sql => (isRetry ? retryEmails : dismissEmails)(sql, operand))
      if (operand && count === 0) throw new StartupError('The outbox does not contain a failed email with this id')
      const emails = count === 1 ? 'email' : 'emails'
      return console.log(isRetry ? `${count} ${emails} will be sent` : `Deleted ${count} ${emails}`)
    }
    case 'test': {
      const { email } = values
      if (!email || !isText(email)) throw new UsageError('test needs --email with the email address of an account')
      if (!isEmailConfigured(loadConfig())) throw new StartupError('Email is not configured. Set SMTP_URL.')
      const [written] = await onTables(sql => enqueueEmails(
        sql, 'test', emailTo(sql, sql`SELECT id FROM users WHERE id = ${idOfEmail(sql, email)}`), null
      ))
      return console.log(`The service will send email ${assertFound(written).id}. To check, run list --state sent.`)
    }
  }
}

function showLines (emails: ListedEmail[]) {
  if (emails.length === 0) return console.log('No emails')
  const width = Math.max(...emails.map(({ template }) => template.length), 8)
  const show = (state: string, id: string, created: string, template: string, attempts: string, ...rest: string[]) => {
    const cells = [state.padEnd(8), id.padEnd(36), created.padEnd(24), template.padEnd(width), attempts.padStart(8)]
    console.log([...cells, ...rest].join('  '))
  }
  show('STATE', 'ID', 'CREATED', 'TEMPLATE', 'ATTEMPTS', 'TO  ERROR')
  for (const { id, status, template, to, createdAt, attempts, error } of emails) {
    show(status, id, createdAt, template, String(attempts), printableLine(to), ...error ? [error] : [])
  }
}
