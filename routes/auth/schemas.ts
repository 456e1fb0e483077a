import { Type } from '@sinclair/typebox'

import { BUSY } from '../../lib/passwords.ts'
import { Answer, Email, Message, Nullable, PlainText, Role, Text } from '../../lib/schemas.ts'

export const register = {
  body: Type.Object({
    email: Email(),
    password: Text({ minLength: 8 }),
    firstName: Text({ minLength: 1 }),
    lastName: Text({ minLength: 1 }),
  }),
  response: {
    201: Answer({
      user: Answer({
        id: Type.String(), firstName: Type.String(), lastName: Type.String(), email: Type.String(), role: Role,
      }),
      token: Type.String(),
    }),
    409: Message('User already exists'),
    503: Message(BUSY),
  },
}

export const login = {
  body: Type.Object({
    email: Email(),
    password: Text(),
  }),
  response: {
    200: Answer({
      user: Answer({ userId: Type.String(), email: Type.String(), role: Role }),
      token: Type.String(),
    }),
    400: Message('All fields are required'),
    401: Message('Invalid credentials'),
    429: Message('Too many failed sign-ins, please try again later'),
    503: Message(BUSY),
  },
}

export const me = {
  response: {
    200: Answer({
      user: Answer({
        id: Type.String(),
        firstName: Type.String(),
        lastName: Type.String(),
        email: Type.String(),
        avatar: Nullable,
        role: Role,
        club: Type.Union([Answer({ id: Type.String(), name: Type.String(), imageUrl: Nullable }), Type.Null()]),
      }),
    }),
    401: Message('Unauthorized'),
  },
}

export const google = {
  response: {
    200: login.response[200],
    400: Message('idToken is required'),
    401: Message('Invalid IdP token'),
    500: Answer({
      message: Type.Unsafe<string>({ enum: ['IdP client not configured'] }),
      missingVariable: Type.String(),
      details: Type.String(),
    }),
  },
}

export const googleStart = {
  response: {
    302: Type.Null(),
    500: Answer({
      message: Type.Unsafe<string>({ enum: ['IdP OAuth not configured'] }),
      missingVariables: Type.Optional(Type.Array(Type.String())),
      details: Type.Optional(Type.String()),
    }),
  },
}

export const googleCallback = {
  response: {
    302: Type.Null(),
    400: PlainText('Missing code/state', 'Invalid state'),
    401: PlainText('No access token', 'Failed to fetch userinfo', 'No email in profile'),
    500: PlainText('Frontend URL not configured', 'OAuth callback failed'),
  },
}
