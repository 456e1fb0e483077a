import { Type } from '@sinclair/typebox'

import {
  Avatar, ClubName, DateTime, EmailAddress, Enum, EventSummary, FirstName, LastName, NullableDateTime, NullableString,
  OpaqueId, Offered, Office, ResponseObject, Role, Unauthorized,
} from '../../../lib/values/schemas.ts'
import { NotificationSwitches } from '../notifications/schemas.ts'

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
  newEmail: NullableString({
    description: 'An email address that waits for you to confirm it.', examples: ['ada@new.example.org'],
  }),
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
  answeredAt: Type.String({
    format: 'date-time', description: 'When you last said whether you come.', examples: DateTime.examples,
  }),
  inLineSince: NullableDateTime('Your place in line for a seat; `null` if you do not come.'),
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

const OwnClub = ResponseObject({
  id: OpaqueId,
  name: ClubName,
  state: Type.String({ examples: ['member'], description: 'requested, member or refused' }),
  office: Office,
  offered: Offered,
  offeredAt: Type.Union([DateTime, Type.Null()]),
  message: NullableString({ description: 'What you wrote to the organizers.', examples: ['I play chess.'] }),
  reason: NullableString({ description: 'Why you were refused or removed.', examples: ['The room is full.'] }),
  news: Type.Boolean({ description: 'Whether you want emails about new events of the club.' }),
  changedAt: DateTime,
  refusedAt: Type.Union([DateTime, Type.Null()], { description: 'The last refusal, until you are accepted.' }),
})

const MadeOffer = ResponseObject({
  club: ResponseObject({ id: OpaqueId, name: ClubName }),
  office: Type.String({ examples: ['deputy'], description: 'deputy or head' }),
  offeredAt: DateTime,
})

export const exportData = {
  operationId: 'exportMyData',
  summary: 'Export your personal data',
  description: 'Returns your account without the password hash, your blog posts in every status, your event ' +
    'registrations, your clubs, the offices that you offer to others, the mentors you like, the creation date of ' +
    'your calendar link, the recent emails to you, your email preferences (`null` if you never changed them), the ' +
    'messages you sent to event participants, the pictures you uploaded (see `GET /pictures/:id`), and the time your ' +
    'tokens were last revoked.',
  response: {
    200: ResponseObject({
      account: Account,
      blogs: Type.Array(Blog),
      registrations: Type.Array(Registration),
      likes: Type.Array(Like),
      clubs: Type.Array(OwnClub),
      offers: Type.Array(MadeOffer),
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
