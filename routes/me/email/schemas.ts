import { Type } from '@sinclair/typebox'

import { Busy } from '../../../lib/auth/passwords.ts'
import { TOO_MANY_EMAILS, TOO_MANY_FAILURES, TooManyEmails } from '../../../lib/auth/rate-limits.ts'
import {
  EmailInput, EXAMPLE_PASSWORD, Message, RetryAfter, TextInput, Unauthorized,
} from '../../../lib/values/schemas.ts'

export const OWN_EMAIL = 'This is your email address already'
export const PROVIDER_EMAIL = 'Your email address comes from your identity provider'

export const change = {
  operationId: 'changeMyEmail',
  summary: 'Change your email address',
  description: 'Sends a link to the new address, and a notice to the old address if it is verified. Your address ' +
    'changes when `POST /account/email/verify` gets the token of that link. A new password or signing out everywhere ' +
    'cancels the change. The response does not tell whether the new address has an account. If you sign in with the ' +
    'identity provider, you cannot change your address here.',
  body: Type.Object({
    email: EmailInput('ada.lovelace@example.org'), currentPassword: TextInput({ examples: [EXAMPLE_PASSWORD] }),
  }, { title: 'EmailChange' }),
  response: {
    202: Message('An email is on its way'),
    401: Message('Unauthorized', 'Current password is wrong'),
    409: Message(PROVIDER_EMAIL, OWN_EMAIL),
    429: { ...Message(TOO_MANY_FAILURES, TOO_MANY_EMAILS), headers: RetryAfter },
    503: Busy,
  },
}

export const verify = {
  operationId: 'verifyMyEmail',
  summary: 'Request a verification email',
  description: 'Sends an email with a link to `/verify-email` of the browser app. The fragment of the link contains ' +
    'a token for `POST /account/email/verify`. A sign-up also sends this email.',
  response: {
    202: Message('An email is on its way'),
    401: Unauthorized,
    409: Message('Email is already verified'),
    429: TooManyEmails,
  },
}
