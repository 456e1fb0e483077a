import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { PendingQuery, Row } from 'postgres'

import { HttpError } from '../lib/http/errors.ts'
import { Message, Named, type RefusingHook } from '../lib/schemas.ts'
import type { TemplateName } from '../lib/email/templates.ts'
import { type BatchTimes, enqueueBatch } from '../lib/email/batches.ts'
import { countEmails, enqueueEmails, type EmailCounts } from '../lib/email/outbox.ts'
import { Sender } from '../lib/email/sender.ts'
import { createTransport, isEmailConfigured } from '../lib/email/transport.ts'

declare module 'fastify' {
  interface FastifyInstance {
    outbox: Outbox
    /** Responds with 501 if email is not configured. Use it in `onRequest` before the guard. */
    requireEmail: onRequestHookHandler & RefusingHook
    /** Responds with 501 if emails cannot be sent or cannot contain links. Use it like `requireEmail`. */
    requireEmailLinks: onRequestHookHandler & RefusingHook
  }
}

export interface Outbox {
  /** Whether emails are sent, or written to files in development. */
  isConfigured: boolean
  /** Whether emails can contain links to the browser app, which also require FRONTEND_URL. */
  canLink: boolean
  /** SQL statement that enqueues emails, see `enqueueEmails`. It has no effect if email is not configured. */
  enqueue (template: TemplateName, emails: PendingQuery<Row[]>, network?: string): PendingQuery<Row[]>
  /** SQL statement that enqueues an email batch, see `enqueueBatch`. */
  enqueueBatch (template: TemplateName, batch: PendingQuery<Row[]>, times?: BatchTimes): PendingQuery<Row[]>
  /** Returns the number of emails that this process has sent. */
  sent (): number
  /** Counts unsent emails and due email batches. */
  count (): Promise<EmailCounts>
}

/** Error messages if email is not configured, or if an email could not contain its link. */
const EMAIL_REQUIRED = 'Email is not configured'
export const FRONTEND_REQUIRED = 'Frontend URL not configured'

const EmailRequired = Named('EmailRequired', Message(EMAIL_REQUIRED))
const EmailLinksRequired = Named('EmailLinksRequired', Message(EMAIL_REQUIRED, FRONTEND_REQUIRED))

/** Sends the emails in the outbox while the service runs. */
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
  app.decorate('requireEmail', Object.assign(async () => {
    if (!sender) throw new HttpError(501, EMAIL_REQUIRED)
  }, { responses: { 501: EmailRequired } }))
  app.decorate('requireEmailLinks', Object.assign(async () => {
    if (!outbox.canLink) throw new HttpError(501, sender ? FRONTEND_REQUIRED : EMAIL_REQUIRED)
  }, { responses: { 501: EmailLinksRequired } }))
  if (describeOnly) return

  if (config.NODE_ENV === 'production' && !outbox.canLink) {
    log.info(sender
      ? `${FRONTEND_REQUIRED}. Emails do not contain links, and operations that need links respond with 501. ` +
        'Set FRONTEND_URL.'
      : `${EMAIL_REQUIRED}. Operations that need email respond with 501. Set SMTP_URL.`)
  }
  if (!sender) return
  app.addHook('onReady', async () => sender.start())
  // The sender stops while requests finish, so it does not prolong a stop.
  app.addHook('preClose', async () => { sender.stop() })
  // The database closes later, because this plugin depends on it.
  app.addHook('onClose', () => sender.stop())
}, { name: 'email', dependencies: ['database'] })
