import { Message, Unauthorized } from '../../../lib/values/schemas.ts'

export const revoke = {
  operationId: 'endMyTokens',
  summary: 'Sign out everywhere',
  description: 'Revokes all your tokens on every device, including the token of this request. Your calendar link ' +
    'keeps working.',
  response: { 200: Message('Signed out everywhere'), 401: Unauthorized },
}
