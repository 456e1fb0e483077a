import { Type } from '@sinclair/typebox'

import { Busy } from '../../../lib/auth/passwords.ts'
import { TOO_MANY_FAILURES, TOO_MANY_PASSWORDS } from '../../../lib/auth/rate-limits.ts'
import {
  Enum, EXAMPLE_PASSWORD, Message, NewPassword, ResponseObject, RetryAfter, TextInput, Token,
} from '../../../lib/values/schemas.ts'

export const change = {
  operationId: 'changeMyPassword',
  summary: 'Change your password',
  description: 'Revokes all your tokens, including the token of this request, and returns a new token. Unlike ' +
    'a sign-up, this refuses common passwords and passwords that contain your email address. If your account has no ' +
    'password yet, use `POST /account/password/forgot` instead. Too many wrong passwords, or more than 20 new ' +
    'passwords, get a 429.',
  body: Type.Object({
    currentPassword: TextInput({ examples: [EXAMPLE_PASSWORD] }),
    newPassword: NewPassword(),
  }, { title: 'PasswordChange' }),
  response: {
    200: ResponseObject({
      message: Enum(['Password changed successfully']), token: Token,
    }, { title: 'PasswordChanged' }),
    401: Message('Unauthorized', 'Current password is wrong'),
    429: { ...Message(TOO_MANY_FAILURES, TOO_MANY_PASSWORDS), headers: RetryAfter },
    503: Busy,
  },
}
