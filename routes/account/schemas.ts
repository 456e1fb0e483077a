import { Type } from '@sinclair/typebox'

import { BUSY } from '../../lib/auth/passwords.ts'
import { EmailInput, IdParam, Message, NewPassword, RetryAfter, TextInput, TOO_MANY_MAILS } from '../../lib/schemas.ts'
import { FRONTEND_REQUIRED } from '../../plugins/mail.ts'

export const TOO_MANY_LINKS = 'Too many invalid links, please try again later'

const LinkToken = () => TextInput({
  description: 'From the fragment of the link.', examples: ['kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'],
})

export const forgotPassword = {
  operationId: 'forgotPassword',
  summary: 'Get a mail to set a password',
  description: 'It has a link to `/reset-password` of the browser app, with a token in the fragment for ' +
    '`POST /account/password/reset`. The response is the same for an email without an account, and takes as long.',
  body: Type.Object({ email: EmailInput() }, { title: 'ForgottenPassword' }),
  response: {
    202: Message('If this email has an account, a mail is on its way'),
    429: { ...Message(TOO_MANY_MAILS), headers: RetryAfter },
    501: Message(FRONTEND_REQUIRED),
  },
}

export const resetPassword = {
  operationId: 'resetPassword',
  summary: 'Set a password by the token of a mail',
  description: 'The token works once, within an hour, unless a newer one replaces it. Ends all tokens of the ' +
    'account, and proves its email. Common passwords and those with the email in them are refused.',
  body: Type.Object({ token: LinkToken(), password: NewPassword() }, { title: 'PasswordReset' }),
  response: {
    200: Message('Password set successfully'),
    400: Message('Invalid or expired link'),
    429: { ...Message(TOO_MANY_LINKS), headers: RetryAfter },
    503: Message(BUSY),
  },
}

export const verifyEmail = {
  operationId: 'verifyEmail',
  summary: 'Prove an email by the token of a mail',
  description: 'The token works once, for seven days, and until the account gets a newer one.',
  body: Type.Object({ token: LinkToken() }, { title: 'EmailProof' }),
  response: {
    200: Message('Email verified successfully'),
    400: Message('Invalid or expired link'),
    429: { ...Message(TOO_MANY_LINKS), headers: RetryAfter },
  },
}

export const unsubscribe = {
  operationId: 'unsubscribe',
  summary: 'Turn off one kind of mail',
  description: 'For the link in a mail, and for mail programs (RFC 8058); the body is ignored, whatever its type. ' +
    '`PUT /me/notifications` turns them on again. The token works for 30 days after the mail was sent.',
  docsOnly: {
    params: Type.Object({
      token: IdParam({
        description: 'From the link.', examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
      }),
    }),
  },
  response: { 200: Message('You get no more mails of this kind'), 404: Message('Link not found') },
}
