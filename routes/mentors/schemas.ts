import { Type } from '@sinclair/typebox'

import {
  Answer, ClubCard, Count, Enum, Id, Message, NamedClub, NullableText, OpaqueId, Text, Url,
} from '../../lib/schemas.ts'

const NAME = { examples: ['Grace Hopper'] }
const EXPERTISE = { examples: ['Compilers'] }
const IMAGE = { examples: ['https://images.example.org/grace.png'] }
const NETWORK = { examples: ['https://network.example.org/in/grace'] }

const scalars = {
  id: OpaqueId,
  name: Type.String(NAME),
  expertise: Type.String(EXPERTISE),
  imageUrl: Type.String(IMAGE),
  networkUrl: Type.String({ description: 'Their page in a professional network, or empty.', ...NETWORK }),
  clubId: OpaqueId,
}
const Profile = Answer({ ...scalars, club: ClubCard, likeCount: Count }, { title: 'MentorProfile' })
const Mentor = Answer({ ...scalars, club: NamedClub }, { title: 'Mentor' })

const Name = Text({ minLength: 1, ...NAME })
const Expertise = Text({ minLength: 2, ...EXPERTISE })
const ClubId = Text({ minLength: 1, description: 'The club that they belong to.', examples: OpaqueId.examples })
const NetworkUrl = NullableText(NETWORK)
const params = Type.Object({ id: Id({ description: 'The id of the mentor.' }) })

export const list = {
  operationId: 'listMentors',
  summary: 'List the mentors',
  description: 'By name. An empty list may also be a failure of the service.',
  response: { 200: Answer({ mentors: Type.Array(Profile) }) },
}

const LIKED = 'Mentor liked successfully'
const UNLIKED = 'Mentor unliked successfully'

export const like = {
  operationId: 'toggleMentorLike',
  summary: 'Like a mentor, or no longer',
  description: 'Every other time it takes the like back.',
  unchecked: { params: Type.Object({ mentorId: Id({ description: 'The id of the mentor.' }) }) },
  response: {
    200: Answer({
      message: Enum([LIKED, UNLIKED]),
      liked: Type.Boolean({ description: 'Whether you like the mentor now.' }),
      likeCount: Type.Integer({ description: 'How many people do.' }),
    }, {
      title: 'MentorLike',
      examples: [{ message: LIKED, liked: true, likeCount: 12 }, { message: UNLIKED, liked: false, likeCount: 11 }],
    }),
    401: Message('Authentication required'),
    404: Message('Mentor not found'),
  },
}

export const listLiked = {
  operationId: 'listLikedMentors',
  summary: 'List the mentors whom you like',
  description: 'In no particular order.',
  response: { 200: Answer({ likedMentors: Type.Array(Profile) }), 401: Message('Authentication required') },
}

export const create = {
  operationId: 'createMentor',
  summary: 'Add a mentor',
  description: 'An unknown club is the 500.',
  body: Type.Object({
    name: Name,
    expertise: Expertise,
    clubId: ClubId,
    imageUrl: Type.Optional(Url({ description: 'Required all the same: without it the answer is a 400.', ...IMAGE })),
    networkUrl: Type.Optional(NetworkUrl),
  }, { title: 'NewMentor' }),
  response: { 201: Answer({ mentor: Mentor }), 400: Message('All fields are required') },
}

export const update = {
  operationId: 'updateMentor',
  summary: 'Change a mentor',
  description: 'What is left out stays as it is. An unknown mentor or club is the 500.',
  params,
  body: Type.Object({
    name: Type.Optional(Name),
    expertise: Type.Optional(Expertise),
    imageUrl: Type.Optional(Url(IMAGE)),
    clubId: Type.Optional(ClubId),
    networkUrl: Type.Optional(NetworkUrl),
  }, { title: 'MentorChanges' }),
  response: { 200: Answer({ mentor: Mentor }) },
}

export const remove = {
  operationId: 'deleteMentor',
  summary: 'Delete a mentor',
  description: 'With all likes. An unknown mentor is the 500.',
  params,
  response: { 200: Message('Mentor deleted successfully') },
}
