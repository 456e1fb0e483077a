import { Type } from '@sinclair/typebox'

import { DateTime, ResponseObject, Unauthorized } from '../../../lib/values/schemas.ts'

export const read = {
  operationId: 'getMyAccount',
  summary: 'Get the state of your account',
  description: 'Tells what your settings page needs: how you sign in, and what you have set up.',
  response: {
    200: ResponseObject({
      account: ResponseObject({
        isEmailVerified: Type.Boolean({ description: 'Notifications need a verified email address.' }),
        hasPassword: Type.Boolean({ description: 'If not, you sign in with the identity provider.' }),
        isLinked: Type.Boolean({ description: 'Whether you can sign in with the identity provider.' }),
        calendar: Type.Union([ResponseObject({ createdAt: DateTime }), Type.Null()], {
          description: 'Your calendar link from `POST /me/calendar`, without its secret.',
        }),
      }, { title: 'AccountState' }),
    }),
    401: Unauthorized,
  },
}
