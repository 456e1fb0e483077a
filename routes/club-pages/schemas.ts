import { Type } from '@sinclair/typebox'

import { JOINING, OFFER_DAYS } from '../../lib/clubs/members.ts'
import {
  Avatar, CLUB_NOT_ALLOWED, ClubDescription, ClubImage, ClubName, ClubNotAllowed, ClubNotFound, Count, DateTime,
  EmailAddress, Enum, FirstName, FullName, IdParam, LastName, Message, NameInput, NullableString, Offered,
  OfferedUntil, Office, OpaqueId, ResponseObject, Unauthorized,
} from '../../lib/values/schemas.ts'

/** Error messages of a new name. */
export const NOT_RENAMED = 'Only admins may rename a club'
export const NAME_TAKEN = 'A club has this name already'
/** Error message if a deputy decides about offices. */
export const NOT_LEADING = 'Only the head of the club and admins may do this'
export const ORGANIZES_ELSEWHERE = 'This person organizes a different club'

/** Maximum number of requests in a response. */
export const MAX_LISTED = 200

const Joining = Enum(JOINING, {
  title: 'Joining',
  description: '`open`: everybody can join. `request`: people ask, and organizers decide. `closed`: nobody can join.',
  examples: ['request'],
})

const fields = {
  id: OpaqueId,
  name: ClubName,
  description: ClubDescription,
  imageUrl: ClubImage,
  joining: Joining,
  memberCount: Count,
}

const Organizer = ResponseObject({
  firstName: FirstName,
  lastName: LastName,
  avatar: Avatar,
  isHead: Type.Boolean(),
}, { title: 'Organizer' })

const ClubPage = ResponseObject({ ...fields, organizers: Type.Array(Organizer) }, { title: 'ClubPage' })

const params = Type.Object({ id: IdParam('The id of the club.') })

export const list = {
  operationId: 'listClubPages',
  summary: 'List club pages',
  description: 'Returns all clubs by name.',
  response: { 200: ResponseObject({ clubs: Type.Array(ResponseObject(fields, { title: 'ClubSummary' })) }) },
}

export const get = {
  operationId: 'getClubPage',
  summary: 'Get a club with its organizers',
  description: 'Its organizers are club heads and admins. The head of the club comes first.',
  params,
  response: { 200: ResponseObject({ club: ClubPage }), 404: ClubNotFound },
}

export const update = {
  operationId: 'updateClubPage',
  summary: 'Change the page of a club',
  description: 'Organizers may change their own club. Admins may change and rename any club. Missing fields stay ' +
    'unchanged, and `null` removes the picture. The database decides whether you organize the club, not your token.',
  params,
  body: Type.Object({
    name: Type.Optional(NameInput({ examples: ['Chess and Go'] })),
    description: Type.Optional(Type.String({ format: 'visible', maxLength: 10_000, ...ClubDescription })),
    // Each event and mentor of the club repeats it in lists. With a URL of 250 KB, half of the requests of others took
    // 646 ms with 256 MB of memory.
    imageUrl: Type.Optional(Type.Unsafe<string | null>({
      type: ['string', 'null'], format: 'url', maxLength: 2000, examples: ClubImage.examples,
    })),
    joining: Type.Optional(Joining),
  }, { title: 'ClubPageChanges' }),
  response: {
    200: ResponseObject({ club: ClubPage }),
    401: Unauthorized,
    403: Message(CLUB_NOT_ALLOWED, NOT_RENAMED),
    404: ClubNotFound,
    409: Message(NAME_TAKEN),
  },
}

const ClubRequest = ResponseObject({
  userId: OpaqueId,
  name: FullName,
  email: EmailAddress,
  isEmailVerified: Type.Boolean(),
  message: NullableString({ examples: ['I play chess.'] }),
  askedAt: DateTime,
}, { title: 'ClubRequest' })

const ClubMember = ResponseObject({
  userId: OpaqueId,
  name: FullName,
  email: EmailAddress,
  isEmailVerified: Type.Boolean({ description: 'Whether the person can read the emails to this address.' }),
  office: Office,
  offered: Offered,
  offeredUntil: OfferedUntil,
  since: DateTime,
}, { title: 'ClubMember' })

export const listMembers = {
  operationId: 'listClubMembers',
  summary: 'List the members of a club, and the requests to join',
  description: `For organizers and admins. Returns the ${MAX_LISTED} oldest requests, and all members by name, ` +
    'organizers first. `leads` tells whether you may decide about offices.',
  params,
  response: {
    200: ResponseObject({
      club: ResponseObject({ id: OpaqueId, name: ClubName, joining: Joining }, { title: 'ManagedClub' }),
      leads: Type.Boolean(),
      requestCount: Count,
      requests: Type.Array(ClubRequest),
      members: Type.Array(ClubMember),
    }),
    401: Unauthorized,
    403: ClubNotAllowed,
    404: ClubNotFound,
  },
}

export const changeMember = {
  operationId: 'changeClubMember',
  summary: 'Decide about a request, a membership or an office',
  description: 'The body has either `state` or `office`. `member` accepts a request. `refused` refuses it or removes ' +
    'a member, who can ask again after a week. `deputy` and `head` offer an office, which the member accepts with ' +
    `\`PUT /me/clubs/:clubId/office\` within ${OFFER_DAYS} days. ` +
    '`office: null` withdraws an offer or ends an office. Only the ' +
    'head, deputies of a club without a head, and admins may offer offices, and remove organizers and people with an ' +
    'offer. Deputies may give up their own office. The same decision again changes nothing.',
  params: Type.Object({ id: IdParam('The id of the club.'), userId: IdParam('The id of the person.') }),
  body: Type.Object({
    state: Type.Optional(Enum(['member', 'refused'], { examples: ['member'] })),
    reason: Type.Optional(Type.String({
      format: 'visible', maxLength: 1000, description: 'For the person who is refused or removed.',
    })),
    office: Type.Optional(Office),
  }, { title: 'MemberChange', examples: [{ state: 'member' }] }),
  response: {
    200: ResponseObject({
      member: ResponseObject({
        userId: OpaqueId,
        state: Enum(['member', 'refused']),
        office: Office,
        offered: Offered,
        offeredUntil: OfferedUntil,
      }, { title: 'ChangedMember' }),
    }),
    401: Unauthorized,
    403: Message(CLUB_NOT_ALLOWED, NOT_LEADING),
    404: Message('Club not found', 'Member not found'),
    409: Message(ORGANIZES_ELSEWHERE),
  },
}
