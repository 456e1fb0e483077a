import { findEventOf } from '../events.ts'
import { formatTime } from '../message.ts'
import { notification } from '../notifications.ts'

/** Reminds all who are registered, REMINDER_HOURS before the event. */
export const eventReminder = notification<{ event: string, date: string }>({
  bulk: true,
  async compose ({ userId, data }, context) {
    const event = await findEventOf(context, userId, data.event)
    // A moved event has a reminder of its own.
    if (!event?.isComing || event.date !== data.date) return undefined
    return {
      subject: `Reminder: ${event.title}`,
      paragraphs: [
        `“${event.title}” of ${event.club}, which you are registered for, is on ` +
          `${formatTime(new Date(event.date), context.config)}.`,
      ],
    }
  },
})
