import type { PendingQuery, Row } from 'postgres'

import { comes } from '../agenda/seats.ts'
import { hashSecretToken, linkToken } from '../auth/secret-tokens.ts'
import type { Config } from '../config/config.ts'
import type { AnySql, Sql } from '../database/pools.ts'
import { toColumn } from '../database/columns.ts'
import { isUuid } from '../values/formats.ts'
import type { ClaimedEmail, Content, EmailTemplate } from './content.ts'

/**
 * The switches of `GET /me/notifications` with their descriptions. Each has a column in the table `notifications`.
 * Without a switch, people could only report unwanted emails as spam, and Gmail distrusts a sender after 3 reports per
 * 1,000 emails.
 */
export const SWITCHES = {
  registration: 'Sent after you register for an event, when you get a seat, and when you are removed.',
  eventChanged: 'Sent when an event you registered for has a new title, date, end, place, club or registration times.',
  eventCancelled: 'Sent when an event you registered for is cancelled.',
  eventReminder: 'Sent shortly before an event you registered for.',
  eventMessage: 'Sent when the organizers write to everyone who comes to an event.',
  blogDecision: 'Sent when your blog post is published or archived.',
  club: 'Sent when people ask to join your club, and when a club decides about you.',
  clubNews: 'Sent when a club of yours has new events, at most once a day for each club.',
}

/** The email templates that each user can turn off, with their switches. They are sent to verified addresses only. */
export const SWITCH_OF = {
  registration: 'registration',
  seat: 'registration',
  draw: 'registration',
  'seat-removed': 'registration',
  'event-changed': 'eventChanged',
  'event-cancelled': 'eventCancelled',
  'event-reminder': 'eventReminder',
  'event-message': 'eventMessage',
  'blog-decision': 'blogDecision',
  'club-request': 'club',
  'club-decision': 'club',
  'club-news': 'clubNews',
} as const satisfies Record<string, keyof typeof SWITCHES>
export type NotificationTemplate = keyof typeof SWITCH_OF

/** Tells whether users can turn off this email template. */
export const isNotification = (template: string): template is NotificationTemplate =>
  Object.hasOwn(SWITCH_OF, template)

/** The column of the switch of a template in the table `notifications`. */
export const columnOf = (template: NotificationTemplate) => toColumn(SWITCH_OF[template])

/** SQL: the email preferences in the current row of `notifications` as JSON. Without a row, all are on. */
export const preferences = (sql: AnySql) => {
  const pairs = Object.keys(SWITCHES).map(name => sql`${name}::text, coalesce(${sql(toColumn(name))}, true)`)
  return sql`json_build_object(${pairs.reduce((all, one) => sql`${all}, ${one}`)})`
}

/** SQL condition: whether the current row of `users` gets emails of this template. */
export const isNotified = (sql: AnySql, template: NotificationTemplate) => sql`
  users.email_verified_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM notifications WHERE notifications.user_id = users.id AND NOT ${sql(columnOf(template))}
  )
`

/** SQL: how many of the attendees of an event get emails of this template, as JSON, see `Reach`. */
export const reachOf = (
  sql: AnySql, template: NotificationTemplate, eventId: PendingQuery<Row[]>
) => sql`(
  SELECT json_build_object('reached', count(*) FILTER (WHERE wants), 'notReached', count(*) FILTER (WHERE NOT wants))
  FROM (
    SELECT ${isNotified(sql, template)} AS wants
    FROM event_registrations AS registrations JOIN users ON users.id = registrations.user_id
    WHERE registrations.event_id = ${eventId} AND ${comes(sql)} OFFSET 0
  ) AS people
)`

/** Tells whether a user gets emails of this template. */
export async function wantsEmails (sql: Sql, userId: string, template: NotificationTemplate) {
  const { count } = await sql`SELECT FROM users WHERE id = ${userId} AND ${isNotified(sql, template)}`
  return count > 0
}

/** Length of a UUID in hexadecimal digits. */
const ID_LENGTH = 32

type Secret = Pick<Config, 'JWT_SECRET'>

/**
 * The token of the link that turns off emails of a template: the id of the user, and 128 bits that authenticate it. It
 * works as long as the account exists and JWT_SECRET stays the same, so no row has to be kept for it.
 */
export function unsubscribeToken (config: Secret, userId: string, template: string) {
  const signature = linkToken(config, 'unsubscribe', userId, template).toString('hex').slice(0, ID_LENGTH)
  return `${userId.replaceAll('-', '')}${signature}`
}

/** Returns the user and the template of an unsubscribe token; `undefined` if the token is not authentic. */
export function readUnsubscribeToken (config: Secret, token: string) {
  const userId = token.slice(0, ID_LENGTH).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  if (!isUuid(userId)) return undefined
  // Hashes have the same length, and comparing them takes the same time for all wrong tokens.
  const hash = hashSecretToken(token)
  const template = (Object.keys(SWITCH_OF) as NotificationTemplate[])
    .find(template => hashSecretToken(unsubscribeToken(config, userId, template)) === hash)
  return template && { userId, template }
}

/** Wraps an email template: the email is sent only to users with the switch on, and contains a link to unsubscribe. */
export function notification<Data> (compose: EmailTemplate<Data>): EmailTemplate<Data> {
  return async (email, context) => {
    if (!await wantsEmails(context.sql, email.userId, email.template as NotificationTemplate)) return undefined
    const content = await compose(email, context)
    return content && { ...content, ...unsubscription(email, context.config) }
  }
}

/** Links to unsubscribe from this template: a page of the browser app for people, and a URL for email programs. */
function unsubscription (
  { template, userId }: ClaimedEmail, config: Config
): Pick<Content, 'footer' | 'listHeaders'> {
  const { COMMUNITY_NAME, FRONTEND_URL: [frontend], PUBLIC_URL } = config
  const token = unsubscribeToken(config, userId, template)
  const reason = `You received this email because you have an account at ${COMMUNITY_NAME}.`
  return {
    footer: frontend
      ? [reason, { text: 'Unsubscribe from these emails', href: `${frontend}/unsubscribe#token=${token}` }]
      : [reason],
    ...PUBLIC_URL && { listHeaders: { name: template, unsubscribe: `${PUBLIC_URL}/account/unsubscribe/${token}` } },
  }
}
