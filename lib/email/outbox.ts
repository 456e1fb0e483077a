import type { PendingQuery, Row } from 'postgres'

import type { Config } from '../config/config.ts'
import type { Sql } from '../database/client.ts'
import { type BatchTimes, enqueueBatch } from './batches.ts'
import { countEmails, type EmailCounts, enqueueEmails } from './emails.ts'
import type { NotificationTemplate } from './notifications.ts'
import type { Sender } from './sender.ts'
import type { TemplateName } from './templates.ts'

/** The outbox, as operations use it. */
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

/** Creates the outbox. If email is not configured, `sender` is undefined, and the outbox enqueues nothing. */
export function createOutbox (
  sql: Sql, sender: Sender | undefined, config: Pick<Config, 'FRONTEND_URL' | 'SMTP_URL'>
): Outbox {
  const canLink = sender !== undefined && config.FRONTEND_URL.length > 0
  return {
    isConfigured: sender !== undefined,
    canLink,
    canVerify: canLink && config.SMTP_URL !== undefined,
    enqueue: (template, emails, cause) =>
      sender ? enqueueEmails(sql, template, emails, cause) : sql`SELECT WHERE false`,
    enqueueBatch: (template, batches, cause, times) =>
      sender ? enqueueBatch(sql, template, batches, cause, times) : sql`SELECT WHERE false`,
    deliveries: () => sender ?? { sent: 0, refused: 0, isPaused: false },
    count: () => countEmails(sql),
  }
}
