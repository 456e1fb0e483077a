import { Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  ClubCard, Count, Enum, EXAMPLE_ID, IdParam, Message, NamedClub, NullableTextInput, OpaqueId, ResponseObject,
  TextInput, UrlInput,
} from '../../lib/values/schemas.ts'

const NAME = { examples: ['Grace Hopper'] }
const EXPERTISE = { examples: ['Compilers'] }
const IMAGE = { examples: ['https://images.example.org/grace.png'] }
const NETWORK = { examples: ['https://network.example.org/in/grace'] }

const fields = {
  id: OpaqueId,
  name: Type.String(NAME),
  expertise: Type.String(EXPERTISE),
  imageUrl: Type.String(IMAGE),
  networkUrl: Type.String({ description: 'A link to a professional profile, or an empty text.', ...NETWORK }),
  clubId: OpaqueId,
}
const Profile = ResponseObject({ ...fields, club: ClubCard, likeCount: Count }, { title: 'MentorProfile' })
const Mentor = ResponseObject({ ...fields, club: NamedClub }, { title: 'Mentor' })

const params = Type.Object({ id: IdParam('The id of the mentor.') })

export const list = {
  operationId: 'listMentors',
  summary: 'List mentors',
  description: 'The mentors are sorted by name. If the service cannot read them, it returns an empty list.',
  response: { 200: ResponseObject({ mentors: Type.Array(Profile) }) },
}

const LIKED = 'Mentor liked successfully'
const UNLIKED = 'Mentor unliked successfully'

export const like = {
  operationId: 'toggleMentorLike',
  summary: 'Like or unlike a mentor',
  description: 'Adds your like, or removes it if you already like the mentor. So do not repeat this request after ' +
    'an error.',
  checkedByHandler: { params: Type.Object({ mentorId: IdParam('The id of the mentor.') }) },
  response: {
    200: ResponseObject({
      message: Enum([LIKED, UNLIKED]),
      liked: Type.Boolean({ description: '`true` if you like the mentor now.' }),
      likeCount: Type.Integer({ description: 'The number of likes of the mentor.' }),
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
  summary: 'List the mentors you like',
  description: 'The mentors are sorted by name.',
  response: { 200: ResponseObject({ likedMentors: Type.Array(Profile) }), 401: Message('Authentication required') },
}

export const create = {
  operationId: 'createMentor',
  summary: 'Create a mentor',
  description: 'Returns 500 if the club does not exist.',
  headers: idempotencyHeaders,
  body: Type.Object({
    name: TextInput({ minLength: 1, ...NAME }),
    expertise: TextInput({ minLength: 2, ...EXPERTISE }),
    clubId: TextInput({ minLength: 1, description: 'The id of the mentor\'s club.', examples: [EXAMPLE_ID] }),
    imageUrl: Type.Optional(UrlInput({ description: 'Required. The response is a 400 if it is missing.', ...IMAGE })),
    networkUrl: Type.Optional(NullableTextInput(NETWORK)),
  }, { title: 'NewMentor' }),
  response: {
    201: ResponseObject({ mentor: Mentor }),
    400: Message('All fields are required'),
    ...idempotencyErrors,
  },
}

export const update = {
  operationId: 'updateMentor',
  summary: 'Update a mentor',
  description: 'Missing fields stay unchanged. Returns 500 if the mentor or the club does not exist.',
  params,
  body: Type.Partial(Type.Object({ ...create.body.properties, imageUrl: UrlInput(IMAGE) }), { title: 'MentorChanges' }),
  response: { 200: ResponseObject({ mentor: Mentor }) },
}

export const remove = {
  operationId: 'deleteMentor',
  summary: 'Delete a mentor',
  description: 'This also deletes the likes of the mentor. Returns 500 if the mentor does not exist.',
  params,
  response: { 200: Message('Mentor deleted successfully') },
}
