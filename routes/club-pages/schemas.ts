import { Type } from '@sinclair/typebox'

import {
  Avatar, ClubImage, ClubName, ClubNotFound, Count, FirstName, IdParam, LastName, OpaqueId, ResponseObject,
} from '../../lib/values/schemas.ts'

const fields = {
  id: OpaqueId,
  name: ClubName,
  description: Type.String({ examples: ['Openings, endings, and what lies between.'] }),
  imageUrl: ClubImage,
  memberCount: Count,
}

const Organizer = ResponseObject({
  firstName: FirstName,
  lastName: LastName,
  avatar: Avatar,
  isHead: Type.Boolean(),
}, { title: 'Organizer' })

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
  params: Type.Object({ id: IdParam('The id of the club.') }),
  response: {
    200: ResponseObject({
      club: ResponseObject({ ...fields, organizers: Type.Array(Organizer) }, { title: 'ClubPage' }),
    }),
    404: ClubNotFound,
  },
}
