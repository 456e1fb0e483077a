import { accountLinked } from './kinds/account-linked.ts'
import { emailVerification } from './kinds/email-verification.ts'
import { passwordChanged } from './kinds/password-changed.ts'
import { passwordReset } from './kinds/password-reset.ts'
import { test } from './kinds/test.ts'
import type { MailKind } from './message.ts'

/** Every kind of mail, by the name that the outbox has. */
export const kinds = {
  'account-linked': accountLinked,
  'email-verification': emailVerification,
  'password-changed': passwordChanged,
  'password-reset': passwordReset,
  test,
} satisfies Record<string, MailKind>

export type KindName = keyof typeof kinds
