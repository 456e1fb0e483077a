import { type TProperties, Type } from '@sinclair/typebox'

import { ROLES } from './accounts.ts'

/** A string of a request: PostgreSQL can store it. */
export const Text = (options: { minLength?: number } = {}) => Type.String({ format: 'text', ...options })

/** A string that looks like an email address; it is used as supplied. */
export const Email = () => Type.String({ format: 'email' })

/** A string or null in an answer. */
export const Nullable = Type.Union([Type.String(), Type.Null()])

export const Role = Type.Unsafe<typeof ROLES[number]>({ type: 'string', enum: ROLES })

/** An object of an answer: these fields leave, and no others. */
export const Answer = <T extends TProperties>(properties: T) => Type.Object(properties, { additionalProperties: false })

/** An answer of `{message}`, which has one of these texts. */
export const Message = (...texts: string[]) => Answer({ message: Type.Unsafe<string>({ type: 'string', enum: texts }) })

/** The answer to a request that does not fit its schema: one entry for every issue found. */
export const ValidationError = (...texts: string[]) => Type.Object({
  message: Type.Unsafe<string>({ type: 'string', enum: ['Validation error', ...texts] }),
  errors: Type.Optional(Type.Array(Answer({ path: Type.String(), message: Type.String() }))),
})

/** The answer of `authenticate` to who shows no token, or one that does not verify. */
export const Unauthenticated = (...texts: string[]) =>
  Message('Access token required', 'Invalid or expired token', ...texts)
