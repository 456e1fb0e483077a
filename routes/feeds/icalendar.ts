import ICAL from 'ical.js'

import type { BodyFormat } from '../../lib/cache/index.ts'
import { printable, printableLine } from '../../lib/formats.ts'

/** An event as calendars show it. */
export interface CalendarEvent {
  id: string
  title: string
  description: string
  /** Date-times as in other responses: `2026-01-31T09:30:00.000Z`. */
  date: string
  createdAt: string
  updatedAt: string
  club: string
}

const END = 'END:VCALENDAR\r\n'

/** How often subscribers should ask again, as a duration of iCalendar. */
const REFRESH_INTERVAL = 'PT1H'

/** Duration of an event: it has no end of its own. */
const DURATION = 'PT2H'

/** iCalendar (RFC 5545): a calendar of events, each with a link to where the app shows them, if there is one. */
export const icalendar = (link: string | undefined): BodyFormat => ({
  contentType: 'text/calendar; charset=utf-8',
  createWriter: () => ({
    begin: ({ name }: { name: string }) => write(calendar(name)).slice(0, -END.trim().length),
    add: (event: CalendarEvent) => `${write(calendarEvent(event, link))}\r\n`,
    end: () => END,
  }),
})

// Octets of a line are 75 at most (RFC 5545, § 3.1), with the space that begins a folded one.
ICAL.foldLength = 74

/** Writes jCal (RFC 7265) as iCalendar. */
const write = (jcal: unknown[]) => new ICAL.Component(jcal).toString()

const calendar = (name: string) => ['vcalendar', [
  ['version', {}, 'text', '2.0'],
  ['prodid', {}, 'text', '-//Community Platform//EN'],
  // RFC 7986, and what came before it
  ['name', {}, 'text', printableLine(name)],
  ['x-wr-calname', {}, 'text', printableLine(name)],
  ['refresh-interval', {}, 'duration', REFRESH_INTERVAL],
  ['x-published-ttl', {}, 'unknown', REFRESH_INTERVAL],
], []]

const calendarEvent = (event: CalendarEvent, link: string | undefined) => ['vevent', [
  ['uid', {}, 'text', event.id],
  // Without a METHOD it is when the event was changed last (RFC 5545, § 3.8.7.2).
  ['dtstamp', {}, 'date-time', toSeconds(event.updatedAt)],
  ['last-modified', {}, 'date-time', toSeconds(event.updatedAt)],
  ['created', {}, 'date-time', toSeconds(event.createdAt)],
  ['dtstart', {}, 'date-time', toSeconds(event.date)],
  ['duration', {}, 'duration', DURATION],
  ['summary', {}, 'text', printableLine(event.title)],
  ['description', {}, 'text', printable(event.description)],
  // The club by its name: the format requires an address, and no person's email belongs here.
  ['organizer', { cn: printableLine(event.club) }, 'cal-address', 'invalid:nomail'],
  ...link ? [['url', {}, 'uri', link]] : [],
], []]

/** iCalendar has no fractions of a second. */
const toSeconds = (dateTime: string) => dateTime.replace(/\.\d+Z$/, 'Z')
