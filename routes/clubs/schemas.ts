import { Type } from '@sinclair/typebox'

import { Answer, DateTime, Message, Nullable, Role } from '../../lib/schemas.ts'

const scalars = {
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  imageUrl: Nullable,
  clubHeadId: Nullable,
}
const member = { id: Type.String(), firstName: Type.String(), lastName: Type.String(), email: Type.String() }

export const list = {
  response: {
    200: Answer({
      clubs: Type.Array(Answer({
        ...scalars,
        members: Type.Array(Answer({ ...member, role: Role })),
        events: Type.Array(Answer({ id: Type.String(), title: Type.String(), date: DateTime })),
      })),
    }),
  },
}

export const create = {
  response: {
    201: Answer({ club: Answer({ ...scalars, members: Type.Array(Answer(member)) }) }),
    400: Message('Name and description are required'),
    404: Message('Club head not found'),
  },
}
