import { Type } from '@sinclair/typebox'

import { EventNotFound, IdParam, Media, Message, RegistrationsNotAllowed } from '../../lib/values/schemas.ts'

const Csv = (...lines: string[]) => Media('text/csv', {
  description: 'CSV (RFC 4180) in UTF-8 with a byte order mark. A value that a spreadsheet could read as a formula ' +
    'begins with an apostrophe, for example a phone number with a plus sign.',
  examples: [`\ufeff${lines.join('\r\n')}\r\n`],
})

export const registrations = {
  operationId: 'exportRegistrations',
  summary: 'Export an event\'s registrations',
  description: 'The newest registration comes first. Club heads may export registrations for events of their own ' +
    'club. Admins may export any registrations.',
  checkedByHandler: { params: Type.Object({ id: IdParam('The id of the event.') }) },
  response: {
    200: Csv(
      'name,email,registeredAt,state,answeredAt',
      'Ada Lovelace,ada@example.org,2030-01-31T09:30:00.000Z,seated,2030-01-31T09:30:00.000Z'
    ),
    400: Message('Event ID is required'),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
  },
}

export const users = {
  operationId: 'exportUsers',
  summary: 'Export all users',
  description: 'The newest account comes first.',
  response: {
    200: Csv(
      'email,firstName,lastName,role,club,createdAt',
      'ada@example.org,Ada,Lovelace,STUDENT,Chess Club,2030-01-31T09:30:00.000Z'
    ),
  },
}
