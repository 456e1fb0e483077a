import { Message } from '../../../lib/values/schemas.ts'
import { sendMessage } from '../../agenda/schemas.ts'

const { params, ...described } = sendMessage

export const sendEventMessage = {
  ...described,
  operationId: 'sendEventMessage',
  deprecated: true,
  description: 'Use `POST /agenda/:id/message`, which does the same.',
  checkedByHandler: { params },
  response: { ...described.response, 400: Message('Event ID is required') },
}
