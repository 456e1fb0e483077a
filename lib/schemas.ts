import { type TProperties, Type } from '@sinclair/typebox'

import { ROLES } from './accounts.ts'

/** A string of a request that PostgreSQL can store. */
export const Text = (options: { minLength?: number } = {}) => Type.String({ format: 'text', ...options })

/** Such a string or null, in one schema: a union would report a wrong value once for each of its members. */
export const NullableText = () => Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'text' })

/** An ordinary email address, used as supplied. */
export const Email = () => Type.String({ format: 'email' })

/** An address that `new URL` accepts. */
export const Url = () => Type.String({ format: 'url' })

/** Such an address or the empty string. */
export const UrlOrEmpty = () => Type.String({ format: 'url-or-empty' })

/** A path parameter that must not be empty; any other text is the id of something or of nothing. */
export const Id = () => Type.String({ minLength: 1 })

/** An object of an answer: these fields leave, and no others. */
export const Answer = <T extends TProperties>(properties: T) => Type.Object(properties, { additionalProperties: false })

/** A string or null in an answer. */
export const Nullable = Type.Unsafe<string | null>({ type: ['string', 'null'] })

/** A date-time in an answer, made by the SQL function `iso8601`: `2026-01-31T09:30:00.000Z`. */
export const DateTime = Type.String({ format: 'date-time' })

/** What an answer tells of the club that something belongs to. */
export const Club = Answer({ name: Type.String(), imageUrl: Nullable })
export const ClubName = Answer({ name: Type.String() })

/** One of a few words. */
export const Enum = <T extends string>(...words: readonly T[]) => Type.Unsafe<T>({ enum: words })

export const Role = Enum(...ROLES)

/** An answer of plain text, for a person in a browser: one of these texts. */
export const PlainText = (...texts: string[]) => Enum(...texts)

/** An answer `{message}` with one of these texts. */
export const Message = (...texts: string[]) => Answer({ message: Enum(...texts) })
