import { type Static, Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../../lib/database/idempotency.ts'
import {
  NOT_A_PICTURE, OTHER_TYPE, PICTURE_TYPES, PUBLIC_URL_REQUIRED, TOO_MANY_UPLOADS, tooLarge, tooManyPictures,
} from '../../../lib/pictures/refusals.ts'
import {
  DateTime, ENCODED, Enum, IdParam, Message, MessageSuchAs, OpaqueId, PictureNotFound, ResponseObject, RetryAfter,
  Unauthorized,
} from '../../../lib/values/schemas.ts'

const fields = {
  id: OpaqueId,
  url: Type.String({ examples: ['https://api.example.org/pictures/0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'] }),
  width: Type.Integer({ description: 'In pixels.', examples: [2000] }),
  height: Type.Integer({ description: 'In pixels.', examples: [1500] }),
  createdAt: DateTime,
}
const Picture = ResponseObject(fields, { title: 'Picture' })

const Use = ResponseObject({
  kind: Enum(['avatar', 'blog', 'club', 'event', 'mentor', 'testimonial']),
  id: OpaqueId,
  name: Type.String({ examples: ['Chess Night'] }),
}, { title: 'PictureUse' })
export type PictureUse = Static<typeof Use>

/** Error message of a deletion without `force`. */
export const IN_USE = 'This picture is in use'

export const upload = {
  operationId: 'uploadPicture',
  summary: 'Upload a picture',
  description: 'The body is the file itself. The service turns the picture upright, scales it to at most 2000 pixels ' +
    'and removes all metadata, for example the place where a photo was taken. Use the `url` of the response as ' +
    '`imageUrl`, or pass the `id` as `avatar` to `PUT /me/profile`. The service deletes pictures that are unused for ' +
    'a day.',
  headers: idempotencyHeaders,
  checkedByHandler: {
    // The format of OpenAPI 3.0, because generators of clients know no other.
    body: {
      content: Object.fromEntries(PICTURE_TYPES.map(type => [type, { schema: { type: 'string', format: 'binary' } }])),
    },
  },
  response: {
    201: ResponseObject({ picture: Picture }),
    400: Message(NOT_A_PICTURE),
    401: Unauthorized,
    409: MessageSuchAs(tooManyPictures(100, 100)),
    ...idempotencyErrors,
    413: MessageSuchAs(tooLarge(10_000_000)),
    415: Message(OTHER_TYPE, ENCODED),
    503: { ...Message(TOO_MANY_UPLOADS), headers: RetryAfter },
  },
}

export const list = {
  operationId: 'listMyPictures',
  summary: 'List your pictures',
  description: 'The newest picture comes first. `uses` lists at most 20 places where the platform shows it, for ' +
    'example in an event, with at most 200 characters of their names. Drafts of other users are not listed.',
  response: {
    200: ResponseObject({
      pictures: Type.Array(ResponseObject({ ...fields, uses: Type.Array(Use) }, { title: 'OwnPicture' })),
    }),
    501: Message(PUBLIC_URL_REQUIRED),
  },
}

export const remove = {
  operationId: 'deleteMyPicture',
  summary: 'Delete a picture',
  description: 'A picture in use gets a 409 with its `uses`, see `GET /me/pictures`. `force=true` deletes it anyway. ' +
    'Then the avatar of its owner becomes `null`, and so does the `imageUrl` of the posts of its owner. Everything ' +
    'else keeps the URL, which gets a 404 from then on: texts of posts, posts of other users, events, clubs, mentors ' +
    'and testimonials. Admins may delete any picture. Browsers and CDNs may show a deleted picture for up to a year.',
  checkedByHandler: {
    params: Type.Object({ id: IdParam('The id of the picture.') }),
    querystring: Type.Object({
      force: Type.Optional(Type.String({ description: '`true` also deletes a picture in use.', examples: ['true'] })),
    }),
  },
  response: {
    200: Message('Picture deleted successfully'),
    404: PictureNotFound,
    409: ResponseObject({ message: Enum([IN_USE]), uses: Type.Array(Use) }, { title: 'PictureInUse' }),
  },
}
