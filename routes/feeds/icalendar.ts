import { calendar, calendarEvent, type CalendarEvent } from '../../lib/agenda/icalendar.ts'
import { type Component, writeComponent } from '../../lib/agenda/jcal.ts'
import type { BodyFormat } from '../../lib/cache/index.ts'
import { printableLine } from '../../lib/values/formats.ts'

const END = 'END:VCALENDAR\r\n'

/** Recommended interval between polls, as an iCalendar duration. */
const REFRESH_INTERVAL = 'PT1H'

/** iCalendar (RFC 5545): a calendar of events, with links to the app if FRONTEND_URL is set. */
export const icalendar = (link: string | undefined): BodyFormat<{ name: string }, CalendarEvent> => ({
  contentType: 'text/calendar; charset=utf-8',
  * write ({ name }, events) {
    yield writeComponent(namedCalendar(name)).slice(0, -END.trim().length)
    let isEmpty = true
    for (const event of events) {
      isEmpty = false
      yield `${writeComponent(calendarEvent(event, link))}\r\n`
    }
    if (isEmpty) yield `${writeComponent(UTC)}\r\n`
    yield END
  },
})

/** A calendar has at least one component (RFC 5545, § 3.6). People do not see a time zone. */
const UTC: Component = ['vtimezone', [['tzid', {}, 'text', 'UTC']], [['standard', [
  ['dtstart', {}, 'date-time', '1970-01-01T00:00:00'],
  ['tzoffsetfrom', {}, 'utc-offset', '+00:00'],
  ['tzoffsetto', {}, 'utc-offset', '+00:00'],
], []]]]

const namedCalendar = (name: string) => calendar([
  // RFC 7986, and the earlier properties of common apps.
  ['name', { value: 'TEXT' }, 'text', printableLine(name)],
  ['x-wr-calname', { value: 'TEXT' }, 'text', printableLine(name)],
  ['refresh-interval', { value: 'DURATION' }, 'duration', REFRESH_INTERVAL],
  ['x-published-ttl', {}, 'unknown', REFRESH_INTERVAL],
])
