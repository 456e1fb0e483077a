import { type Static, Type } from '@sinclair/typebox'

import { LAST_ADMIN } from '../../lib/accounts/erasure.ts'
import { Busy } from '../../lib/auth/passwords.ts'
import {
  TOO_MANY_EMAILS, TOO_MANY_FAILURES, TOO_MANY_PASSWORDS, TooManyEmails, TooManyFailures,
} from '../../lib/auth/rate-limits.ts'
import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  Avatar, ClubName, CurrentUser, DateTime, EmailAddress, EmailInput, Enum, EventNotFound, EventSummary,
  EXAMPLE_PASSWORD, FirstName, IdParam, LastName, Message, NameInput, NewPassword, NullableString, NullableTextInput,
  OpaqueId, PictureNotFound, Reach, RegistrationsNotAllowed, ResponseObject, RetryAfter, Role, TextInput, Token,
  Unauthorized,
} from '../../lib/schemas.ts'
import { PUBLIC_URL_REQUIRED } from '../../lib/pictures/refusals.ts'

const CurrentPassword = () => TextInput({ examples: [EXAMPLE_PASSWORD] })

export const changePassword = {
  operationId: 'changeMyPassword',
  summary: 'Change your password',
  description: 'Revokes all your tokens, including the token of this request, and returns a new token. Unlike ' +
    'a sign-up, this refuses common passwords and passwords that contain your email address. If your account has no ' +
    'password yet, use `POST /account/password/forgot` instead. Too many wrong or refused passwords get a 429.',
  body: Type.Object({
    currentPassword: CurrentPassword(),
    newPassword: NewPassword(),
  }, { title: 'PasswordChange' }),
  response: {
    200: ResponseObject({
      message: Enum(['Password changed successfully']), token: Token,
    }, { title: 'PasswordChanged' }),
    401: Message('Unauthorized', 'Current password is wrong'),
    429: { ...Message(TOO_MANY_FAILURES, TOO_MANY_PASSWORDS), headers: RetryAfter },
    503: Busy,
  },
}

export const verifyEmail = {
  operationId: 'verifyMyEmail',
  summary: 'Request a verification email',
  description: 'Sends an email with a link to `/verify-email` of the browser app. The fragment of the link contains ' +
    'a token for `POST /account/email/verify`. A sign-up also sends this email.',
  response: {
    202: Message('An email is on its way'),
    401: Unauthorized,
    409: Message('Email is already verified'),
    429: TooManyEmails,
  },
}

export const changeProfile = {
  operationId: 'changeMyProfile',
  summary: 'Change your name or your picture',
  description: 'Missing fields stay unchanged. To change your picture, upload it with `POST /me/pictures` first.',
  body: Type.Object({
    firstName: Type.Optional(NameInput({ examples: FirstName.examples })),
    lastName: Type.Optional(NameInput({ examples: LastName.examples })),
    avatar: Type.Optional(NullableTextInput({
      description: 'The id of a picture that you uploaded, not its URL. `null` removes your picture.', examples: [null],
    })),
  }, { title: 'ProfileChanges' }),
  response: {
    200: ResponseObject({ user: CurrentUser }),
    401: Unauthorized,
    404: PictureNotFound,
    501: Message(PUBLIC_URL_REQUIRED),
  },
}

export const OWN_EMAIL = 'This is your email address already'
export const PROVIDER_EMAIL = 'Your email address comes from your identity provider'

export const changeEmail = {
  operationId: 'changeMyEmail',
  summary: 'Change your email address',
  description: 'Sends a link to the new address, and a notice to the old address if it is verified. Your address ' +
    'changes when `POST /account/email/verify` gets the token of that link. A new password or signing out everywhere ' +
    'cancels the change. The response does not tell whether the new address has an account. If you sign in with the ' +
    'identity provider, you cannot change your address here.',
  body: Type.Object({
    email: EmailInput('ada.lovelace@example.org'), currentPassword: CurrentPassword(),
  }, { title: 'EmailChange' }),
  response: {
    202: Message('An email is on its way'),
    401: Message('Unauthorized', 'Current password is wrong'),
    409: Message(PROVIDER_EMAIL, OWN_EMAIL),
    429: { ...Message(TOO_MANY_FAILURES, TOO_MANY_EMAILS), headers: RetryAfter },
    503: Busy,
  },
}

export const SIGN_IN_AGAIN = 'Please sign in with your identity provider again, and retry within five minutes'

export const deleteAccount = {
  operationId: 'deleteMyAccount',
  summary: 'Delete your account',
  description: 'Permanently deletes your account, registrations, likes, drafts and pictures, and revokes all ' +
    'your tokens. Your published posts stay, but without your name. Pictures that a published post or a page shows ' +
    'also stay, see `uses` in `GET /me/pictures`: delete them first if they should not. If your account has no ' +
    'password, sign in with the identity provider first, at most five minutes before.',
  body: Type.Object({
    currentPassword: NullableTextInput({
      description: '`null` if your account has no password.', examples: [EXAMPLE_PASSWORD],
    }),
  }, { title: 'AccountDeletion' }),
  response: {
    200: ResponseObject({
      message: Enum(['Account deleted successfully']),
      kept: ResponseObject({
        publishedBlogs: Type.Integer({ description: 'Posts that stay without your name.', examples: [2] }),
        pictures: Type.Integer({ description: 'Pictures that stay, because they are shown.', examples: [1] }),
      }),
    }, { title: 'AccountDeleted' }),
    401: Message('Unauthorized', 'Current password is wrong', SIGN_IN_AGAIN),
    409: Message(LAST_ADMIN),
    429: TooManyFailures,
    503: Busy,
  },
}

export const createCalendar = {
  operationId: 'createMyCalendar',
  summary: 'Create your calendar link',
  description: 'Returns a link to a calendar of the events you registered for. Anyone with the link can read the ' +
    'calendar. You see the link only once. A second call creates a new link and revokes the old link.',
  response: {
    201: ResponseObject({
      calendar: ResponseObject({
        path: Type.String({
          description: 'The path of the link, relative to the URL of the service.',
          examples: ['/feeds/me/kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A.ics'],
        }),
        createdAt: DateTime,
      }, { title: 'OwnCalendar' }),
    }),
    401: Unauthorized,
  },
}

export const deleteCalendar = {
  operationId: 'deleteMyCalendar',
  summary: 'Revoke your calendar link',
  description: 'The link stops working, so calendar apps get no more updates from it.',
  response: { 200: Message('Calendar deleted successfully'), 404: Message('Calendar not found') },
}

export const revokeTokens = {
  operationId: 'endMyTokens',
  summary: 'Sign out everywhere',
  description: 'Revokes all your tokens on every device, including the token of this request. Your calendar link ' +
    'keeps working.',
  response: { 200: Message('Signed out everywhere'), 401: Unauthorized },
}

const Switch = (description: string) => Type.Boolean({ description, examples: [true] })

const SWITCHES = {
  registration: Switch('Sent after you register for an event, when you get a seat, and when you are removed.'),
  eventChanged: Switch('Sent when an event you registered for changes its title, date, end, place or club.'),
  eventCancelled: Switch('Sent when an event you registered for is cancelled.'),
  eventReminder: Switch('Sent shortly before an event you registered for.'),
  eventMessage: Switch('Sent when the organizers write to everyone registered for an event.'),
  blogDecision: Switch('Sent when your blog post is published or archived.'),
}
/** The names of the switches. */
export const NOTIFICATIONS = Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]

const NotificationSwitches = ResponseObject(SWITCHES, { title: 'Notifications' })
export type Notifications = Static<typeof NotificationSwitches>

export const readAccount = {
  operationId: 'getMyAccount',
  summary: 'Get the state of your account',
  description: 'Tells what your settings page needs: how you sign in, and what you have set up.',
  response: {
    200: ResponseObject({
      account: ResponseObject({
        isEmailVerified: Type.Boolean({ description: 'Notifications need a verified email address.' }),
        hasPassword: Type.Boolean({ description: 'If not, you sign in with the identity provider.' }),
        isLinked: Type.Boolean({ description: 'Whether you can sign in with the identity provider.' }),
        calendar: Type.Union([ResponseObject({ createdAt: DateTime }), Type.Null()], {
          description: 'Your calendar link from `POST /me/calendar`, without its secret.',
        }),
      }, { title: 'AccountState' }),
    }),
    401: Unauthorized,
  },
}

export const listNotifications = {
  operationId: 'getMyNotifications',
  summary: 'Get your email preferences',
  description: 'All notifications are on by default. They are sent only to a verified email address. Emails about ' +
    'your account cannot be turned off.',
  response: {
    200: ResponseObject({
      notifications: NotificationSwitches,
      reminderHours: Type.Union([Type.Integer(), Type.Null()], {
        description: 'How many hours before an event the reminder is sent. `null` if reminders are off.',
        examples: [24],
      }),
    }),
    401: Unauthorized,
  },
}

export const setNotifications = {
  operationId: 'setMyNotifications',
  summary: 'Update your email preferences',
  description: 'You can change the object from `GET /me/notifications` and send it back. Missing fields stay ' +
    'unchanged.',
  body: Type.Object({ notifications: Type.Partial(Type.Object(SWITCHES)) }, { title: 'NotificationChanges' }),
  response: { 200: ResponseObject({ notifications: NotificationSwitches }), 401: Unauthorized },
}

export const TOO_MANY_MESSAGES = 'Too many messages, please try again later'

const NewMessage = Type.Object({
  subject: TextInput({ format: 'visible', minLength: 3, maxLength: 200, examples: ['Chess Night: bring a board'] }),
  text: TextInput({
    format: 'visible', minLength: 10, maxLength: 10_000, examples: ['We have fewer boards than guests this time.'],
  }),
}, { title: 'EventMessage' })
export type EventMessage = Static<typeof NewMessage>

export const sendMessage = {
  operationId: 'sendEventMessage',
  summary: 'Send an email to everyone registered for an event',
  description: 'Replies go to your email address if it is verified. Club heads may write about events of their own ' +
    'club. Admins may write about any event. By default, the sixth message within 15 minutes gets a 429.',
  checkedByHandler: { params: Type.Object({ id: IdParam('The id of the event.') }) },
  headers: idempotencyHeaders,
  body: NewMessage,
  response: {
    202: ResponseObject({
      message: Enum(['The message is on its way']),
      reach: Reach,
    }),
    400: Message('Event ID is required'),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
    ...idempotencyErrors,
    429: { ...Message(TOO_MANY_MESSAGES), headers: RetryAfter },
  },
}

const Account = ResponseObject({
  id: OpaqueId,
  email: EmailAddress,
  firstName: FirstName,
  lastName: LastName,
  avatar: Avatar,
  providerId: NullableString({
    description: 'Your subject (`sub`) at the identity provider.', examples: ['248289761001'],
  }),
  role: Role,
  club: Type.Union([ResponseObject({ id: OpaqueId, name: ClubName }), Type.Null()]),
  emailVerifiedAt: Type.Union([DateTime, Type.Null()]),
  createdAt: DateTime,
  updatedAt: DateTime,
})

const Blog = ResponseObject({
  id: OpaqueId,
  title: Type.String({ examples: ['Ten games at once'] }),
  content: Type.String({ examples: ['I lost nine of them and learned a lot.'] }),
  imageUrl: NullableString({ examples: ['https://images.example.org/chess-night.png'] }),
  status: Enum(['DRAFT', 'PUBLISHED', 'ARCHIVED']),
  createdAt: DateTime,
  publishedAt: Type.Union([DateTime, Type.Null()]),
  updatedAt: DateTime,
})

const Registration = ResponseObject({
  id: OpaqueId,
  registeredAt: DateTime,
  coming: Type.Boolean({ description: 'Whether you come to the event.', examples: [true] }),
  comingSince: NullableString({
    format: 'date-time',
    description: 'When you said that you come, if that was after the registration or seats were limited.',
    examples: DateTime.examples,
  }),
  event: EventSummary,
})

const Like = ResponseObject({
  likedAt: DateTime,
  mentor: ResponseObject({ id: OpaqueId, name: Type.String({ examples: ['Grace Hopper'] }) }),
})

const Email = ResponseObject({
  template: Type.String({ examples: ['test'] }),
  createdAt: DateTime,
  status: Type.String({ examples: ['sent'], description: 'pending, sent or failed' }),
  sentAt: Type.Union([DateTime, Type.Null()]),
})

const SentMessage = ResponseObject({
  subject: Type.String({ examples: ['Chess Night: bring a board'] }),
  text: Type.String({ examples: ['We have fewer boards than guests this time.'] }),
  sentAt: DateTime,
  event: Type.Union([EventSummary, Type.Null()], { description: '`null` if the event was deleted.' }),
})

const OwnPicture = ResponseObject({
  id: OpaqueId,
  width: Type.Integer({ examples: [2000] }),
  height: Type.Integer({ examples: [1500] }),
  createdAt: DateTime,
})

export const exportData = {
  operationId: 'exportMyData',
  summary: 'Export your personal data',
  description: 'Returns your account without the password hash, your blog posts in every status, your event ' +
    'registrations, the mentors you like, the creation date of your calendar link, the recent emails to you, your ' +
    'email preferences (`null` if you never changed them), the messages you sent to event participants, the pictures ' +
    'you uploaded (see `GET /pictures/:id`), and the time your tokens were last revoked.',
  response: {
    200: ResponseObject({
      account: Account,
      blogs: Type.Array(Blog),
      registrations: Type.Array(Registration),
      likes: Type.Array(Like),
      calendar: Type.Union([ResponseObject({ createdAt: DateTime }), Type.Null()]),
      emails: Type.Array(Email),
      messages: Type.Array(SentMessage),
      pictures: Type.Array(OwnPicture),
      notifications: Type.Union([NotificationSwitches, Type.Null()]),
      tokens: Type.Union([ResponseObject({ revokedAt: DateTime }), Type.Null()]),
    }, { title: 'PersonalData' }),
    401: Unauthorized,
  },
}
