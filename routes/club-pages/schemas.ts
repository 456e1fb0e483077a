import { Type } from '@sinclair/typebox'

import { JOINING } from '../../lib/clubs/members.ts'
import {
  Avatar, ClubImage, ClubName, ClubNotFound, Count, Enum, FirstName, IdParam, LastName, Message, NameInput, OpaqueId,
  ResponseObject, Unauthorized,
} from '../../lib/values/schemas.ts'

/** Error message for a user who neither organizes the club nor is an admin. */
export const CLUB_NOT_ALLOWED = 'Not allowed to manage this club'
/** Error messages of a new name. */
export const NOT_RENAMED = 'Only admins may rename a club'
export const NAME_TAKEN = 'A club has this name already'

const DESCRIPTION = { examples: ['Openings, endings, and what lies between.'] }

const Joining = Enum(JOINING, {
  title: 'Joining',
  description: '`open`: everybody can join. `request`: who wants to join must ask. `closed`: nobody can join.',
  examples: ['request'],
})

const fields = {
  id: OpaqueId,
  name: ClubName,
  description: Type.String(DESCRIPTION),
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
    'unchanged, and `null` removes the picture. Who may do this is read from the database, not from the token.',
  params,
  body: Type.Object({
    name: Type.Optional(NameInput({ examples: ClubName.examples })),
    description: Type.Optional(Type.String({ format: 'visible', maxLength: 10_000, ...DESCRIPTION })),
    imageUrl: Type.Optional(Type.Unsafe<string | null>({
      type: ['string', 'null'], format: 'url', examples: ClubImage.examples,
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
