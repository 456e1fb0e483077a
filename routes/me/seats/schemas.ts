import { Type } from '@sinclair/typebox'

import { AgendaEvent, seatFields } from '../../../lib/agenda/fields.ts'
import { DateTime, IdParam, Message, NullableString, OpaqueId, ResponseObject } from '../../../lib/values/schemas.ts'

/** Error message if somebody changes their answer after an event. */
export const EVENT_OVER = 'The event is over'

const OwnSeat = ResponseObject({
  registrationId: OpaqueId,
  registeredAt: DateTime,
  ...seatFields,
  onlineUrl: NullableString({
    description: 'Where the event is online; `null` without a seat.', examples: ['https://meet.example.org/chess'],
  }),
  event: AgendaEvent,
}, { title: 'OwnSeat' })

export const list = {
  operationId: 'listMySeats',
  summary: 'List your seats',
  description: 'Returns the events that you registered for, with your seats. The latest event date comes first.',
  response: { 200: ResponseObject({ seats: Type.Array(OwnSeat) }) },
}

export const set = {
  operationId: 'setMySeat',
  summary: 'Say whether you come to an event',
  description: 'You must be registered. If you do not come, the person who waits the longest gets your seat. If you ' +
    'come after all, you stand at the end of the line, or take part in a draw that waits.',
  params: Type.Object({ eventId: IdParam('The id of the event.') }),
  body: Type.Object({ coming: Type.Boolean({ examples: [false] }) }, { title: 'Answer' }),
  response: {
    200: ResponseObject({ seat: OwnSeat }), 404: Message('Registration not found'), 409: Message(EVENT_OVER),
  },
}
