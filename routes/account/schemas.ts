import { Type } from '@sinclair/typebox'

import { LAST_ADMIN, IS_FORMER_MEMBER } from '../../lib/accounts/erasure.ts'
import { Busy } from '../../lib/auth/passwords.ts'
import { TOO_MANY_PASSWORDS, TooManyEmails } from '../../lib/auth/rate-limits.ts'
import {
  EmailInput, Enum, EXAMPLE_EMAIL, IdParam, Message, NewPassword, ResponseObject, RetryAfter, TextInput, UserNotFound,
} from '../../lib/values/schemas.ts'

const LinkToken = () => TextInput({
  description: 'The token from the fragment of the link.', examples: ['kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'],
})

export const erase = {
  operationId: 'eraseAccount',
  summary: 'Erase an account',
  description: 'Deletes an account with its registrations, likes, drafts and pictures, as `DELETE /me` does for your ' +
    'own account. Published posts stay, but without the name. `DELETE /users/{id}` refuses accounts that have posts ' +
    'or registrations.',
  params: Type.Object({ id: IdParam('The id of the user.') }),
  response: {
    200: ResponseObject({
      message: Enum(['Account erased successfully']),
      kept: ResponseObject({
        publishedBlogs: Type.Integer({ description: 'Posts that stay without the name.', examples: [2] }),
        pictures: Type.Integer({ description: 'Pictures that stay, because they are shown.', examples: [1] }),
      }),
    }, { title: 'AccountErased' }),
    404: UserNotFound,
    409: Message(LAST_ADMIN, IS_FORMER_MEMBER),
  },
}

export const forgotPassword = {
  operationId: 'forgotPassword',
  summary: 'Request a password reset',
  description: 'Sends an email with a link to `/reset-password` of the browser app. The fragment of the link ' +
    'contains a token for `POST /account/password/reset`. An email address without an account gets the same ' +
    'response, after the same time.',
  body: Type.Object({ email: EmailInput(EXAMPLE_EMAIL) }, { title: 'ForgottenPassword' }),
  response: {
    202: Message('If this email has an account, an email is on its way'),
    429: TooManyEmails,
  },
}

/** Error message if the token of a link does not work. */
export const INVALID_LINK = 'Invalid or expired link'

export const resetPassword = {
  operationId: 'resetPassword',
  summary: 'Reset a password',
  description: 'The body contains the token from a password-reset email. The token works once within an hour, until ' +
    'a newer email is sent. This revokes all tokens of the account and verifies its email address. Common passwords ' +
    'are refused, and so are passwords that contain the email address.',
  body: Type.Object({ token: LinkToken(), password: NewPassword() }, { title: 'PasswordReset' }),
  response: {
    200: Message('Password set successfully'),
    400: Message(INVALID_LINK),
    429: { ...Message(TOO_MANY_PASSWORDS), headers: RetryAfter },
    503: Busy,
  },
}

/** Error message if another account has taken the new email address. */
export const EMAIL_TAKEN = 'This email address already has an account'

export const verifyEmail = {
  operationId: 'verifyEmail',
  summary: 'Verify an email address',
  description: 'The body contains the token from a verification email. A token from `POST /me/email` also changes ' +
    'the address of the account. The token works once within seven days, until a newer email is sent.',
  body: Type.Object({ token: LinkToken() }, { title: 'EmailVerification' }),
  response: {
    200: Message('Email verified successfully'),
    400: Message(INVALID_LINK),
    409: Message(EMAIL_TAKEN),
  },
}

export const unsubscribe = {
  operationId: 'unsubscribe',
  summary: 'Unsubscribe from a type of email',
  description: 'Email apps send this request if you click *Unsubscribe* there (RFC 8058). The body is ignored. `PUT ' +
    '/me/notifications` turns these emails on again. The token works as long as the account exists.',
  checkedByHandler: {
    params: Type.Object({
      token: IdParam(
        'The token from the link.', '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
      ),
    }),
  },
  response: { 200: Message("You're unsubscribed from these emails"), 404: Message('Link not found') },
}
