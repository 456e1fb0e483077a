import { calendar, calendarEvent, type CalendarEvent, writeComponent } from '../../lib/agenda/icalendar.ts'
import type { BodyFormat } from '../../lib/cache/index.ts'
import { printableLine } from '../../lib/formats.ts'

const END = 'END:VCALENDAR\r\n'

/** Recommended interval between polls, as an iCalendar duration. */
const REFRESH_INTERVAL = 'PT1H'

/** iCalendar (RFC 5545): a calendar of events, with links to the app if FRONTEND_URL is set. */
export const icalendar = (link: string | undefined): BodyFormat<{ name: string }, CalendarEvent> => ({
  contentType: 'text/calendar; charset=utf-8',
  * write ({ name }, events) {
    yield writeComponent(namedCalendar(name)).slice(0, -END.trim().length)
    for (const event of events) yield `${writeComponent(calendarEvent(event, link))}\r\n`
    yield END
  },
})

const namedCalendar = (name: string) => calendar([
  // RFC 7986, and the earlier properties of common apps.
  ['name', {}, 'text', printableLine(name)],
  ['x-wr-calname', {}, 'text', printableLine(name)],
  ['refresh-interval', {}, 'duration', REFRESH_INTERVAL],
  ['x-published-ttl', {}, 'unknown', REFRESH_INTERVAL],
])
