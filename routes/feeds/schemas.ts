import { Type } from '@sinclair/typebox'

import { ClubNotFound, IdParam, Media, Message } from '../../lib/values/schemas.ts'

const TOKEN = 'kJ1wYxT0n3Zb7Qd5sVhC2uLrE8oPgMaXf4iNtHyWj6A'

const Calendar = Media('text/calendar', {
  description: 'iCalendar (RFC 5545). An event without an end lasts two hours. Titles and descriptions are ' +
    'cut at 4,000 characters.',
  examples: [
    'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Community Platform//EN\r\nNAME:Events\r\nEND:VCALENDAR\r\n',
  ],
})

export const events = {
  operationId: 'getEventsCalendar',
  summary: 'Subscribe to all events',
  description: 'Returns a calendar of all clubs\' events since 1900.',
  response: { 200: Calendar },
}

export const club = {
  operationId: 'getClubCalendar',
  summary: 'Subscribe to a club\'s events',
  description: 'Returns a calendar of the club\'s events since 1900.',
  checkedByHandler: { params: Type.Object({ id: IdParam('The id of the club.') }) },
  response: { 200: Calendar, 404: ClubNotFound },
}

export const own = {
  operationId: 'getOwnCalendar',
  summary: 'Subscribe to your events',
  description: 'Returns a calendar of the events since 1900 that you registered for. `POST /me/calendar` creates the ' +
    'link. The link contains its own token, so the request needs no `Authorization` header.',
  checkedByHandler: {
    params: Type.Object({ token: IdParam('The token in the link.', TOKEN) }),
  },
  response: { 200: Calendar, 404: Message('Calendar not found') },
}

export const blogs = {
  operationId: 'getBlogsFeed',
  summary: 'Subscribe to blog posts',
  description: 'Returns a feed of the 50 posts that were published last.',
  response: {
    200: Media('application/atom+xml', {
      description: 'Atom (RFC 4287). The content is HTML with the paragraphs of the post, cut at 4,000 characters.',
      examples: ['<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">…</feed>'],
    }),
  },
}
