import type { SendMailOptions } from 'nodemailer'

import type { Config } from '../config.ts'
import type { Sql } from '../database/client.ts'
import { parseMailbox, printableLine } from '../formats.ts'
import type { CalendarMethod } from '../icalendar.ts'

/** An email that was claimed: `data` is what its statement wrote. */
export interface ClaimedEmail<Data = any> {
  id: string
  template: string
  userId: string
  data: Data
  /** Attempts with this one. */
  attempts: number
  createdAt: Date
  /** The token of the link that turns off emails of this kind, if they can be turned off. */
  token?: string | null
}

/** A line of text, several lines, or a link with the text that names it. */
export type Paragraph = string | string[] | { text: string, href: string }

/** The words of an email, unescaped. */
export interface Content {
  subject: string
  paragraphs: Paragraph[]
  /** An address other than that of the account. */
  to?: string
  /** Small print below them. */
  footer?: Paragraph[]
  /** Where responses go, if not to MAIL_FROM. */
  replyTo?: { name: string, address: string }
  /** An event that the email adds to the reader's calendar, changes or removes there: iCalendar. */
  calendar?: { method: CalendarMethod, text: string }
  /** The facts that the email tells. After an attempt, they are stored with it, as `told` of its data. */
  told?: object
  /** The list of all emails of this template (RFC 2919), and the URL to unsubscribe with one request (RFC 8058). */
  list?: { name: string, unsubscribe: string }
}

/** A template of email: a constant in lib/email/templates/, and a line in lib/email/templates.ts. */
export interface EmailTemplate<Data = any> {
  /** Whether many get it at once. Such emails wait for MAIL_RATE, and others overtake them. */
  bulk: boolean
  /**
   * Writes the email just before it is sent, as often as it is tried; `undefined` when it is not true any more: then it
   * is removed.
   */
  compose (email: ClaimedEmail<Data>, context: Context): Promise<Content | undefined>
}

/** The context in which an email is composed. */
export interface Context {
  sql: Sql
  config: Config
  recipient: Recipient
}

/** The person that an email is sent to. */
export interface Recipient {
  email: string
  /** Whether the address is known to be theirs. If it is not, their name may be an attack on its owner. */
  isVerified: boolean
  firstName: string
  lastName: string
}

/** Where MAIL_FROM is not required: in development, where emails are files. */
const DEVELOPMENT_FROM = 'community@example.org'

/** The sender of all emails: the address in MAIL_FROM, and the name there, else COMMUNITY_NAME. */
export function senderOf ({ MAIL_FROM = DEVELOPMENT_FROM, COMMUNITY_NAME }: Config) {
  const { name = COMMUNITY_NAME, address } = parseMailbox(MAIL_FROM)!
  return { name, address, domain: address.split('@')[1]! }
}

/** Writes an email with a text and an HTML part. Every attempt has the same Message-ID, which contains the id. */
export function buildMessage (id: string, recipient: Recipient, content: Content, config: Config): SendMailOptions {
  const { subject, replyTo, calendar, list } = content
  const { domain, ...from } = senderOf(config)
  const name = recipient.isVerified ? headerText(`${recipient.firstName} ${recipient.lastName}`) : ''
  return {
    messageId: `<${id}@${domain}>`,
    from,
    to: { name, address: content.to ?? recipient.email },
    ...replyTo && { replyTo: { ...replyTo, name: headerText(replyTo.name) } },
    subject: headerText(subject),
    text: toText(content),
    html: toHtml(content),
    // For calendars that read email, and as a file for people.
    ...calendar && { icalEvent: { method: calendar.method, content: calendar.text, filename: 'event.ics' } },
    headers: {
      // No vacation notice is sent in response (RFC 3834).
      'Auto-Submitted': 'auto-generated',
      ...list && {
        'List-Id': `<${list.name}.${domain}>`,
        'List-Unsubscribe': `<${list.unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    },
  }
}

/** A time in words, in MAIL_TIME_ZONE: `Saturday, 31 January 2026 at 10:30 CET`. */
export function formatTime (time: Date, { MAIL_TIME_ZONE }: Config) {
  return new Intl.DateTimeFormat('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
    timeZone: MAIL_TIME_ZONE,
  }).format(time)
}

/**
 * A name or a subject. It is cut: a line has at most 998 characters (RFC 5322, § 2.1.1), and it takes a tenth of a
 * second to encode a title of 1 MB.
 */
function headerText (text: string) {
  const line = printableLine(text)
  const [start] = /^.{0,200}/u.exec(line)!
  return start === line ? line : `${start}…`
}

function toText ({ paragraphs, footer = [] }: Content) {
  const texts = (paragraphs: Paragraph[]) => paragraphs.map(paragraph => isLink(paragraph)
    ? `${printableLine(paragraph.text)}:\n${printableLine(paragraph.href)}\n`
    : `${linesOf(paragraph).join('\n')}\n`).join('\n')
  return texts(paragraphs) + (footer.length > 0 ? `\n-- \n${texts(footer)}` : '')
}

function toHtml ({ subject, paragraphs, footer = [] }: Content) {
  const texts = (paragraphs: Paragraph[]) => paragraphs.map(paragraph => isLink(paragraph)
    ? `<p><a href="${escapeHtml(paragraph.href)}">${escapeHtml(paragraph.text)}</a></p>\n`
    : `<p>${linesOf(paragraph).map(escapeHtml).join('<br>\n')}</p>\n`).join('')
  return `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>
<body>
${texts(paragraphs)}${footer.length > 0 ? `<footer>\n${texts(footer)}</footer>\n` : ''}</body>
</html>
`
}

const isLink = (paragraph: Paragraph) => typeof paragraph === 'object' && 'href' in paragraph

const linesOf = (paragraph: string | string[]) => [paragraph].flat().map(printableLine)

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml (text: string) {
  return printableLine(text).replace(/[&<>"']/g, character => ENTITIES[character]!)
}
