import { Type } from '@sinclair/typebox'

import { Answer, Email, Message, Nullable, Role, Text, Unauthenticated, ValidationError } from '../../lib/schemas.ts'

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
    400: ValidationError(),
    409: Message('User already exists'),
    500: Message('Registration failed'),
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
    400: ValidationError('All fields are required'),
    401: Message('Invalid credentials'),
    500: Message('Login failed'),
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
    401: Unauthenticated('Unauthorized'),
    500: Message('Internal server error'),
  },
}
