import {
  accountLinked, emailChange, emailChanged, emailChangeNotice, emailVerification, passwordChanged, passwordReset,
  test,
} from './templates/account.ts'
import { blogDecision } from './templates/blog-decision.ts'
import { clubDecision, clubNews, clubRequest } from './templates/club.ts'
import {
  draw, eventCancelled, eventChanged, eventMessage, eventReminder, registration, seat, seatRemoved,
} from './templates/event.ts'
import type { EmailTemplate } from './content.ts'

/** All email templates, by their name in the outbox. */
export const templates = {
  'account-linked': accountLinked,
  'blog-decision': blogDecision,
  'club-decision': clubDecision,
  'club-news': clubNews,
  'club-request': clubRequest,
  draw,
  'email-change': emailChange,
  'email-change-notice': emailChangeNotice,
  'email-changed': emailChanged,
  'email-verification': emailVerification,
  'event-cancelled': eventCancelled,
  'event-changed': eventChanged,
  'event-message': eventMessage,
  'event-reminder': eventReminder,
  'password-changed': passwordChanged,
  'password-reset': passwordReset,
  registration,
  seat,
  'seat-removed': seatRemoved,
  test,
} satisfies Record<string, EmailTemplate>

export type TemplateName = keyof typeof templates

/** Templates of emails that go to many people at once. They wait for MAIL_RATE, and others overtake them. */
export const BULK = new Set<string>([
  'club-news', 'club-request', 'draw', 'event-cancelled', 'event-changed', 'event-message', 'event-reminder', 'seat',
] satisfies TemplateName[])
