import type { onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import type { PendingQuery, Row } from 'postgres'

import { HttpError } from '../lib/errors.ts'
import type { KindName } from '../lib/mail/kinds.ts'
import { type BatchTimes, enqueueMailing } from '../lib/mail/mailings.ts'
import { countMails, enqueueMails, type MailCounts } from '../lib/mail/outbox.ts'
import { Sender } from '../lib/mail/sender.ts'
import { createTransport, isMailConfigured } from '../lib/mail/transport.ts'

declare module 'fastify' {
  interface FastifyInstance {
    mail: Mail
    /** Responds with 501 where mail is not configured. For `onRequest`, before the guard. */
    requireMail: onRequestHookHandler
  }
}

export interface Mail {
  /** Whether mails are sent: with SMTP_URL, or as files in development. */
  isConfigured: boolean
  /** Whether they can have links to the browser app: they need FRONTEND_URL, too. */
  canLink: boolean
  /**
   * The statement that writes mails, for the WITH of the statement that causes them, see `enqueueMails`. Where mail is
   * not configured it does nothing.
   */
  enqueue (kind: KindName, mails: PendingQuery<Row[]>, network?: string): PendingQuery<Row[]>
  /** The same for one mail to many, see `enqueueMailing`. */
  enqueueMailing (kind: KindName, mailing: PendingQuery<Row[]>, times?: BatchTimes): PendingQuery<Row[]>
  /** Mails that this process has sent. */
  sent (): number
  /** The mails in the outbox that are not sent, and those to many that are due. */
  count (): Promise<MailCounts>
}

/** The message of that 501, and that of operations whose mail would have no link. */
export const MAIL_REQUIRED = 'Mail is not configured'
export const FRONTEND_REQUIRED = 'Frontend URL not configured'

/** Sends what is in the outbox while the service runs. */
export default fp(async app => {
  const { sql, database: { probe }, config, log, describeOnly } = app
  const sender = isMailConfigured(config)
    ? new Sender({ sql, probe, config, log, transport: await createTransport(config, log) })
    : undefined

  const mail: Mail = {
    isConfigured: sender !== undefined,
    canLink: sender !== undefined && config.FRONTEND_URL.length > 0,
    enqueue: (kind, mails, network) => sender ? enqueueMails(sql, kind, mails, network) : sql`SELECT WHERE false`,
    enqueueMailing: (kind, mailing, times) =>
      sender ? enqueueMailing(sql, kind, mailing, times) : sql`SELECT WHERE false`,
    sent: () => sender?.sent ?? 0,
    count: () => countMails(sql),
  }
  app.decorate('mail', mail)
  app.decorate('requireMail', async () => {
    if (!sender) throw new HttpError(501, MAIL_REQUIRED)
  })
  if (describeOnly) return

  if (config.NODE_ENV === 'production' && !mail.canLink) {
    log.info(sender
      ? `${FRONTEND_REQUIRED}: mails have no links, and what needs one responds with 501 (see FRONTEND_URL)`
      : `${MAIL_REQUIRED}: what needs it responds with 501 (see SMTP_URL)`)
  }
  if (!sender) return
  app.addHook('onReady', async () => sender.start())
  // It stops while requests finish, which may take longer: a stop gives it no time of its own.
  app.addHook('preClose', async () => { sender.stop() })
  // The pools are closed after it.
  app.addHook('onClose', () => sender.stop())
}, { name: 'mail', dependencies: ['database'] })
