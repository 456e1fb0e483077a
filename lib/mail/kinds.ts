import { test } from './kinds/test.ts'
import type { MailKind } from './message.ts'

/** Every kind of mail, by the name that the outbox has. */
export const kinds = { test } satisfies Record<string, MailKind>

export type KindName = keyof typeof kinds
