import { ResponseObject, Token, Unauthorized } from '../../../lib/values/schemas.ts'

export const renew = {
  operationId: 'renewMyToken',
  summary: 'Get a token with your current role',
  description: 'After your role has changed, the new token has the new role. It expires and is revoked together with ' +
    'the token of the request, and does not count as a sign-in.',
  response: { 200: ResponseObject({ token: Token }), 401: Unauthorized },
}
