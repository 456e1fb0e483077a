import { Type } from '@sinclair/typebox'

import {
  Answer, ClubImage, ClubName, DateTime, EmailAddress, FirstName, LastName, Message, Nullable, OpaqueId, Role,
} from '../../lib/schemas.ts'

const DESCRIPTION = { examples: ['Openings, endings, and what lies between.'] }

const scalars = {
  id: OpaqueId,
  name: ClubName,
  description: Type.String(DESCRIPTION),
  imageUrl: ClubImage,
  clubHeadId: Nullable({ description: 'The user who leads the club.', examples: OpaqueId.examples }),
}
const member = { id: OpaqueId, firstName: FirstName, lastName: LastName, email: EmailAddress }

export const list = {
  operationId: 'listClubs',
  summary: 'List the clubs',
  description: 'With their members and events, in no particular order.',
  response: {
    200: Answer({
      clubs: Type.Array(Answer({
        ...scalars,
        members: Type.Array(Answer({ ...member, role: Role })),
        events: Type.Array(Answer({ id: OpaqueId, title: Type.String({ examples: ['Chess Night'] }), date: DateTime })),
      }, { title: 'Club' })),
    }),
  },
}

export const create = {
  operationId: 'createClub',
  summary: 'Add a club',
  description: 'Its head becomes a member and, with their next sign-in, a `CLUB_HEAD`. A name that is taken, or a ' +
    'head who leads another club, is the 500.',
  unchecked: {
    body: Type.Object({
      name: Type.String({ description: 'No other club has it.', examples: ClubName.examples }),
      description: Type.String(DESCRIPTION),
      clubHeadEmail: Type.String({
        description: 'The email of the account that leads the club.', examples: EmailAddress.examples,
      }),
      imageUrl: Type.Optional(Type.String({ examples: ClubImage.examples })),
    }, { title: 'NewClub' }),
  },
  response: {
    201: Answer({
      club: Answer({
        ...scalars,
        members: Type.Array(Answer(member), { description: 'As they were before the head became one.' }),
      }, { title: 'CreatedClub' }),
    }),
    400: Message('Name and description are required'),
    404: Message('Club head not found'),
  },
}
