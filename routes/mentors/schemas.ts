import { Type } from '@sinclair/typebox'

import {
  ClubCard, Count, Enum, IdParam, Message, NamedClub, NullableTextInput, OpaqueId, ResponseObject, TextInput,
  UrlInput,
} from '../../lib/schemas.ts'

const NAME = { examples: ['Grace Hopper'] }
const EXPERTISE = { examples: ['Compilers'] }
const IMAGE = { examples: ['https://images.example.org/grace.png'] }
const NETWORK = { examples: ['https://network.example.org/in/grace'] }

const fields = {
  id: OpaqueId,
  name: Type.String(NAME),
  expertise: Type.String(EXPERTISE),
  imageUrl: Type.String(IMAGE),
  networkUrl: Type.String({ description: 'Their page in a professional network, or empty.', ...NETWORK }),
  clubId: OpaqueId,
}
const Profile = ResponseObject({ ...fields, club: ClubCard, likeCount: Count }, { title: 'MentorProfile' })
const Mentor = ResponseObject({ ...fields, club: NamedClub }, { title: 'Mentor' })

const Name = TextInput({ minLength: 1, ...NAME })
const Expertise = TextInput({ minLength: 2, ...EXPERTISE })
const ClubId = TextInput({ minLength: 1, description: 'The club that they belong to.', examples: OpaqueId.examples })
const NetworkUrl = NullableTextInput(NETWORK)
const params = Type.Object({ id: IdParam({ description: 'The id of the mentor.' }) })

export const list = {
  operationId: 'listMentors',
  summary: 'List the mentors',
  description: 'By name. It is also empty when the service fails to read the list.',
  response: { 200: ResponseObject({ mentors: Type.Array(Profile) }) },
}

const LIKED = 'Mentor liked successfully'
const UNLIKED = 'Mentor unliked successfully'

export const like = {
  operationId: 'toggleMentorLike',
  summary: 'Like a mentor, or no longer',
  description: 'Likes the mentor, or removes the like.',
  docsOnly: { params: Type.Object({ mentorId: IdParam({ description: 'The id of the mentor.' }) }) },
  response: {
    200: ResponseObject({
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
  summary: 'List the mentors that you like',
  description: 'By name.',
  response: { 200: ResponseObject({ likedMentors: Type.Array(Profile) }), 401: Message('Authentication required') },
}

export const create = {
  operationId: 'createMentor',
  summary: 'Add a mentor',
  description: 'Returns 500 when the club does not exist.',
  body: Type.Object({
    name: Name,
    expertise: Expertise,
    clubId: ClubId,
    imageUrl: Type.Optional(UrlInput({ description: 'Required: without it the response is a 400.', ...IMAGE })),
    networkUrl: Type.Optional(NetworkUrl),
  }, { title: 'NewMentor' }),
  response: { 201: ResponseObject({ mentor: Mentor }), 400: Message('All fields are required') },
}

export const update = {
  operationId: 'updateMentor',
  summary: 'Change a mentor',
  description: 'Fields that are left out stay as they are. Returns 500 when the mentor or the club does not exist.',
  params,
  body: Type.Object({
    name: Type.Optional(Name),
    expertise: Type.Optional(Expertise),
    imageUrl: Type.Optional(UrlInput(IMAGE)),
    clubId: Type.Optional(ClubId),
    networkUrl: Type.Optional(NetworkUrl),
  }, { title: 'MentorChanges' }),
  response: { 200: ResponseObject({ mentor: Mentor }) },
}

export const remove = {
  operationId: 'deleteMentor',
  summary: 'Delete a mentor',
  description: 'Deletes its likes, too. Returns 500 when the mentor does not exist.',
  params,
  response: { 200: Message('Mentor deleted successfully') },
}
