import { Type } from '@sinclair/typebox'

import { MAX_CLUBS } from '../../../lib/clubs/members.ts'
import {
  ClubImage, ClubName, ClubNotFound, DateTime, Enum, IdParam, Message, NullableString, Offered, OfferedUntil, Office,
  OFFICES, OpaqueId, ResponseObject, Token, Unauthorized,
} from '../../../lib/values/schemas.ts'

/** Error messages if a person cannot join. */
export const CLOSED = 'This club takes no new members'
export const REFUSED = 'You can ask again a week after a refusal'
export const TOO_MANY = `You can be in at most ${MAX_CLUBS} clubs`
/** Error messages for an answer to an offer. */
export const NO_OFFER = 'There is no offer'
export const OFFER_ENDED = 'This offer is no longer valid'
export const ELSEWHERE = 'You organize a different club'
export const NOT_VERIFIED = 'Verify your email address first'

const OwnMembership = ResponseObject({
  clubId: OpaqueId,
  name: ClubName,
  imageUrl: ClubImage,
  state: Enum(['requested', 'member', 'refused'], {
    description: '`requested`: an organizer has not decided yet. `refused`: you were refused or removed.',
    examples: ['member'],
  }),
  office: Office,
  offered: Offered,
  offeredUntil: OfferedUntil,
  since: DateTime,
  reason: NullableString({ description: 'Why you were refused or removed.', examples: ['The room is full.'] }),
  news: Type.Boolean({ description: 'Whether you want emails about new events of this club.' }),
  isListed: Type.Boolean({ description: 'Whether `GET /clubs` shows your name and email address in this club.' }),
}, { title: 'OwnMembership' })

const params = Type.Object({ clubId: IdParam('The id of the club.') })

export const list = {
  operationId: 'listMyClubs',
  summary: 'List your clubs',
  description: 'Returns the clubs that you are a member of, that you have asked, and that have refused you, by name. ' +
    '`since` is when the state began. Only you, the organizers of a club and admins see your membership.',
  response: { 200: ResponseObject({ clubs: Type.Array(OwnMembership) }), 401: Unauthorized },
}

export const join = {
  operationId: 'joinClub',
  summary: 'Join a club, or ask to',
  description: 'You become a member of an open club at once. In other clubs, and after a refusal, an organizer ' +
    'decides. If you are a member, this only changes `news`. Joining a club gives no right to change it, and does ' +
    'not change your club in `GET /auth/me`. Its organizers and admins see your name and your email address.',
  params,
  body: Type.Object({
    message: Type.Optional(Type.String({
      format: 'visible', maxLength: 1000, description: 'For the organizers who decide.', examples: ['I play chess.'],
    })),
    news: Type.Optional(Type.Boolean({ description: 'Whether you want emails about new events. The default is yes.' })),
  }, { title: 'ClubJoining' }),
  response: {
    200: ResponseObject({ club: OwnMembership }),
    401: Unauthorized,
    404: ClubNotFound,
    409: Message(CLOSED, REFUSED, TOO_MANY),
  },
}

export const leave = {
  operationId: 'leaveClub',
  summary: 'Leave a club',
  description: 'Also withdraws a request, and ends an office. A refusal stays.',
  params,
  response: {
    200: Message('You have left the club'), 401: Unauthorized, 404: Message('You are not in this club'),
  },
}

export const answerOffer = {
  operationId: 'answerOffer',
  summary: 'Accept or decline an office',
  description: 'If you accept, you organize the club, and your name, picture and email address become public. If you ' +
    'become the head, the former head becomes a deputy. The token in the response has the new role, and expires with ' +
    'the token of the request. Where the service sends emails, only users with a verified email address can accept.',
  params,
  body: Type.Object({
    accept: Type.Boolean({ examples: [true] }),
    office: Type.Optional(Enum(OFFICES, {
      description: 'The office that you accept. The response is a 409 if a different office is offered to you now.',
      examples: ['deputy'],
    })),
  }, { title: 'OfferAnswer' }),
  response: {
    200: ResponseObject({ club: OwnMembership, token: Token }),
    401: Unauthorized,
    404: Message(NO_OFFER),
    409: Message(OFFER_ENDED, ELSEWHERE, NOT_VERIFIED),
  },
}
