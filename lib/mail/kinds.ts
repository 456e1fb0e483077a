import {
  accountLinked, emailChanged, emailVerification, passwordChanged, passwordReset, test,
} from './kinds/account.ts'
import { blogDecision } from './kinds/blog-decision.ts'
import { eventCancelled, eventChanged, eventMessage, eventReminder, registration } from './kinds/event.ts'
import type { MailKind } from './message.ts'

/** Every kind of mail, by the name that the outbox has. */
export const kinds = {
  'account-linked': accountLinked,
  'blog-decision': blogDecision,
  'email-changed': emailChanged,
  'email-verification': emailVerification,
  'event-cancelled': eventCancelled,
  'event-changed': eventChanged,
  'event-message': eventMessage,
  'event-reminder': eventReminder,
  'password-changed': passwordChanged,
  'password-reset': passwordReset,
  registration,
  test,
} satisfies Record<string, MailKind>

export type KindName = keyof typeof kinds
