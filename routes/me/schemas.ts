import { type Static, Type } from '@sinclair/typebox'

import { BUSY } from '../../lib/auth/passwords.ts'
import {
  Avatar, ClubName, DateTime, EmailAddress, Enum, FirstName, IdParam, LastName, Message, NewPassword, NullableString,
  OpaqueId, ResponseObject, RetryAfter, Role, TextInput, Token, TOO_MANY_FAILURES, TOO_MANY_MAILS,
} from '../../lib/schemas.ts'
import { FRONTEND_REQUIRED } from '../../plugins/mail.ts'

export const changePassword = {
  operationId: 'changeMyPassword',
  summary: 'Change your password',
  description: 'Ends all tokens of your account, also that of this request, and returns a new one. Common passwords ' +
    'and those with your email in them are refused. An account without a password gets its first one by ' +
    '`POST /account/password/forgot`. Returns 429 after too many failures; `Retry-After` is in seconds.',
  body: Type.Object({
    currentPassword: TextInput({ examples: ['correct horse'] }),
    newPassword: NewPassword(),
  }, { title: 'PasswordChange' }),
  response: {
    200: ResponseObject({
      message: Enum(['Password changed successfully']), token: Token,
    }, { title: 'PasswordChanged' }),
    401: Message('Unauthorized', 'Current password is wrong'),
    429: { ...Message(TOO_MANY_FAILURES), headers: RetryAfter },
    503: Message(BUSY),
  },
}

export const verifyEmail = {
  operationId: 'verifyMyEmail',
  summary: 'Get a mail to prove your email',
  description: 'It has a link to `/verify-email` of the browser app, with a token in the fragment for ' +
    '`POST /account/email/verify`. A registration sends such a mail, too.',
  response: {
    202: Message('A mail is on its way'),
    401: Message('Unauthorized'),
    409: Message('Email is already verified'),
    429: { ...Message(TOO_MANY_MAILS), headers: RetryAfter },
    501: Message(FRONTEND_REQUIRED),
  },
}

export const createCalendar = {
  operationId: 'createMyCalendar',
  summary: 'Get an address for your own calendar',
  description: 'Creates the address of a calendar of your registrations, to subscribe to. Anyone who has the ' +
    'address can read it. It is shown only once; the next call creates a new address and ends the old one.',
  response: {
    201: ResponseObject({
      calendar: ResponseObject({
        path: Type.String({
          description: 'The address, below that of the service.',
          examples: ['/feeds/me/kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A.ics'],
        }),
        createdAt: DateTime,
      }, { title: 'OwnCalendar' }),
    }),
    401: Message('Unauthorized'),
  },
}

export const deleteCalendar = {
  operationId: 'deleteMyCalendar',
  summary: 'End the address of your own calendar',
  response: { 200: Message('Calendar deleted successfully'), 404: Message('Calendar not found') },
}

export const endTokens = {
  operationId: 'endMyTokens',
  summary: 'Sign out everywhere',
  description: 'Ends all tokens of your account on every device, also that of this request. The address of your ' +
    'calendar stays.',
  response: { 200: Message('Signed out everywhere'), 401: Message('Unauthorized') },
}

const Switch = (description: string) => Type.Boolean({ description, examples: [true] })

const SWITCHES = {
  registration: Switch('You have registered for an event.'),
  eventChanged: Switch('An event that you are registered for has another title, date or club.'),
  eventCancelled: Switch('An event that you are registered for is cancelled.'),
  eventReminder: Switch('An event that you are registered for begins soon.'),
  eventMessage: Switch('The organizers write to all who are registered for an event.'),
  blogDecision: Switch('Your blog is published or archived.'),
}
const NotificationSwitches = ResponseObject(SWITCHES, { title: 'Notifications' })
export type Notifications = Static<typeof NotificationSwitches>

export const listNotifications = {
  operationId: 'getMyNotifications',
  summary: 'See which mails you get',
  description: 'All of them by default. Mails about your account are not among them: you always get those. None ' +
    'of them goes to an email that is not proven.',
  response: {
    200: ResponseObject({
      notifications: NotificationSwitches,
      reminderHours: Type.Union([Type.Integer(), Type.Null()], {
        description: 'Hours before an event at which those who are registered by then are reminded; `null` if ' +
          'reminders are off.',
        examples: [24],
      }),
    }),
    401: Message('Unauthorized'),
  },
}

export const setNotifications = {
  operationId: 'setMyNotifications',
  summary: 'Choose which mails you get',
  description: 'Takes what `GET /me/notifications` returns. Those that are left out stay as they are.',
  body: Type.Object({ notifications: Type.Partial(Type.Object(SWITCHES)) }, { title: 'NotificationChanges' }),
  response: { 200: ResponseObject({ notifications: NotificationSwitches }), 401: Message('Unauthorized') },
}

export const TOO_MANY_MESSAGES = 'Too many messages, please try again later'

const NewMessage = Type.Object({
  subject: TextInput({ minLength: 3, maxLength: 200, examples: ['Chess Night: bring a board'] }),
  text: TextInput({ minLength: 10, maxLength: 10_000, examples: ['We have fewer boards than guests this time.'] }),
}, { title: 'EventMessage' })
export type EventMessage = Static<typeof NewMessage>

export const sendMessage = {
  operationId: 'sendEventMessage',
  summary: 'Write to all who are registered for an event',
  description: 'By mail; responses go to your email if it is proven. Club heads may do so for events of their own ' +
    'club, admins for any. Returns 429 after five messages within 15 minutes, by default.',
  docsOnly: { params: Type.Object({ id: IdParam({ description: 'The id of the event.' }) }) },
  body: NewMessage,
  response: {
    202: Message('The message is on its way'),
    400: Message('Event ID is required'),
    403: Message('Not allowed to view registrations for this event'),
    404: Message('Event not found'),
    429: { ...Message(TOO_MANY_MESSAGES), headers: RetryAfter },
  },
}

const Account = ResponseObject({
  id: OpaqueId,
  email: EmailAddress,
  firstName: FirstName,
  lastName: LastName,
  avatar: Avatar,
  providerId: NullableString({ description: 'Your id at the identity provider.', examples: ['248289761001'] }),
  role: Role,
  club: Type.Union([ResponseObject({ id: OpaqueId, name: ClubName }), Type.Null()]),
  emailVerifiedAt: Type.Union([DateTime, Type.Null()]),
  createdAt: DateTime,
  updatedAt: DateTime,
})

const Blog = ResponseObject({
  id: OpaqueId,
  title: Type.String({ examples: ['Ten games at once'] }),
  content: Type.String({ examples: ['What I learned from losing nine of them.'] }),
  imageUrl: NullableString({ examples: ['https://images.example.org/chess-night.png'] }),
  status: Enum(['DRAFT', 'PUBLISHED', 'ARCHIVED']),
  createdAt: DateTime,
  updatedAt: DateTime,
})

const EventSummary = ResponseObject({
  id: OpaqueId, title: Type.String({ examples: ['Chess Night'] }), date: DateTime,
})

const Registration = ResponseObject({ id: OpaqueId, registeredAt: DateTime, event: EventSummary })

const Like = ResponseObject({
  likedAt: DateTime,
  mentor: ResponseObject({ id: OpaqueId, name: Type.String({ examples: ['Grace Hopper'] }) }),
})

const Mail = ResponseObject({
  kind: Type.String({ examples: ['test'] }),
  createdAt: DateTime,
  status: Type.String({ examples: ['sent'], description: 'pending, processing, sent, failed or unknown' }),
  sentAt: Type.Union([DateTime, Type.Null()]),
})

const SentMessage = ResponseObject({
  subject: Type.String({ examples: ['Chess Night: bring a board'] }),
  text: Type.String({ examples: ['We have fewer boards than guests this time.'] }),
  sentAt: DateTime,
  event: EventSummary,
})

export const exportData = {
  operationId: 'exportMyData',
  summary: 'Get everything that the platform holds of you',
  description: 'Your account without the password hash, your blogs in every status, your registrations, the mentors ' +
    'you like, when the address of your calendar was created, when you have last signed in from each network, which ' +
    'mails were sent to you of late and which you want (null for all), what you wrote to those who registered for ' +
    'events, and when your tokens were ended.',
  response: {
    200: ResponseObject({
      account: Account,
      blogs: Type.Array(Blog),
      registrations: Type.Array(Registration),
      likes: Type.Array(Like),
      calendar: Type.Union([ResponseObject({ createdAt: DateTime }), Type.Null()]),
      networks: Type.Array(ResponseObject({
        lastSignIn: Type.String({
          description: 'The day of your last sign-in from one network.', format: 'date', examples: ['2026-01-31'],
        }),
      })),
      mails: Type.Array(Mail),
      messages: Type.Array(SentMessage),
      notifications: Type.Union([NotificationSwitches, Type.Null()]),
      tokens: Type.Union([ResponseObject({ endedAt: DateTime }), Type.Null()]),
    }, { title: 'PersonalData' }),
    401: Message('Unauthorized'),
  },
}
