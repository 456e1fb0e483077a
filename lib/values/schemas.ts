import {
  type ObjectOptions, type SchemaOptions, type StringOptions, type TObject, type TProperties, type TSchema, Type,
} from '@sinclair/typebox'

import { NOT_A_NAME } from './formats.ts'
import { ROLES } from './roles.ts'

// Schemas that routes share. They validate requests, serialize responses and describe the API. A schema with a `title`
// becomes a component of the API description.

// In the demo data (lib/cli/seed), a row of each table has this id, and the student has this address and password, so
// that the examples of the API description can be sent.
export const EXAMPLE_ID = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
export const EXAMPLE_EMAIL = 'student@demo.example.org'
export const EXAMPLE_PASSWORD = 'demo-password'
export const EXAMPLE_DATE = '2030-01-31T09:30:00.000Z'

/** A string in a request that PostgreSQL can store. */
export const TextInput = (options: StringOptions = {}) => Type.String({ format: 'text', ...options })

/** A string or null in one schema, because a union would report an invalid value once per member. */
export const NullableTextInput = (options: SchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'text', ...options })

/** The name of a person, outside the contract. */
export const NameInput = (options: StringOptions = {}) =>
  Type.String({ format: 'name', description: `It ${NOT_A_NAME}.`, ...options })

export const EmailInput = (example = 'ada@example.org') => Type.String({ format: 'email', examples: [example] })

/** A URL that `new URL` accepts. */
export const UrlInput = (options: SchemaOptions = {}) => Type.String({ format: 'url', ...options })

/** A path parameter that must not be empty. Any other text, even with NUL, is a known or unknown id. */
export const IdParam = (description: string, example = EXAMPLE_ID) =>
  Type.String({ minLength: 1, description, examples: [example] })

/** The parameters of a paginated list. Each route parses them by the rules of the contract. */
export const PageParams = (limit: string) => ({
  page: Type.Optional(Type.String({ description: 'The number of the page. The default is 1.', examples: ['1'] })),
  limit: Type.Optional(Type.String({ description: limit, examples: ['12'] })),
})

/** An object in a response. Other fields are not sent. */
export const ResponseObject = <T extends TProperties>(properties: T, options: ObjectOptions = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false })

/** A string or null in a response. */
export const NullableString = (options: SchemaOptions = {}) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })

/** A date-time in a response, from the SQL function `iso8601`: `2030-01-31T09:30:00.000Z`. */
export const DateTime = Type.String({ title: 'DateTime', format: 'date-time', examples: [EXAMPLE_DATE] })

/** A date-time or null in a response. */
export const NullableDateTime = (description: string, example = EXAMPLE_DATE) =>
  NullableString({ format: 'date-time', description, examples: [example] })

export const OpaqueId = Type.String({ title: 'Id', examples: [EXAMPLE_ID] })

export const Count = Type.Integer({ title: 'Count', examples: [12] })

/** An integer or null in a response. */
export const NullableCount = (description: string, example = 3) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description, examples: [example] })

/** How many people an email reaches, and how many it does not reach. */
export const Reach = ResponseObject({ reached: Type.Integer(), notReached: Type.Integer() }, { title: 'Reach' })

/** The position of a page in its list. */
export const Pagination = ResponseObject({
  page: Type.Integer({ examples: [1] }),
  pages: Type.Integer({ examples: [1] }),
  total: Count,
  limit: Count,
}, { title: 'Pagination' })

/** A token in a response. */
export const Token = Type.String({
  title: 'Token',
  description: 'Send this token with your requests: `Authorization: Bearer <token>`.',
  examples: ['eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMTkwYTFiMiJ9.c2lnbmF0dXJl'],
})

/** A password to be stored. If it replaces an earlier one, the handler refuses passwords that are easy to guess. */
export const NewPassword = (example = 'battery staple') =>
  Type.String({ format: 'password', minLength: 8, examples: [example] })

/** Fields of a person in a response. `fullName` in lib/database/columns.ts selects FullName. */
export const FullName = Type.String({ examples: ['Ada Lovelace'] })
export const FirstName = Type.String({ examples: ['Ada'] })
export const LastName = Type.String({ examples: ['Lovelace'] })
export const EmailAddress = Type.String({ examples: ['ada@example.org'] })
export const Avatar = NullableString({ examples: ['https://images.example.org/ada.png'] })

/** The offices in a club. */
export const OFFICES = ['head', 'deputy'] as const

const NullableOffice = (options: SchemaOptions) =>
  Type.Unsafe<typeof OFFICES[number] | null>({ type: ['string', 'null'], enum: [...OFFICES, null], ...options })

/** The office of a person in a club. */
export const Office = NullableOffice({
  title: 'Office', description: 'The office in the club, or `null`.', examples: ['deputy'],
})
/** A valid offer of an office; `offerColumns` in lib/clubs/members.ts selects both. */
export const Offered = NullableOffice({
  title: 'OfferedOffice', description: 'The office that waits for an answer, or `null`.', examples: [null],
})
export const OfferedUntil = NullableString({
  title: 'OfferedUntil', format: 'date-time', description: 'Until when the offer can be accepted.', examples: [null],
})

export const ClubName = Type.String({ examples: ['Chess Club'] })
export const ClubDescription = Type.String({ examples: ['Openings, endings, and what lies between.'] })
export const ClubImage = NullableString({
  title: 'ClubImage', examples: ['https://images.example.org/chess.png'],
})

/** A club within another object. */
export const ClubCard = ResponseObject({ name: ClubName, imageUrl: ClubImage }, { title: 'ClubCard' })
export const NamedClub = ResponseObject({ name: ClubName }, { title: 'NamedClub' })

const EVENT_EXAMPLES = {
  title: { examples: ['Chess Night'] },
  description: { examples: ['Ten games at once, against anyone who comes.'] },
  imageUrl: { examples: ['https://images.example.org/chess-night.png'] },
}

/** The fields of an event in a request, except its date. */
export const eventInputs = {
  title: TextInput({ minLength: 3, ...EVENT_EXAMPLES.title }),
  description: TextInput({ minLength: 10, ...EVENT_EXAMPLES.description }),
  imageUrl: UrlInput(EVENT_EXAMPLES.imageUrl),
}

/** The fields of an event in a response; `eventColumns` in lib/database/columns.ts selects them and the ClubCard. */
export const eventFields = {
  id: OpaqueId,
  title: Type.String(EVENT_EXAMPLES.title),
  description: Type.String(EVENT_EXAMPLES.description),
  imageUrl: NullableString({ title: 'EventImage', ...EVENT_EXAMPLES.imageUrl }),
  date: DateTime,
  clubId: OpaqueId,
  createdAt: DateTime,
}

/** An event within another object; `eventSummary` in lib/database/columns.ts selects it. */
export const EventSummary = ResponseObject({
  id: eventFields.id, title: eventFields.title, date: eventFields.date,
}, { title: 'EventSummary' })

/** The fields of a registration in a response; `registrationColumns` in lib/database/columns.ts selects them. */
export const registrationFields = { id: OpaqueId, userId: OpaqueId, eventId: OpaqueId, registeredAt: DateTime }

/** A registration; `registrationDetails` in lib/database/columns.ts selects its event and user. */
export const Registration = ResponseObject({
  ...registrationFields,
  event: ResponseObject({ title: eventFields.title }),
  user: ResponseObject({ firstName: FirstName, lastName: LastName }),
}, { title: 'Registration' })

/** One of a few words. */
export const Enum = <const T extends string>(words: readonly T[], options: SchemaOptions = {}) =>
  Type.Unsafe<T>({ enum: words, ...options })

export const Role = Enum(ROLES, { title: 'Role' })

/** The signed-in user; `profileColumns` in lib/database/columns.ts selects it. */
export const CurrentUser = ResponseObject({
  id: OpaqueId,
  firstName: FirstName,
  lastName: LastName,
  email: EmailAddress,
  avatar: Avatar,
  role: Role,
  club: Type.Union([
    ResponseObject({ id: OpaqueId, name: ClubName, imageUrl: ClubImage }, { title: 'OwnClub' }), Type.Null(),
  ]),
}, { title: 'CurrentUser' })

/** A plain-text response for a person in a browser: one of these texts. */
export const PlainText = (...texts: string[]) => Enum(texts)

/** A response of a media type other than JSON. */
export const Media = (contentMediaType: string, options: StringOptions = {}) =>
  Type.String({ contentMediaType, ...options })

/** A response `{message}` with one of these texts. */
export const Message = (...texts: string[]) => ResponseObject({ message: Enum(texts) })

/** A response `{message}` with a configured limit in the message. */
export const MessageSuchAs = (example: string) => ResponseObject({ message: Type.String({ examples: [example] }) })

/** Names an error, so that the API description says it once. */
export const Named = (title: string, error: TObject): TObject => ({ ...error, title })

/** Error message for invalid and revoked tokens. */
export const INVALID_TOKEN = 'Invalid or expired token'
/** Error message if an email could not contain its link. */
export const FRONTEND_REQUIRED = 'Frontend URL not configured'
/** Error message of an encoded body. */
export const ENCODED = 'A request body cannot be encoded, please send it without Content-Encoding'
/** Error messages for a user without the right to manage an event. */
export const REGISTRATIONS_NOT_ALLOWED = 'Not allowed to view registrations for this event'
export const EVENT_NOT_ALLOWED = 'Not allowed to modify this event'
/** Error message for a user who neither organizes a club nor is an admin. */
export const CLUB_NOT_ALLOWED = 'Not allowed to manage this club'

/** Errors of several operations. */
export const Unauthorized = Named('Unauthorized', Message('Unauthorized'))
export const ClubNotFound = Named('ClubNotFound', Message('Club not found'))
export const EventNotFound = Named('EventNotFound', Message('Event not found'))
export const UserNotFound = Named('UserNotFound', Message('User not found'))
export const RegistrationsNotAllowed = Named('RegistrationsNotAllowed', Message(REGISTRATIONS_NOT_ALLOWED))
export const EventNotAllowed = Named('EventNotAllowed', Message(EVENT_NOT_ALLOWED))
export const ClubNotAllowed = Named('ClubNotAllowed', Message(CLUB_NOT_ALLOWED))
export const PictureNotFound = Named('PictureNotFound', Message('Picture not found'))

/** A hook of a route that may respond itself. Its responses become responses of the route. */
export interface RefusingHook {
  responses: Readonly<Record<number, TSchema>>
}

/** The headers of a response that asks the client to retry later. */
export const RetryAfter = {
  'Retry-After': Type.Integer({ description: 'The number of seconds to wait before you try again.', examples: [2] }),
}

/**
 * Combines the schemas of two `{message}` responses with the same status. A field that only one of them has becomes
 * optional. Two named schemas get a name of both.
 */
export function either (one: TSchema, other: TSchema | undefined): TSchema {
  if (!other) return one
  const fields = Object.entries<TSchema>({ ...one.properties, ...other.properties })
    .map(([name, field]) => [name, name in one.properties && name in other.properties ? field : Type.Optional(field)])
  return ResponseObject({ ...Object.fromEntries(fields), message: Enum([one, other].flatMap(textsOf)) }, {
    ...one.title && other.title && { title: `${one.title}Or${other.title}` },
  })
}

/** Returns the texts of a response: the messages of `{message}`, or plain texts. */
export function textsOf (response: TSchema): string[] {
  const { enum: texts, properties } = response
  return texts ?? properties?.message?.enum ?? []
}
