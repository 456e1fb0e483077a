import { Type } from '@sinclair/typebox'

import { PUBLIC_URL_REQUIRED } from '../../../lib/pictures/refusals.ts'
import {
  CurrentUser, FirstName, LastName, Message, NameInput, NullableTextInput, PictureNotFound, ResponseObject,
  Unauthorized,
} from '../../../lib/values/schemas.ts'

export const change = {
  operationId: 'changeMyProfile',
  summary: 'Change your name or your picture',
  description: 'Missing fields stay unchanged. To change your picture, upload it with `POST /me/pictures` first.',
  body: Type.Object({
    firstName: Type.Optional(NameInput({ examples: FirstName.examples })),
    lastName: Type.Optional(NameInput({ examples: LastName.examples })),
    avatar: Type.Optional(NullableTextInput({
      description: 'The id of a picture that you uploaded, not its URL. `null` removes your picture.', examples: [null],
    })),
  }, { title: 'ProfileChanges' }),
  response: {
    200: ResponseObject({ user: CurrentUser }),
    401: Unauthorized,
    404: PictureNotFound,
    501: Message(PUBLIC_URL_REQUIRED),
  },
}
