import { printable, printableLine } from '../values/formats.ts'
import { type Component, type Property, writeComponent } from './jcal.ts'

/** An event in a calendar. */
export interface CalendarEvent {
  id: string
  title: string
  description?: string
  /** Date-times, for example `2026-01-31T09:30:00.000Z`. */
  date: string
  createdAt: string
  updatedAt: string
  club: string
  /** Number of changes of title, date, end, place, online link or club. */
  sequence: number
  /** Missing in emails of versions before 1.1. */
  endsAt?: string | null
  place?: string | null
  /** Where the event is online. Only for people with a seat. */
  onlineUrl?: string | null
  /** Whether the owner of the calendar waits for a seat, or for a draw. */
  isTentative?: boolean
}

/** Whether a calendar adds or removes an event. */
export type CalendarMethod = 'PUBLISH' | 'CANCEL'

/** Duration of an event without an end, also in milliseconds. */
export const DURATION = 'PT2H'
const DURATION_MS = 2 * 3_600_000

/** Tells whether an event has ended. */
export function isOver ({ date, endsAt }: Pick<CalendarEvent, 'date' | 'endsAt'>) {
  const end = endsAt ? Date.parse(endsAt) : Date.parse(date) + DURATION_MS
  return end <= Date.now()
}

/** Creates a calendar as jCal. */
export const calendar = (properties: Property[], components: Component[] = []): Component => ['vcalendar', [
  ['version', {}, 'text', '2.0'],
  ['prodid', {}, 'text', '-//Community Platform//EN'],
  ...properties,
], components]

/**
 * Creates an event as jCal, optionally with a link to its page, which is below `pages`. `stamp` is the time of the last
 * change or, in a calendar with a METHOD, the time of writing (RFC 5545, § 3.8.7.2).
 */
export const calendarEvent = (
  event: CalendarEvent, pages: string | undefined,
  { stamp = event.updatedAt, status = event.isTentative ? 'TENTATIVE' : undefined }: {
    stamp?: string, status?: string
  } = {}
): Component => ['vevent', present([
  ['uid', {}, 'text', event.id],
  ['sequence', {}, 'integer', event.sequence],
  status && ['status', {}, 'text', status],
  ['dtstamp', {}, 'date-time', toSeconds(stamp)],
  // Some apps keep the entry that they have unless this is later.
  ['last-modified', {}, 'date-time', toSeconds(stamp)],
  ['created', {}, 'date-time', toSeconds(event.createdAt)],
  ['dtstart', {}, 'date-time', toSeconds(event.date)],
  endProperty(event),
  ['summary', {}, 'text', printableLine(event.title)],
  event.place && ['location', {}, 'text', printableLine(event.place)],
  event.description !== undefined && ['description', {}, 'text', printable(descriptionOf(event))],
  // RFC 7986. Many apps show neither this nor the URL, so the description also begins with the link.
  event.onlineUrl && ['conference', { value: 'URI' }, 'uri', event.onlineUrl],
  // The name of the club. The format requires an address, but a person's email address must not appear here.
  ['organizer', { cn: printableLine(event.club) }, 'cal-address', 'invalid:nomail'],
  pages && ['url', {}, 'uri', `${pages}/${event.id}`],
]), []]

/** The properties that an event has. */
const present = (properties: (Property | false | '' | null | undefined)[]) => properties.filter(property => !!property)

const descriptionOf = ({ description, onlineUrl }: CalendarEvent) =>
  onlineUrl ? `Join online: ${onlineUrl}\n\n${description}` : description!

/** The end must be later than the start (RFC 5545, § 3.8.2.2), also without fractions of a second. */
function endProperty ({ date, endsAt }: CalendarEvent): Property {
  if (!endsAt) return ['duration', {}, 'duration', DURATION]
  const end = toSeconds(endsAt)
  return end === toSeconds(date) ? ['duration', {}, 'duration', 'PT1S'] : ['dtend', {}, 'date-time', end]
}

/** Creates a calendar for an email (RFC 5546) that adds, changes or removes an event in the reader's calendar. */
export function writeInvitation (event: CalendarEvent, method: CalendarMethod, pages: string | undefined) {
  const status = method === 'CANCEL' ? 'CANCELLED' : event.isTentative ? 'TENTATIVE' : 'CONFIRMED'
  const entry = calendarEvent(event, pages, { stamp: new Date().toISOString(), status })
  return `${writeComponent(calendar([['method', {}, 'text', method]], [entry]))}\r\n`
}

/** Removes fractions of a second, which iCalendar does not support. */
const toSeconds = (dateTime: string) => dateTime.replace(/\.\d+Z$/, 'Z')
