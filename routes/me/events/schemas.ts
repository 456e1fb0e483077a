import { type Static, Type } from '@sinclair/typebox'

import { idempotencyErrors, idempotencyHeaders } from '../../../lib/database/idempotency.ts'
import {
  Enum, EventNotFound, IdParam, Message, Reach, RegistrationsNotAllowed, ResponseObject, RetryAfter, TextInput,
} from '../../../lib/values/schemas.ts'

export const TOO_MANY_MESSAGES = 'Too many messages, please try again later'

const NewMessage = Type.Object({
  subject: TextInput({ format: 'visible', minLength: 3, maxLength: 200, examples: ['Chess Night: bring a board'] }),
  text: TextInput({
    format: 'visible', minLength: 10, maxLength: 10_000, examples: ['We have fewer boards than guests this time.'],
  }),
}, { title: 'EventMessage' })
export type EventMessage = Static<typeof NewMessage>

export const sendMessage = {
  operationId: 'sendEventMessage',
  summary: 'Send an email to everyone registered for an event',
  description: 'Replies go to your email address if it is verified. Club heads may write about events of their own ' +
    'club. Admins may write about any event. By default, the sixth message within 15 minutes gets a 429.',
  checkedByHandler: { params: Type.Object({ id: IdParam('The id of the event.') }) },
  headers: idempotencyHeaders,
  body: NewMessage,
  response: {
    202: ResponseObject({
      message: Enum(['The message is on its way']),
      reach: Reach,
    }),
    400: Message('Event ID is required'),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
    ...idempotencyErrors,
    429: { ...Message(TOO_MANY_MESSAGES), headers: RetryAfter },
  },
}
