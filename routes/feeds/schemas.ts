import { Type } from '@sinclair/typebox'

import { IdParam, Media, Message } from '../../lib/schemas.ts'

const TOKEN = 'kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'

const Calendar = Media('text/calendar', {
  description: 'iCalendar (RFC 5545). Events have no end, so each lasts two hours. Descriptions are cut at 4,000 ' +
    'characters.',
  examples: [
    'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Community Platform//EN\r\nNAME:Events\r\nEND:VCALENDAR\r\n',
  ],
})

export const events = {
  operationId: 'getEventsCalendar',
  summary: 'Subscribe to all events',
  description: 'A calendar of the events of all clubs since 1900.',
  response: { 200: Calendar },
}

export const club = {
  operationId: 'getClubCalendar',
  summary: 'Subscribe to the events of a club',
  description: 'A calendar of its events since 1900.',
  docsOnly: { params: Type.Object({ id: IdParam({ description: 'The id of the club.' }) }) },
  response: { 200: Calendar, 404: Message('Club not found') },
}

export const own = {
  operationId: 'getOwnCalendar',
  summary: 'Subscribe to your own events',
  description: 'A calendar of the events since 1900 that a user is registered for. The address, with the token in ' +
    'it, comes from `POST /me/calendar`; no other token is needed.',
  docsOnly: {
    params: Type.Object({ token: IdParam({ description: 'The token of the address.', examples: [TOKEN] }) }),
  },
  response: { 200: Calendar, 404: Message('Calendar not found') },
}

export const blogs = {
  operationId: 'getBlogsFeed',
  summary: 'Subscribe to the blogs',
  description: 'A feed of the newest fifty published blogs.',
  response: {
    200: Media('application/atom+xml', {
      description: 'Atom (RFC 4287). The content of a blog is plain text, even if it looks like HTML; it is cut ' +
        'at 4,000 characters.',
      examples: ['<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">…</feed>'],
    }),
  },
}
