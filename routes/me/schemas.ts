import { Type } from '@sinclair/typebox'

import { LAST_ADMIN } from '../../lib/accounts/erasure.ts'
import { Busy } from '../../lib/auth/passwords.ts'
import { TooManyFailures } from '../../lib/auth/rate-limits.ts'
import { Enum, EXAMPLE_PASSWORD, Message, NullableTextInput, ResponseObject } from '../../lib/values/schemas.ts'

export const SIGN_IN_AGAIN = 'Please sign in with your identity provider again, and retry within five minutes'

export const remove = {
  operationId: 'deleteMyAccount',
  summary: 'Delete your account',
  description: 'Permanently deletes your account, registrations, likes, drafts and pictures, and revokes all ' +
    'your tokens. Your published posts stay, but without your name. Pictures that a published post or a page shows ' +
    'also stay, see `uses` in `GET /me/pictures`: delete them first if they should not. If your account has no ' +
    'password, sign in with the identity provider first, at most five minutes before.',
  body: Type.Object({
    currentPassword: NullableTextInput({
      description: '`null` if your account has no password.', examples: [EXAMPLE_PASSWORD],
    }),
  }, { title: 'AccountDeletion' }),
  response: {
    200: ResponseObject({
      message: Enum(['Account deleted successfully']),
      kept: ResponseObject({
        publishedBlogs: Type.Integer({ description: 'Posts that stay without your name.', examples: [2] }),
        pictures: Type.Integer({ description: 'Pictures that stay, because they are shown.', examples: [1] }),
      }),
    }, { title: 'AccountDeleted' }),
    401: Message('Unauthorized', 'Current password is wrong', SIGN_IN_AGAIN),
    409: Message(LAST_ADMIN),
    429: TooManyFailures,
    503: Busy,
  },
}
