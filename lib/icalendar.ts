import ICAL from 'ical.js'

import { printable, printableLine } from './formats.ts'

/** An event as calendars show it. */
export interface CalendarEvent {
  id: string
  title: string
  description?: string
  /** Date-times as in other responses: `2026-01-31T09:30:00.000Z`. */
  date: string
  createdAt: string
  updatedAt: string
  club: string
  /** How often its title, its date or its club was changed. */
  sequence: number
}

/** Whether an event is there, or is not any more. */
export type CalendarMethod = 'PUBLISH' | 'CANCEL'

/** Duration of an event: it has no end of its own. */
export const DURATION = 'PT2H'

// Octets of a line are 75 at most (RFC 5545, § 3.1), with the space that begins a folded one.
ICAL.foldLength = 74

/** Writes jCal (RFC 7265) as iCalendar. */
export const writeComponent = (jcal: unknown[]) => new ICAL.Component(jcal).toString()

/** A calendar with these properties and components, as jCal. */
export const calendar = (properties: unknown[], components: unknown[] = []) => ['vcalendar', [
  ['version', {}, 'text', '2.0'],
  ['prodid', {}, 'text', '-//Community Platform//EN'],
  ...properties,
], components]

/**
 * An event as jCal, with a link to where the app shows it, if there is one. `stamp` is when the event was changed last;
 * with a METHOD, when the calendar was written (RFC 5545, § 3.8.7.2).
 */
export const calendarEvent = (
  event: CalendarEvent, link: string | undefined,
  { stamp = event.updatedAt, status }: { stamp?: string, status?: string } = {}
) => ['vevent', [
  ['uid', {}, 'text', event.id],
  ['sequence', {}, 'integer', event.sequence],
  ...status ? [['status', {}, 'text', status]] : [],
  ['dtstamp', {}, 'date-time', toSeconds(stamp)],
  ['last-modified', {}, 'date-time', toSeconds(event.updatedAt)],
  ['created', {}, 'date-time', toSeconds(event.createdAt)],
  ['dtstart', {}, 'date-time', toSeconds(event.date)],
  ['duration', {}, 'duration', DURATION],
  ['summary', {}, 'text', printableLine(event.title)],
  ...event.description === undefined ? [] : [['description', {}, 'text', printable(event.description)]],
  // The club by its name: the format requires an address, and no person's email belongs here.
  ['organizer', { cn: printableLine(event.club) }, 'cal-address', 'invalid:nomail'],
  ...link ? [['url', {}, 'uri', link]] : [],
], []]

/** A calendar for an email (RFC 5546), which adds an event to the reader's calendar, or changes or removes it. */
export function writeInvitation (event: CalendarEvent, method: CalendarMethod, link: string | undefined) {
  const status = method === 'CANCEL' ? 'CANCELLED' : 'CONFIRMED'
  const entry = calendarEvent(event, link, { stamp: new Date().toISOString(), status })
  return `${writeComponent(calendar([['method', {}, 'text', method]], [entry]))}\r\n`
}

/** iCalendar has no fractions of a second. */
const toSeconds = (dateTime: string) => dateTime.replace(/\.\d+Z$/, 'Z')
