import { Type } from '@sinclair/typebox'

import { BUSY } from '../../lib/auth/passwords.ts'
import {
  Avatar, ClubImage, ClubName, EmailAddress, EmailInput, Enum, FirstName, LastName, Message, OpaqueId, PlainText,
  ResponseObject, RetryAfter, Role, TextInput,
} from '../../lib/schemas.ts'

const Token = Type.String({
  description: 'Goes into the header `Authorization: Bearer <token>` of further requests.',
  examples: ['eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMTkwYTFiMiJ9.c2lnbmF0dXJl'],
})

const SignedIn = ResponseObject({
  user: ResponseObject({ userId: OpaqueId, email: EmailAddress, role: Role }),
  token: Token,
}, { title: 'SignedIn' })

/** The messages of attempts past a limit. */
export const TOO_MANY_REGISTRATIONS = 'Too many registrations, please try again later'
export const TOO_MANY_FAILURES = 'Too many failed sign-ins, please try again later'

export const register = {
  operationId: 'register',
  summary: 'Register an account',
  description: 'Adds an account with a password, as a student, and signs it in. The operator may limit how many ' +
    'registrations come from one address: `Retry-After` says for how many seconds it has to wait.',
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
  description: 'After too many failures, an account has to wait, or all that sign in from the same address: ' +
    '`Retry-After` says for how many seconds.',
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
  description: 'Tells what is stored at this moment, which may be newer than what the token says.',
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
  description: 'For apps that have an ID token of the identity provider, from its own button for instance. The first ' +
    'sign-in adds an account, as a student; an account with the same verified email is linked.',
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
  description: 'A link for people to follow, not for `fetch`: it leads to the login page of the identity provider. ' +
    'They come back to `/auth/callback` of the browser app, with `token` and `to` in the query.',
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
  description: 'Where the identity provider sends people back to; not for apps to call. Errors are plain text.',
  docsOnly: {
    querystring: Type.Object({
      code: Type.String({ description: 'What the provider gives for a token.' }),
      state: Type.String({ description: 'What the sign-in started with.' }),
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
    500: PlainText('Frontend URL not configured', 'OAuth callback failed'),
  },
}
