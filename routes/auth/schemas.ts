import { Type } from '@sinclair/typebox'

import { Busy } from '../../lib/auth/passwords.ts'
import { TooManyFailures } from '../../lib/auth/rate-limits.ts'
import {
  CurrentUser, EmailAddress, EmailInput, Enum, EXAMPLE_EMAIL, EXAMPLE_PASSWORD, FirstName, LastName, Message,
  NewPassword, OpaqueId, PlainText, ResponseObject, RetryAfter, Role, TextInput, Token, Unauthorized,
} from '../../lib/values/schemas.ts'

const SignedIn = ResponseObject({
  user: ResponseObject({ userId: OpaqueId, email: EmailAddress, role: Role }),
  token: Token,
}, { title: 'SignedIn' })

export const TOO_MANY_REGISTRATIONS = 'Too many registrations, please try again later'

export const register = {
  operationId: 'register',
  summary: 'Sign up with a password',
  description: 'Creates a `STUDENT` account and returns its token. Any password of at least 8 characters is ' +
    'accepted, because apps rely on it, but a later change refuses common passwords. If email is configured, you ' +
    'also get an email to verify the address. An operator can limit sign-ups per network. You then get a 429.',
  body: Type.Object({
    email: EmailInput(),
    password: NewPassword('correct horse'),
    firstName: TextInput({ minLength: 1, examples: ['Ada'] }),
    lastName: TextInput({ minLength: 1, examples: ['Lovelace'] }),
  }, { title: 'NewAccount' }),
  response: {
    201: ResponseObject({
      user: ResponseObject({ id: OpaqueId, firstName: FirstName, lastName: LastName, email: EmailAddress, role: Role }),
      token: Token,
    }, { title: 'Registered' }),
    409: Message('User already exists'),
    429: { ...Message(TOO_MANY_REGISTRATIONS), headers: RetryAfter },
    503: Busy,
  },
}

export const login = {
  operationId: 'login',
  summary: 'Sign in with a password',
  description: 'Returns a token. If a network sends too many wrong passwords for an account, it gets a 429, even for ' +
    'the right password.',
  body: Type.Object({
    email: EmailInput(EXAMPLE_EMAIL),
    password: TextInput({ examples: [EXAMPLE_PASSWORD] }),
  }, { title: 'Credentials' }),
  response: {
    200: SignedIn,
    400: Message('All fields are required'),
    401: Message('Invalid credentials'),
    429: TooManyFailures,
    503: Busy,
  },
}

export const me = {
  operationId: 'getCurrentUser',
  summary: 'Get the signed-in user',
  description: 'Returns the account from the database. This role may be newer than the role in the token.',
  response: {
    200: ResponseObject({ user: CurrentUser }),
    401: Unauthorized,
  },
}

export const google = {
  operationId: 'loginWithIdToken',
  summary: 'Sign in with an ID token',
  description: 'You can use this if your app already has an ID token, for example from the button of the identity ' +
    'provider. The first sign-in creates a `STUDENT` account, or links the account with the same email address.',
  checkedByHandler: {
    body: Type.Object({
      idToken: Type.String({
        description: 'The ID token. Its audience must be the client id of this service.',
        examples: ['eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJlbWFpbCI6ImFkYUBleGFtcGxlLm9yZyJ9.c2lnbmF0dXJl'],
      }),
    }, { title: 'IdToken' }),
  },
  response: {
    200: SignedIn,
    400: Message('idToken is required'),
    401: Message('Invalid IdP token'),
    500: ResponseObject({
      message: Enum(['IdP client not configured']),
      missingVariable: Type.String({ examples: ['IDP_CLIENT_ID'] }),
      details: Type.String({ examples: ['Set IDP_CLIENT_ID to the client id given by the identity provider'] }),
    }),
  },
}

export const googleStart = {
  operationId: 'startProviderSignIn',
  summary: 'Sign in with the identity provider',
  description: 'Open this URL in the browser; do not call it with `fetch`. It redirects to the sign-in page of the ' +
    'identity provider. After the sign-in, the browser arrives at `/auth/callback` of your app with `token` and `to` ' +
    'in the query.',
  checkedByHandler: {
    querystring: Type.Object({
      redirect: Type.Optional(Type.String({
        description: 'The path in your app to open after the sign-in. The default is `/`.', examples: ['/events'],
      })),
    }),
  },
  response: {
    302: Type.Null({
      description: 'Redirects to the identity provider.',
      headers: {
        Location: Type.String({ description: 'The sign-in page of the identity provider.' }),
        'Set-Cookie': Type.String({ description: 'Sets `oauth_state_nonce`. The callback requires this cookie.' }),
      },
    }),
    500: ResponseObject({
      message: Enum(['IdP OAuth not configured']),
      missingVariables: Type.Array(Type.String(), { examples: [['IDP_CLIENT_ID', 'IDP_CLIENT_SECRET']] }),
      details: Type.String({
        examples: ['Set IDP_CLIENT_ID, IDP_CLIENT_SECRET as registered with the identity provider'],
      }),
    }),
  },
}

export const googleCallback = {
  operationId: 'finishProviderSignIn',
  summary: 'Finish a sign-in with the identity provider',
  description: 'The identity provider redirects the browser here. Apps do not call it. Errors are plain text.',
  checkedByHandler: {
    querystring: Type.Object({
      code: Type.String({ description: 'The authorization code.' }),
      state: Type.String({ description: 'The state from the start of the sign-in.' }),
    }),
  },
  response: {
    302: Type.Null({
      description: 'Redirects to your app.',
      headers: {
        Location: Type.String({
          description: '`/auth/callback` of your app. The query contains the application token in `token` and the ' +
            'destination in `to`.',
        }),
      },
    }),
    400: PlainText('Missing code/state', 'Invalid state'),
    401: PlainText('No access token', 'Failed to fetch userinfo', 'No email in profile'),
    500: PlainText('Frontend URL not configured', 'OAuth callback failed'),
  },
}
