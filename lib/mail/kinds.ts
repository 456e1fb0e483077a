import { accountLinked } from './kinds/account-linked.ts'
import { blogDecision } from './kinds/blog-decision.ts'
import { emailVerification } from './kinds/email-verification.ts'
import { eventCancelled } from './kinds/event-cancelled.ts'
import { eventChanged } from './kinds/event-changed.ts'
import { eventMessage } from './kinds/event-message.ts'
import { eventReminder } from './kinds/event-reminder.ts'
import { passwordChanged } from './kinds/password-changed.ts'
import { passwordReset } from './kinds/password-reset.ts'
import { registration } from './kinds/registration.ts'
import { test } from './kinds/test.ts'
import type { MailKind } from './message.ts'

/** Every kind of mail, by the name that the outbox has. */
export const kinds = {
  'account-linked': accountLinked,
  'blog-decision': blogDecision,
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
