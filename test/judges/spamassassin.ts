// Every template of email, as a spam filter reads it: https://spamassassin.apache.org
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import PostalMime, { type Email } from 'postal-mime'

import { templates } from '#lib/email/templates.js'
import { send } from '../faults/http.ts'
import { CLIENT, newAccount, startProvider } from '../provider.ts'
import { findVersion, type Judge, run } from './judge.ts'
import { causeEmails, inbox, REMINDING } from './emails.ts'
import { CLI, startTarget } from './target.ts'

/** A user who signs up and then signs in with the identity provider. */
const LINKED = 'bob@example.org'

/** Rules that emails match for a reason, without points. */
const ACCEPTED = [
  // No SMTP server has taken them.
  'NO_RELAYS', 'NO_RECEIVED',
  // Emails contain both HTML and text.
  'HTML_MESSAGE',
]

/** Without the network, and without memory of other emails. */
const OPTIONS = ['--local', '--nocreate-prefs', '--test-mode', '--cf=report_safe 0', '--cf=use_bayes 0']

/** Checks an email of every template with the rules that do not need a network. Only accepted rules may match. */
export const spamassassin: Judge = {
  program: 'spamassassin',
  install: 'apt-get install spamassassin',
  version: async setting => findVersion((await run(setting, 'spamassassin', ['--version'])).output),

  async run (setting) {
    const { scope, directory } = setting
    const provider = await startProvider(scope)
    const target = await startTarget(scope, directory, {
      ...CLIENT,
      ...REMINDING,
      IDP_ISSUER: provider.issuer,
      // Emails are files.
      NODE_ENV: 'development',
      FRONTEND_URL: 'https://app.example.org',
      PUBLIC_URL: 'https://api.example.org',
    })
    const folder = join(target.dataDir, 'mail')
    const next = inbox(email => readEmails(folder, email))

    const person = { email: LINKED, password: 'correct horse of the judges', firstName: 'Bob', lastName: 'Bee' }
    await send(target.url, { method: 'POST', path: '/auth/register', body: person })
    await next(LINKED)
    const account = newAccount({ email: LINKED })
    provider.accounts.push(account)
    const body = { idToken: await provider.idToken(account) }
    await send(target.url, { method: 'POST', path: '/auth/google', body })
    const linked = await next(LINKED)
    await promisify(execFile)(process.execPath, [CLI, 'email', 'test', '--email', LINKED], {
      cwd: directory, env: { PATH: process.env.PATH, DATA_DIR: target.dataDir, NODE_ENV: 'development' },
    })
    const test = await next(LINKED)
    const emails: Record<string, Email> = {
      ...await causeEmails(target, next), 'account-linked': linked, test,
    }

    const findings = Object.keys(templates).filter(name => !emails[name]).map(name => `${name}: there is no such email`)
    for (const [template, { messageId }] of Object.entries(emails)) {
      const file = join(folder, `${messageId!.slice(1).split('@')[0]}.eml`)
      const { output } = await run(setting, 'spamassassin', [...OPTIONS, file])
      const [, tests] = /^X-Spam-Status: .* tests=([\w,\s]*?)\s\w+=/m.exec(output) ?? []
      if (!tests) findings.push(`${template}: ${output.slice(0, 500)}`)
      for (const rule of tests?.split(/,\s*/) ?? []) {
        if (!ACCEPTED.includes(rule)) findings.push(`${template}: ${describe(output, rule)}`)
      }
    }
    return { subject: `${Object.keys(emails).length} emails`, findings }
  },
}

/** The line about a rule in a report, with its points. */
const describe = (report: string, rule: string) =>
  report.split('\n').find(line => line.includes(` ${rule} `))?.trim() ?? rule

/** The emails to an address among the files of development. */
async function readEmails (folder: string, email: string) {
  const names = await readdir(folder).catch(() => [])
  const files = names.filter(name => name.endsWith('.eml')).map(name => readFile(join(folder, name)))
  const emails = await Promise.all((await Promise.all(files)).map(file => PostalMime.parse(file)))
  return emails.filter(({ to }) => to![0]!.address === email)
}
