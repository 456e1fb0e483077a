import { Type } from '@sinclair/typebox'

import { DateTime, Message, ResponseObject, Unauthorized } from '../../../lib/values/schemas.ts'

export const create = {
  operationId: 'createMyCalendar',
  summary: 'Create your calendar link',
  description: 'Returns a link to a calendar of the events you registered for. Anyone with the link can read the ' +
    'calendar. You see the link only once. A second call creates a new link and revokes the old link.',
  response: {
    201: ResponseObject({
      calendar: ResponseObject({
        path: Type.String({
          description: 'The path of the link, relative to the URL of the service.',
          examples: ['/feeds/me/kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A.ics'],
        }),
        createdAt: DateTime,
      }, { title: 'OwnCalendar' }),
    }),
    401: Unauthorized,
  },
}

export const remove = {
  operationId: 'deleteMyCalendar',
  summary: 'Revoke your calendar link',
  description: 'The link stops working, so calendar apps get no more updates from it.',
  response: { 200: Message('Calendar deleted successfully'), 404: Message('Calendar not found') },
}
