import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { PendingQuery, Row } from 'postgres'

import { HttpError } from '../lib/errors.ts'
import type { TemplateName } from '../lib/email/templates.ts'
import { type BatchTimes, enqueueBatch } from '../lib/email/batches.ts'
import { countEmails, enqueueEmails, type EmailCounts } from '../lib/email/outbox.ts'
import { Sender } from '../lib/email/sender.ts'
import { createTransport, isEmailConfigured } from '../lib/email/transport.ts'

declare module 'fastify' {
  interface FastifyInstance {
    outbox: Outbox
    /** Responds with 501 where email is not configured. For `onRequest`, before the guard. */
    requireEmail: onRequestHookHandler
  }
}

export interface Outbox {
  /** Whether emails are sent: with SMTP_URL, or as files in development. */
  isConfigured: boolean
  /** Whether they can have links to the browser app: they need FRONTEND_URL, too. */
  canLink: boolean
  /**
   * The statement that writes emails, for the WITH of the statement that causes them, see `enqueueEmails`. It does
   * nothing if email is not configured.
   */
  enqueue (template: TemplateName, emails: PendingQuery<Row[]>, network?: string): PendingQuery<Row[]>
  /** The same for a bulk email, see `enqueueBatch`. */
  enqueueBatch (template: TemplateName, batch: PendingQuery<Row[]>, times?: BatchTimes): PendingQuery<Row[]>
  /** Emails that this process has sent. */
  sent (): number
  /** The emails in the outbox that are not sent, and the email batches that are due. */
  count (): Promise<EmailCounts>
}

/** The message of that 501, and that of operations whose email would have no link. */
export const EMAIL_REQUIRED = 'Email is not configured'
export const FRONTEND_REQUIRED = 'Frontend URL not configured'

/** Sends what is in the outbox while the service runs. */
export default fp(async app => {
  const { sql, database: { shortSql }, config, log, describeOnly } = app
  const sender = isEmailConfigured(config)
    ? new Sender({ sql, shortSql, config, log, transport: await createTransport(config, log) })
    : undefined

  const outbox: Outbox = {
    isConfigured: sender !== undefined,
    canLink: sender !== undefined && config.FRONTEND_URL.length > 0,
    enqueue: (template, emails, network) =>
      sender ? enqueueEmails(sql, template, emails, network) : sql`SELECT WHERE false`,
    enqueueBatch: (template, batch, times) =>
      sender ? enqueueBatch(sql, template, batch, times) : sql`SELECT WHERE false`,
    sent: () => sender?.sent ?? 0,
    count: () => countEmails(sql),
  }
  app.decorate('outbox', outbox)
  app.decorate('requireEmail', async () => {
    if (!sender) throw new HttpError(501, EMAIL_REQUIRED)
  })
  if (describeOnly) return

  if (config.NODE_ENV === 'production' && !outbox.canLink) {
    log.info(sender
      ? `${FRONTEND_REQUIRED}: emails have no links, and what needs one responds with 501 (see FRONTEND_URL)`
      : `${EMAIL_REQUIRED}: what needs it responds with 501 (see SMTP_URL)`)
  }
  if (!sender) return
  app.addHook('onReady', async () => sender.start())
  // It stops while requests finish, which may take longer: a stop gives it no time of its own.
  app.addHook('preClose', async () => { sender.stop() })
  // The pools are closed after it.
  app.addHook('onClose', () => sender.stop())
}, { name: 'email', dependencies: ['database'] })
