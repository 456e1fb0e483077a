import {
  type ObjectOptions, type SchemaOptions, type StringOptions, type TObject, type TProperties, Type,
} from '@sinclair/typebox'

import { ROLES } from './accounts.ts'
import { examplesOf } from './examples.ts'

// What checks and serializes also makes the API description: `description` and `examples` are for its readers, and a
// schema with a `title` is found by that name among its components.

/** A string of a request that PostgreSQL can store. */
export const Text = (options: StringOptions = {}) => Type.String({ format: 'text', ...options })

/** Such a string or null, in one schema: a union would report a wrong value once for each of its members. */
export const NullableText = (options: SchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'text', ...options })

/** An ordinary email address, used as supplied. */
export const Email = () => Type.String({ format: 'email', examples: ['ada@example.org'] })

/** An address that `new URL` accepts. */
export const Url = (options: SchemaOptions = {}) => Type.String({ format: 'url', ...options })

/** Such an address or the empty string. */
export const UrlOrEmpty = (options: SchemaOptions = {}) => Type.String({ format: 'url-or-empty', ...options })

/** A path parameter that must not be empty; any other text is the id of something or of nothing. */
export const Id = (options: StringOptions = {}) => Type.String({ minLength: 1, ...OPAQUE, ...options })

const OPAQUE = { examples: ['0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'] }

/** An object of an answer: these fields leave, and no others. */
export const Answer = <T extends TProperties>(properties: T, options: ObjectOptions = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false })

/** A string or null in an answer. */
export const Nullable = (options: SchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })

/** A date-time in an answer, made by the SQL function `iso8601`: `2026-01-31T09:30:00.000Z`. */
export const DateTime = Type.String({ format: 'date-time', examples: ['2026-01-31T09:30:00.000Z'] })

/** An id in an answer. */
export const OpaqueId = Type.String(OPAQUE)

/** How many there are, in an answer. */
export const Count = Type.Integer({ examples: [12] })

/** What an answer tells of a person. */
export const FirstName = Type.String({ examples: ['Ada'] })
export const LastName = Type.String({ examples: ['Lovelace'] })
export const EmailAddress = Type.String({ examples: ['ada@example.org'] })
export const Avatar = Nullable({ examples: ['https://images.example.org/ada.png'] })

export const ClubName = Type.String({ examples: ['Chess Club'] })
export const ClubImage = Nullable({ examples: ['https://images.example.org/chess.png'] })

/** What an answer tells of the club that something belongs to. */
export const ClubCard = Answer({ name: ClubName, imageUrl: ClubImage }, { title: 'ClubCard' })
export const NamedClub = Answer({ name: ClubName }, { title: 'NamedClub' })

/** One of a few words. */
export const Enum = <const T extends string>(words: readonly T[], options: SchemaOptions = {}) =>
  Type.Unsafe<T>({ enum: words, ...options })

export const Role = Enum(ROLES, { title: 'Role' })

/** A `security` for operations that show more to whoever is signed in. */
export const OPTIONAL_SIGN_IN: Record<string, string[]>[] = [{}, { bearerAuth: [] }]

/** An answer of plain text, for a person in a browser: one of these texts. */
export const PlainText = (...texts: string[]) => Enum(texts)

/** An answer `{message}` with one of these texts. */
export const Message = (...texts: string[]) => Answer({ message: Enum(texts) })

/** The headers of an answer that asks for patience. */
export const RetryAfter = {
  'Retry-After': Type.Integer({ description: 'How many seconds to wait before the next try.', examples: [2] }),
}

/**
 * An answer `{message}` of one kind or, if there is any, of the other: its text is one of either, and a field that only
 * one of them has may be missing.
 */
export function either (one: TObject, other: TObject | undefined) {
  if (!other) return one
  const fields = Object.entries({ ...one.properties, ...other.properties })
    .map(([name, field]) => [name, name in one.properties && name in other.properties ? field : Type.Optional(field)])
  const texts = [one, other].flatMap(({ properties }) => properties.message!.enum as string[])
  return Answer({ ...Object.fromEntries(fields), message: Enum(texts) }, {
    examples: [one, other].flatMap(examplesOf),
  })
}
