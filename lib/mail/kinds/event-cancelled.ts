import type { CalendarEvent } from '../../icalendar.ts'
import { calendarOf } from '../events.ts'
import { formatTime } from '../message.ts'
import { notification } from '../notifications.ts'

/** Tells all who were registered that the event is deleted. It is gone, so the mail has what it needs. */
export const eventCancelled = notification<{ event: CalendarEvent }>({
  bulk: true,
  async compose ({ data: { event } }, context) {
    const date = new Date(event.date)
    if (date < new Date()) return undefined
    return {
      subject: `Cancelled: ${event.title}`,
      paragraphs: [
        `“${event.title}” of ${event.club}, on ${formatTime(date, context.config)}, does not take place.`,
        'The file that comes with this mail removes it from your calendar.',
      ],
      calendar: calendarOf(event, 'CANCEL', context),
    }
  },
})
