import { Type } from '@sinclair/typebox'

import { BUSY } from '../../lib/auth/passwords.ts'
import {
  Avatar, ClubImage, ClubName, EmailAddress, EmailInput, Enum, FirstName, LastName, Message, OpaqueId, PlainText,
  ResponseObject, RetryAfter, Role, TextInput, Token, TOO_MANY_FAILURES,
} from '../../lib/schemas.ts'

const SignedIn = ResponseObject({
  user: ResponseObject({ userId: OpaqueId, email: EmailAddress, role: Role }),
  token: Token,
}, { title: 'SignedIn' })

export const TOO_MANY_REGISTRATIONS = 'Too many registrations, please try again later'

export const register = {
  operationId: 'register',
  summary: 'Register an account',
  description: 'Creates the account of a student with a password, and signs it in. Operators may limit registrations ' +
    'per network; `Retry-After` is in seconds.',
  body: Type.Object({
    email: EmailInput(),
    password: TextInput({ minLength: 8, examples: ['correct horse'] }),
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
    503: Message(BUSY),
  },
}

export const login = {
  operationId: 'login',
  summary: 'Sign in with a password',
  description: 'Returns 429 after too many failures for an account or from a network; `Retry-After` is in seconds.',
  body: Type.Object({
    email: EmailInput(),
    password: TextInput({ examples: ['correct horse'] }),
  }, { title: 'Credentials' }),
  response: {
    200: SignedIn,
    400: Message('All fields are required'),
    401: Message('Invalid credentials'),
    429: { ...Message(TOO_MANY_FAILURES), headers: RetryAfter },
    503: Message(BUSY),
  },
}

export const me = {
  operationId: 'getCurrentUser',
  summary: 'Who is signed in',
  description: 'The stored account. Its role may be newer than that of the token.',
  response: {
    200: ResponseObject({
      user: ResponseObject({
        id: OpaqueId,
        firstName: FirstName,
        lastName: LastName,
        email: EmailAddress,
        avatar: Avatar,
        role: Role,
        club: Type.Union([
          ResponseObject({ id: OpaqueId, name: ClubName, imageUrl: ClubImage }, { title: 'OwnClub' }), Type.Null(),
        ]),
      }, { title: 'CurrentUser' }),
    }),
    401: Message('Unauthorized'),
  },
}

export const google = {
  operationId: 'loginWithIdToken',
  summary: 'Sign in with an ID token',
  description: 'For apps that already have an ID token, for instance from a button of the provider. The first ' +
    'sign-in creates the account of a student, or links the account with the same verified email.',
  docsOnly: {
    body: Type.Object({
      idToken: Type.String({
        description: 'The ID token, made for the client id of this service.',
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
  description: 'A link for the browser to follow, not for `fetch`. It redirects to the login page of the identity ' +
    'provider, and in the end to `/auth/callback` of the browser app with `token` and `to` in the query.',
  docsOnly: {
    querystring: Type.Object({
      redirect: Type.Optional(Type.String({
        description: 'Where in the browser app to go afterwards; `/` by default.', examples: ['/events'],
      })),
    }),
  },
  response: {
    302: Type.Null({
      description: 'To the identity provider.',
      headers: {
        Location: Type.String({ description: 'The login page of the identity provider.' }),
        'Set-Cookie': Type.String({ description: '`oauth_state_nonce`, which must come with the callback.' }),
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
  summary: 'Come back from the identity provider',
  description: 'The redirect URI for the identity provider, not for apps. Errors are plain text; 429 after too many ' +
    'failed callbacks from one network, with `Retry-After` in seconds.',
  docsOnly: {
    querystring: Type.Object({
      code: Type.String({ description: 'The authorization code.' }),
      state: Type.String({ description: 'The state that the sign-in was started with.' }),
    }),
  },
  response: {
    302: Type.Null({
      description: 'To the browser app.',
      headers: {
        Location: Type.String({
          description: '`/auth/callback` of the browser app, with the application token in `token` and the ' +
            'destination in `to`.',
        }),
      },
    }),
    400: PlainText('Missing code/state', 'Invalid state'),
    401: PlainText('No access token', 'Failed to fetch userinfo', 'No email in profile'),
    429: { ...PlainText(TOO_MANY_FAILURES), headers: RetryAfter },
    500: PlainText('Frontend URL not configured', 'OAuth callback failed'),
  },
}
