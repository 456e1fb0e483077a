import type { PendingQuery, Row } from 'postgres'

import type { Config } from '../config/config.ts'
import type { Sql } from '../database/pools.ts'
import { type BatchTimes, enqueueBatch } from './batches.ts'
import { countEmails, enqueueEmails } from './emails.ts'
import type { NotificationTemplate } from './notifications.ts'
import type { Sender } from './sender.ts'
import type { TemplateName } from './templates.ts'

/** The outbox, as operations use it. */
export type Outbox = ReturnType<typeof createOutbox>

/** Creates the outbox. Without a sender, email is not configured, and nothing is enqueued. */
export function createOutbox (sql: Sql, { FRONTEND_URL, SMTP_URL }: Config, sender: Sender | undefined) {
  const canLink = sender !== undefined && FRONTEND_URL.length > 0
  return {
    /** Whether emails are sent, or written to files in development. */
    isConfigured: sender !== undefined,
    /** Whether emails can contain links to the browser app, which also require FRONTEND_URL. */
    canLink,
    /** Whether users can verify their addresses: emails with links are sent, instead of written to files. */
    canVerify: canLink && SMTP_URL !== undefined,
    /** SQL statement that enqueues emails, see `enqueueEmails`. */
    enqueue: (template: TemplateName, emails: PendingQuery<Row[]>, cause: string | null) =>
      sender ? enqueueEmails(sql, template, emails, cause) : sql`SELECT WHERE false`,
    /** SQL statement that enqueues an email batch, see `enqueueBatch`. */
    enqueueBatch: (
      template: NotificationTemplate, batches: PendingQuery<Row[]>, cause: string | null, times?: BatchTimes
    ) => sender ? enqueueBatch(sql, template, batches, cause, times) : sql`SELECT WHERE false`,
    /** Returns what this process has sent, what the mail server has refused, and whether it is unavailable. */
    deliveries: (): Pick<Sender, 'sent' | 'refused' | 'isPaused'> => sender ?? { sent: 0, refused: 0, isPaused: false },
    /** Counts unsent emails and due email batches. */
    count: () => countEmails(sql),
  }
}
