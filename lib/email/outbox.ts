import type { PendingQuery, Row } from 'postgres'

import type { BatchTimes } from './batches.ts'
import type { EmailCounts } from './emails.ts'
import type { NotificationTemplate } from './notifications.ts'
import type { TemplateName } from './templates.ts'

/** The outbox, as operations use it; plugins/email.ts creates it. */
export interface Outbox {
  /** Whether emails are sent, or written to files in development. */
  isConfigured: boolean
  /** Whether emails can contain links to the browser app, which also require FRONTEND_URL. */
  canLink: boolean
  /** Whether users can verify their addresses: emails with links are sent, instead of written to files. */
  canVerify: boolean
  /** SQL statement that enqueues emails, see `enqueueEmails`. It has no effect if email is not configured. */
  enqueue (template: TemplateName, emails: PendingQuery<Row[]>, cause: string | null): PendingQuery<Row[]>
  /** SQL statement that enqueues an email batch, see `enqueueBatch`. */
  enqueueBatch (
    template: NotificationTemplate, batches: PendingQuery<Row[]>, cause: string | null, times?: BatchTimes
  ): PendingQuery<Row[]>
  /** Returns what this process has sent, what the mail server has refused, and whether it is unavailable. */
  deliveries (): { sent: number, refused: number, isPaused: boolean }
  /** Counts unsent emails and due email batches. */
  count (): Promise<EmailCounts>
}
