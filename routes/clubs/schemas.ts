import { Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  ClubDescription, ClubImage, ClubName, EmailAddress, EventSummary, EXAMPLE_ID, FirstName, LastName, Message,
  NullableString, OpaqueId, ResponseObject, Role,
} from '../../lib/values/schemas.ts'

const fields = {
  id: OpaqueId,
  name: ClubName,
  description: ClubDescription,
  imageUrl: ClubImage,
  clubHeadId: NullableString({ description: 'The id of the club head.', examples: [EXAMPLE_ID] }),
}
const member = { id: OpaqueId, firstName: FirstName, lastName: LastName, email: EmailAddress }

export const list = {
  operationId: 'listClubs',
  summary: 'List clubs',
  description: 'Returns all clubs with their members and events, in no particular order.',
  response: {
    200: ResponseObject({
      clubs: Type.Array(ResponseObject({
        ...fields,
        members: Type.Array(ResponseObject({ ...member, role: Role })),
        events: Type.Array(EventSummary),
      }, { title: 'Club' })),
    }),
  },
}

export const create = {
  operationId: 'createClub',
  summary: 'Create a club',
  description: 'The club head becomes a member of the club and gets the role `CLUB_HEAD`. The role applies from ' +
    'their next sign-in. Returns 500 if the name is taken or the user already leads a club.',
  headers: idempotencyHeaders,
  checkedByHandler: {
    body: Type.Object({
      name: Type.String({ description: 'The name must be unique.', examples: ClubName.examples }),
      description: ClubDescription,
      clubHeadEmail: Type.String({
        description: 'The email address of the account that leads the club.', examples: EmailAddress.examples,
      }),
      imageUrl: Type.Optional(ClubImage),
    }, { title: 'NewClub' }),
  },
  response: {
    201: ResponseObject({
      club: ResponseObject({
        ...fields,
        members: Type.Array(ResponseObject(member), { description: 'The members before the club head was added.' }),
      }, { title: 'CreatedClub' }),
    }),
    400: Message('Name and description are required'),
    404: Message('Club head not found'),
    ...idempotencyErrors,
  },
}
