import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import { toColumn } from '../database/columns.ts'
import type { ClaimedEmail, Content, EmailTemplate } from './message.ts'

/**
 * The email templates that each user can turn off, with the name of their switch in `GET /me/notifications`. Each
 * switch has a column in the table `notifications`. They are sent to verified addresses only.
 */
export const NOTIFICATIONS = {
  registration: 'registration',
  seat: 'registration',
  'seat-removed': 'registration',
  'event-changed': 'eventChanged',
  'event-cancelled': 'eventCancelled',
  'event-reminder': 'eventReminder',
  'event-message': 'eventMessage',
  'blog-decision': 'blogDecision',
} as const
export type NotificationTemplate = keyof typeof NOTIFICATIONS

/** Tells whether users can turn off this email template. */
export const isNotification = (template: string): template is NotificationTemplate =>
  Object.hasOwn(NOTIFICATIONS, template)

/** The column of the switch of a template in the table `notifications`. */
export const columnOf = (template: NotificationTemplate) => toColumn(NOTIFICATIONS[template])

/** SQL: the email preferences in the current row of `notifications` as JSON. Without a row, all are on. */
export const preferences = (sql: Sql) => sql`
  json_build_object(
    'registration', coalesce(registration, true), 'eventChanged', coalesce(event_changed, true),
    'eventCancelled', coalesce(event_cancelled, true), 'eventReminder', coalesce(event_reminder, true),
    'eventMessage', coalesce(event_message, true), 'blogDecision', coalesce(blog_decision, true)
  )
`

/** SQL condition: whether the current row of `users` gets emails of this template. */
export const isNotified = (sql: Sql, template: NotificationTemplate) => sql`
  users.email_verified_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM notifications WHERE notifications.user_id = users.id AND NOT ${sql(columnOf(template))}
  )
`

/** Tells whether a user gets emails of this template. */
export async function wantsEmails (sql: Sql, userId: string, template: NotificationTemplate) {
  const { count } = await sql`SELECT FROM users WHERE id = ${userId} AND ${isNotified(sql, template)}`
  return count > 0
}

/** Wraps an email template: the email is sent only to users who want it, and contains a link to unsubscribe. */
export function notification<Data> (compose: EmailTemplate<Data>): EmailTemplate<Data> {
  return async (email, context) => {
    const isWanted = await wantsEmails(context.sql, email.userId, email.template as NotificationTemplate)
    const content = isWanted ? await compose(email, context) : undefined
    return content && { ...content, ...unsubscription(email, context.config) }
  }
}

/** Links to unsubscribe from this template: a page of the browser app for people, and a URL for email programs. */
function unsubscription (
  { template, token }: ClaimedEmail, { COMMUNITY_NAME, FRONTEND_URL: [frontend], PUBLIC_URL }: Config
): Pick<Content, 'footer' | 'list'> {
  const reason = `You received this email because you have an account at ${COMMUNITY_NAME}.`
  return {
    footer: frontend
      ? [reason, { text: 'Unsubscribe from these emails', href: `${frontend}/unsubscribe#token=${token}` }]
      : [reason],
    ...PUBLIC_URL && { list: { name: template, unsubscribe: `${PUBLIC_URL}/account/unsubscribe/${token}` } },
  }
}
