import { Type } from '@sinclair/typebox'

import { LAST_ADMIN } from '../../lib/accounts/erasure.ts'
import { Busy } from '../../lib/auth/passwords.ts'
import {
  TOO_MANY_EMAILS, TOO_MANY_FAILURES, TOO_MANY_PASSWORDS, TooManyEmails, TooManyFailures,
} from '../../lib/auth/rate-limits.ts'
import {
  CurrentUser, DateTime, EmailInput, Enum, EXAMPLE_PASSWORD, FirstName, LastName, Message, NameInput, NewPassword,
  NullableTextInput, PictureNotFound, ResponseObject, RetryAfter, TextInput, Token, Unauthorized,
} from '../../lib/values/schemas.ts'
import { PUBLIC_URL_REQUIRED } from '../../lib/pictures/refusals.ts'

const CurrentPassword = () => TextInput({ examples: [EXAMPLE_PASSWORD] })

export const changePassword = {
  operationId: 'changeMyPassword',
  summary: 'Change your password',
  description: 'Revokes all your tokens, including the token of this request, and returns a new token. Unlike ' +
    'a sign-up, this refuses common passwords and passwords that contain your email address. If your account has no ' +
    'password yet, use `POST /account/password/forgot` instead. Too many wrong passwords, or more than 20 new ' +
    'passwords, get a 429.',
  body: Type.Object({
    currentPassword: CurrentPassword(),
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

export const verifyEmail = {
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

export const changeProfile = {
  operationId: 'changeMyProfile',
  summary: 'Change your name or your picture',
  description: 'Missing fields stay unchanged. To change your picture, upload it with `POST /me/pictures` first.',
  body: Type.Object({
    firstName: Type.Optional(NameInput({ examples: FirstName.examples })),
    lastName: Type.Optional(NameInput({ examples: LastName.examples })),
    avatar: Type.Optional(NullableTextInput({
      description: 'The id of a picture that you uploaded, not its URL. `null` removes your picture.', examples: [null],
    })),
  }, { title: 'ProfileChanges' }),
  response: {
    200: ResponseObject({ user: CurrentUser }),
    401: Unauthorized,
    404: PictureNotFound,
    501: Message(PUBLIC_URL_REQUIRED),
  },
}

export const OWN_EMAIL = 'This is your email address already'
export const PROVIDER_EMAIL = 'Your email address comes from your identity provider'

export const changeEmail = {
  operationId: 'changeMyEmail',
  summary: 'Change your email address',
  description: 'Sends a link to the new address, and a notice to the old address if it is verified. Your address ' +
    'changes when `POST /account/email/verify` gets the token of that link. A new password or signing out everywhere ' +
    'cancels the change. The response does not tell whether the new address has an account. If you sign in with the ' +
    'identity provider, you cannot change your address here.',
  body: Type.Object({
    email: EmailInput('ada.lovelace@example.org'), currentPassword: CurrentPassword(),
  }, { title: 'EmailChange' }),
  response: {
    202: Message('An email is on its way'),
    401: Message('Unauthorized', 'Current password is wrong'),
    409: Message(PROVIDER_EMAIL, OWN_EMAIL),
    429: { ...Message(TOO_MANY_FAILURES, TOO_MANY_EMAILS), headers: RetryAfter },
    503: Busy,
  },
}

export const SIGN_IN_AGAIN = 'Please sign in with your identity provider again, and retry within five minutes'

export const deleteAccount = {
  operationId: 'deleteMyAccount',
  summary: 'Delete your account',
  description: 'Permanently deletes your account, registrations, likes, drafts and pictures, and revokes all ' +
    'your tokens. Your published posts stay, but without your name. Pictures that a published post or a page shows ' +
    'also stay, see `uses` in `GET /me/pictures`: delete them first if they should not. If your account has no ' +
    'password, sign in with the identity provider first, at most five minutes before.',
  body: Type.Object({
    currentPassword: NullableTextInput({
      description: '`null` if your account has no password.', examples: [EXAMPLE_PASSWORD],
    }),
  }, { title: 'AccountDeletion' }),
  response: {
    200: ResponseObject({
      message: Enum(['Account deleted successfully']),
      kept: ResponseObject({
        publishedBlogs: Type.Integer({ description: 'Posts that stay without your name.', examples: [2] }),
        pictures: Type.Integer({ description: 'Pictures that stay, because they are shown.', examples: [1] }),
      }),
    }, { title: 'AccountDeleted' }),
    401: Message('Unauthorized', 'Current password is wrong', SIGN_IN_AGAIN),
    409: Message(LAST_ADMIN),
    429: TooManyFailures,
    503: Busy,
  },
}

export const revokeTokens = {
  operationId: 'endMyTokens',
  summary: 'Sign out everywhere',
  description: 'Revokes all your tokens on every device, including the token of this request. Your calendar link ' +
    'keeps working.',
  response: { 200: Message('Signed out everywhere'), 401: Unauthorized },
}

export const renewToken = {
  operationId: 'renewMyToken',
  summary: 'Get a token with your current role',
  description: 'After your role has changed, the new token has the new role. It expires and is revoked together with ' +
    'the token of the request, and does not count as a sign-in.',
  response: { 200: ResponseObject({ token: Token }), 401: Unauthorized },
}

export const readAccount = {
  operationId: 'getMyAccount',
  summary: 'Get the state of your account',
  description: 'Tells what your settings page needs: how you sign in, and what you have set up.',
  response: {
    200: ResponseObject({
      account: ResponseObject({
        isEmailVerified: Type.Boolean({ description: 'Notifications need a verified email address.' }),
        hasPassword: Type.Boolean({ description: 'If not, you sign in with the identity provider.' }),
        isLinked: Type.Boolean({ description: 'Whether you can sign in with the identity provider.' }),
        calendar: Type.Union([ResponseObject({ createdAt: DateTime }), Type.Null()], {
          description: 'Your calendar link from `POST /me/calendar`, without its secret.',
        }),
      }, { title: 'AccountState' }),
    }),
    401: Unauthorized,
  },
}
