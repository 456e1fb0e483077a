import { Type } from '@sinclair/typebox'

import { IdParam, Media, Message } from '../../lib/schemas.ts'

const DESCRIPTION = 'CSV (RFC 4180) in UTF-8 with a byte order mark. An apostrophe stands ' +
  'before what a spreadsheet would take for a formula, such as the plus sign of a phone number.'

export const registrations = {
  operationId: 'exportRegistrations',
  summary: 'Get the registrations for an event as a spreadsheet',
  description: 'The newest first. A club head gets those for the events of their current club, an admin any.',
  docsOnly: { params: Type.Object({ id: IdParam({ description: 'The id of the event.' }) }) },
  response: {
    200: Media('text/csv', {
      description: DESCRIPTION,
      examples: ['\ufeffname,email,registeredAt\r\nAda Lovelace,ada@example.org,2026-01-31T09:30:00.000Z\r\n'],
    }),
    400: Message('Event ID is required'),
    403: Message('Not allowed to view registrations for this event'),
    404: Message('Event not found'),
  },
}

export const users = {
  operationId: 'exportUsers',
  summary: 'Get all users as a spreadsheet',
  description: 'The newest first.',
  response: {
    200: Media('text/csv', {
      description: DESCRIPTION,
      examples: [
        '\ufeffemail,firstName,lastName,role,club,createdAt\r\n' +
        'ada@example.org,Ada,Lovelace,STUDENT,Chess Club,2026-01-31T09:30:00.000Z\r\n',
      ],
    }),
  },
}
