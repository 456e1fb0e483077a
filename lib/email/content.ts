import type { SendMailOptions } from 'nodemailer'

import type { CalendarMethod } from '../agenda/icalendar.ts'
import type { Config } from '../config/config.ts'
import type { Sql } from '../database/pools.ts'
import { escapeHtml, parseMailbox, printableLine } from '../values/formats.ts'

/** An email that a sender has claimed. `data` is the value that the enqueuing statement wrote. */
export interface ClaimedEmail<Data = any> {
  id: string
  template: string
  userId: string
  data: Data
  /** The key that the enqueuing statement wrote, see `enqueueEmails`. */
  key: string | null
  /** Number of attempts, including the current one. */
  attempts: number
  createdAt: Date
}

/** A sentence with texts that people wrote, see `sentence`. */
interface Sentence { parts: readonly string[], written: string[] }

/** A line of text, a sentence, lines that a person wrote, or a link with its text. */
export type Paragraph = string | Sentence | string[] | { text: string, href: string }

/** A link to a page of the browser app; none if the app is not known. */
export const linkTo = (path: string, text: string, { config: { FRONTEND_URL: [frontend] } }: Context) =>
  frontend ? [{ text, href: `${frontend}${path}` }] : []

/**
 * Template tag: a sentence whose values are texts that people wrote. Such a text may be Arabic or Hebrew. HTML isolates
 * it, so that it does not change the order of the words around it.
 */
export const sentence = (parts: TemplateStringsArray, ...written: string[]): Sentence => ({ parts, written })

/** The content of an email, unescaped. */
export interface Content {
  subject: string
  paragraphs: Paragraph[]
  /** Recipient, if not the address of the account. */
  to?: string
  /** Small print below the paragraphs. */
  footer?: Paragraph[]
  /** Address for replies, if not MAIL_FROM. */
  replyTo?: { name: string, address: string }
  /** An iCalendar text that adds an event to the reader's calendar, changes it or removes it. */
  calendar?: { method: CalendarMethod, text: string }
  /** Facts that the email announces. After an attempt, they are stored as `announced` in the email's data. */
  announced?: object
  /**
   * Name of the mailing list (RFC 2919), and the URL to unsubscribe with one request (RFC 8058). With the URL alone,
   * SpamAssassin gives a short email without DKIM a point more.
   */
  listHeaders?: { name: string, unsubscribe: string }
}

/**
 * An email template: a function in lib/email/templates/, listed in lib/email/templates.ts. Writes the email just before
 * each attempt to send it, because the attempts span up to five days, and old facts would mislead people. Returns
 * `undefined` if its facts have changed. Then the email is not sent.
 */
export type EmailTemplate<Data = any> = (email: ClaimedEmail<Data>, context: Context) => Promise<Content | undefined>

/** The context for composing an email. */
export interface Context {
  sql: Sql
  config: Config
  recipient: Recipient
}

/** The recipient of an email. */
export interface Recipient {
  email: string
  /** Whether the user has verified the address. An email to any other address has no name, which a stranger chose. */
  isVerified: boolean
  firstName: string
  lastName: string
}

/** Default of MAIL_FROM in development, where emails are files. */
const DEVELOPMENT_FROM = 'community@example.org'

/** The sender of all emails: the address in MAIL_FROM, with its name or else COMMUNITY_NAME. */
export function senderOf ({ MAIL_FROM = DEVELOPMENT_FROM, COMMUNITY_NAME }: Config) {
  const { name = COMMUNITY_NAME, address } = parseMailbox(MAIL_FROM)!
  return { name, address, domain: address.split('@')[1]! }
}

/** Writes an email with a text and an HTML part. The Message-ID contains `id`. */
export function buildEmail (id: string, recipient: Recipient, content: Content, config: Config): SendMailOptions {
  const { subject, replyTo, calendar, listHeaders } = content
  const { domain, ...from } = senderOf(config)
  const { to = recipient.email } = content
  const isKnown = recipient.isVerified && to === recipient.email
  return {
    messageId: `<${id}@${domain}>`,
    from,
    to: { name: isKnown ? headerText(`${recipient.firstName} ${recipient.lastName}`) : '', address: to },
    ...replyTo && { replyTo: { ...replyTo, name: headerText(replyTo.name) } },
    subject: headerText(subject),
    text: toText(content),
    html: toHtml(content),
    // Calendar apps read this part from the email; people see it as an attachment.
    ...calendar && { icalEvent: { method: calendar.method, content: calendar.text, filename: 'event.ics' } },
    headers: {
      // Prevents automatic replies, such as vacation notices (RFC 3834).
      'Auto-Submitted': 'auto-generated',
      ...listHeaders && {
        'List-Id': `<${listHeaders.name}.${domain}>`,
        'List-Unsubscribe': `<${listHeaders.unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    },
  }
}

/** Formats a time in MAIL_TIME_ZONE, for example `Saturday, 31 January 2026 at 10:30 CET`. */
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
 * Formats when an event is, with its end if it has one: `Saturday, 31 January 2026 at 10:30 CET until 12:00 CET`. Each
 * time has its zone, because the clock may change in between.
 */
export function formatTimes ({ date, endsAt }: { date: string, endsAt?: string | null }, config: Config) {
  const start = formatTime(new Date(date), config)
  if (!endsAt) return start
  const write = (time: string, options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { ...options, timeZone: config.MAIL_TIME_ZONE }).format(new Date(time))
  const day = (time: string) => write(time, { dateStyle: 'short' })
  const end = day(date) === day(endsAt)
    ? write(endsAt, { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' })
    : formatTime(new Date(endsAt), config)
  return `${start} until ${end}`
}

/**
 * Prepares a name or subject for a header. Long text is cut because a line has at most 998 characters (RFC 5322,
 * § 2.1.1), and encoding a title of 1 MB takes 0.1 seconds.
 */
function headerText (text: string) {
  const line = printableLine(text)
  const [start] = /^.{0,200}/u.exec(line)!
  return start === line ? line : `${start}…`
}

function toText ({ paragraphs, footer = [] }: Content) {
  const texts = (paragraphs: Paragraph[]) => paragraphs.map(paragraph => isLink(paragraph)
    ? `${printableLine(paragraph.text)}:\n${printableLine(paragraph.href)}\n`
    : `${textLinesOf(paragraph).join('\n')}\n`).join('\n')
  return texts(paragraphs) + (footer.length > 0 ? `\n-- \n${texts(footer)}` : '')
}

function toHtml ({ subject, paragraphs, footer = [] }: Content) {
  const texts = (paragraphs: Paragraph[]) => paragraphs.map(paragraph => `${toHtmlParagraph(paragraph)}\n`).join('')
  return `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>
<body>
${texts(paragraphs)}${footer.length > 0 ? `<footer>\n${texts(footer)}</footer>\n` : ''}</body>
</html>
`
}

const isLink = (paragraph: Paragraph) => typeof paragraph === 'object' && 'href' in paragraph

function textLinesOf (paragraph: string | Sentence | string[]) {
  if (typeof paragraph === 'string') return [printableLine(paragraph)]
  if (Array.isArray(paragraph)) return paragraph.map(printableLine)
  return [printableLine(String.raw({ raw: paragraph.parts }, ...paragraph.written))]
}

function toHtmlParagraph (paragraph: Paragraph) {
  if (typeof paragraph === 'string') return `<p>${escapeHtml(paragraph)}</p>`
  if (Array.isArray(paragraph)) return `<p dir="auto">${paragraph.map(escapeHtml).join('<br>\n')}</p>`
  if (isLink(paragraph)) return `<p><a href="${escapeHtml(paragraph.href)}">${escapeHtml(paragraph.text)}</a></p>`
  const written = paragraph.written.map(text => `<span dir="auto">${escapeHtml(text)}</span>`)
  return `<p>${String.raw({ raw: paragraph.parts }, ...written)}</p>`
}
