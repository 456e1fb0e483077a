import { calendarOf, findEventOf, toldOf } from '../events.ts'
import { type Context, formatTime } from '../message.ts'
import { notification, wantsMails } from '../notifications.ts'

/** Confirms the registration for an event, also for one that has begun: people register at the door. */
export const registration = notification<{ event: string }>({
  bulk: false,
  async compose ({ userId, data }, context) {
    const event = await findEventOf(context, userId, data.event)
    if (!event || event.isOver) return undefined
    const reminder = await findReminder(context, userId, event.date)
    return {
      subject: `You are registered: ${event.title}`,
      paragraphs: [
        `You are registered for “${event.title}” of ${event.club}, on ` +
          `${formatTime(new Date(event.date), context.config)}.`,
        ...reminder ? [`You will be reminded on ${formatTime(reminder, context.config)}.`] : [],
        'The file that comes with this mail adds it to your calendar.',
      ],
      calendar: calendarOf(event, 'PUBLISH', context),
      told: toldOf(event),
    }
  },
})

/** The time of the reminder of an event with this date; `undefined` when the user gets none. */
async function findReminder ({ sql, config: { REMINDER_HOURS } }: Context, userId: string, date: string) {
  const time = new Date(Date.parse(date) - REMINDER_HOURS * 3_600_000)
  if (REMINDER_HOURS === 0 || time <= new Date()) return undefined
  return await wantsMails(sql, userId, 'event-reminder') ? time : undefined
}
