import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import type { ClaimedEmail, Content, EmailTemplate } from './message.ts'

/**
 * The templates of emails that each person decides about, with the name of their switch in `GET /me/notifications`. The
 * table `notifications` has a column for each. An address that is not verified gets none of them.
 */
export const NOTIFICATIONS = {
  registration: 'registration',
  'event-changed': 'eventChanged',
  'event-cancelled': 'eventCancelled',
  'event-reminder': 'eventReminder',
  'event-message': 'eventMessage',
  'blog-decision': 'blogDecision',
} as const
export type NotificationTemplate = keyof typeof NOTIFICATIONS

/** Whether this template of email is one of them. */
export const isNotification = (template: string): template is NotificationTemplate =>
  Object.hasOwn(NOTIFICATIONS, template)

/** The column of a template in the table `notifications`. */
export const columnOf = (template: NotificationTemplate) => template.replaceAll('-', '_')

/** Whether the row of `users` at hand gets such emails. */
export const isNotified = (sql: Sql, template: NotificationTemplate) => sql`
  users.email_verified_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM notifications WHERE notifications.user_id = users.id AND NOT ${sql(columnOf(template))}
  )
`

/** Whether a user gets such emails. */
export async function wantsEmails (sql: Sql, userId: string, template: NotificationTemplate) {
  const { count } = await sql`SELECT FROM users WHERE id = ${userId} AND ${isNotified(sql, template)}`
  return count > 0
}

/** Makes a template of email one of these: it is sent to those who want it, with a link to turn it off. */
export function notification<Data> ({ bulk, compose }: EmailTemplate<Data>): EmailTemplate<Data> {
  return {
    bulk,
    async compose (email, context) {
      const isWanted = await wantsEmails(context.sql, email.userId, email.template as NotificationTemplate)
      const content = isWanted ? await compose(email, context) : undefined
      return content && { ...content, ...unsubscription(email, context.config) }
    },
  }
}

/** The ways to turn off emails of this kind: for a person by a page of the browser app, and for an email program. */
function unsubscription (
  { template, token }: ClaimedEmail, { COMMUNITY_NAME, FRONTEND_URL: [frontend], PUBLIC_URL }: Config
): Pick<Content, 'footer' | 'list'> {
  const reason = `You get this email because you have an account at ${COMMUNITY_NAME}.`
  return {
    footer: frontend
      ? [reason, { text: 'Unsubscribe from these emails', href: `${frontend}/unsubscribe#token=${token}` }]
      : [reason],
    ...PUBLIC_URL && {
      list: { name: template, unsubscribe: `${PUBLIC_URL.replace(/\/$/, '')}/account/unsubscribe/${token}` },
    },
  }
}
