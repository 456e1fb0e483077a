import { calendarOf, findEventOf } from '../events.ts'
import { formatTime } from '../message.ts'
import { notification } from '../notifications.ts'

/** Confirms the registration for an event. */
export const registration = notification<{ event: string }>({
  bulk: false,
  async compose ({ userId, data }, context) {
    const event = await findEventOf(context, userId, data.event)
    if (!event) return undefined
    return {
      subject: `You are registered: ${event.title}`,
      paragraphs: [
        `You are registered for “${event.title}” of ${event.club}, on ` +
          `${formatTime(new Date(event.date), context.config)}.`,
        'The file that comes with this mail adds it to your calendar.',
      ],
      calendar: calendarOf(event, 'PUBLISH', context),
    }
  },
})
