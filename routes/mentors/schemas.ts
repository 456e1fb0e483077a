import { Type } from '@sinclair/typebox'

import { Answer, Club, ClubName, Enum, Id, Message, NullableText, Text, Url } from '../../lib/schemas.ts'

const scalars = {
  id: Type.String(),
  name: Type.String(),
  expertise: Type.String(),
  imageUrl: Type.String(),
  networkUrl: Type.String(),
  clubId: Type.String(),
}
const Profile = Answer({ ...scalars, club: Club, likeCount: Type.Integer() })
const Mentor = Answer({ ...scalars, club: ClubName })

const Name = Text({ minLength: 1 })
const Expertise = Text({ minLength: 2 })
const ClubId = Text({ minLength: 1 })

export const list = {
  response: { 200: Answer({ mentors: Type.Array(Profile) }) },
}

export const like = {
  response: {
    200: Answer({
      message: Enum('Mentor liked successfully', 'Mentor unliked successfully'),
      liked: Type.Boolean(),
      likeCount: Type.Integer(),
    }),
    401: Message('Authentication required'),
    404: Message('Mentor not found'),
  },
}

export const listLiked = {
  response: { 200: Answer({ likedMentors: Type.Array(Profile) }), 401: Message('Authentication required') },
}

export const create = {
  body: Type.Object({
    name: Name,
    expertise: Expertise,
    clubId: ClubId,
    imageUrl: Type.Optional(Url()),
    networkUrl: Type.Optional(NullableText()),
  }),
  response: { 201: Answer({ mentor: Mentor }), 400: Message('All fields are required') },
}

export const update = {
  params: Type.Object({ id: Id() }),
  body: Type.Object({
    name: Type.Optional(Name),
    expertise: Type.Optional(Expertise),
    imageUrl: Type.Optional(Url()),
    clubId: Type.Optional(ClubId),
    networkUrl: Type.Optional(NullableText()),
  }),
  response: { 200: Answer({ mentor: Mentor }) },
}

export const remove = {
  params: Type.Object({ id: Id() }),
  response: { 200: Message('Mentor deleted successfully') },
}
