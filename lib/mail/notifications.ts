import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import type { ClaimedMail, Content, MailKind } from './message.ts'

/**
 * The kinds of mails that each person decides about, with the name of their switch in `GET /me/notifications`. The
 * table `notifications` has a column for each. An address that is not proven gets none of them.
 */
export const NOTIFICATIONS = {
  registration: 'registration',
  'event-changed': 'eventChanged',
  'event-cancelled': 'eventCancelled',
  'event-reminder': 'eventReminder',
  'event-message': 'eventMessage',
  'blog-decision': 'blogDecision',
} as const
export type NotificationKind = keyof typeof NOTIFICATIONS

/** Whether this kind of mail is one of them. */
export const isNotification = (kind: string): kind is NotificationKind => Object.hasOwn(NOTIFICATIONS, kind)

/** The column of a kind in the table `notifications`. */
export const columnOf = (kind: NotificationKind) => kind.replaceAll('-', '_')

/** Whether the row of `users` at hand gets such mails. */
export const isNotified = (sql: Sql, kind: NotificationKind) => sql`
  users.email_verified_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM notifications WHERE notifications.user_id = users.id AND NOT ${sql(columnOf(kind))}
  )
`

/** Whether a user gets such mails. */
export async function wantsMails (sql: Sql, userId: string, kind: NotificationKind) {
  const { count } = await sql`SELECT FROM users WHERE id = ${userId} AND ${isNotified(sql, kind)}`
  return count > 0
}

/** Makes a kind of mail one of these: it is sent to those who want it, with a link to turn it off. */
export function notification<Data> ({ bulk, compose }: MailKind<Data>): MailKind<Data> {
  return {
    bulk,
    async compose (mail, context) {
      const isWanted = await wantsMails(context.sql, mail.userId, mail.kind as NotificationKind)
      const content = isWanted ? await compose(mail, context) : undefined
      return content && { ...content, ...unsubscription(mail, context.config) }
    },
  }
}

/** The ways to turn off mails of this kind: for a person by a page of the browser app, and for a mail program. */
function unsubscription (
  { kind, token }: ClaimedMail, { COMMUNITY_NAME, FRONTEND_URL: [frontend], PUBLIC_URL }: Config
): Pick<Content, 'footer' | 'list'> {
  const reason = `You get this mail because you have an account at ${COMMUNITY_NAME}.`
  return {
    footer: frontend
      ? [reason, { text: 'Turn off mails of this kind', href: `${frontend}/unsubscribe#token=${token}` }]
      : [reason],
    ...PUBLIC_URL && {
      list: { name: kind, unsubscribe: `${PUBLIC_URL.replace(/\/$/, '')}/account/unsubscribe/${token}` },
    },
  }
}
