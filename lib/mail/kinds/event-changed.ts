import { calendarOf, findEventOf, findTold, type KnownEvent, toldOf } from '../events.ts'
import { formatTime } from '../message.ts'
import { notification } from '../notifications.ts'

/**
 * Tells all who are registered that the event has another title, date or club: all changes since the last mail to them,
 * or else since it was as in `known`.
 */
export const eventChanged = notification<{ event: string, known: KnownEvent }>({
  bulk: true,
  async compose (mail, context) {
    const { userId, data } = mail
    const event = await findEventOf(context, userId, data.event)
    if (!event) return undefined
    const known = await findTold(context, mail, event.id) ?? data.known
    if (!(event.isComing || new Date(known.date) > new Date())) return undefined
    const time = (date: string) => formatTime(new Date(date), context.config)
    const changes = [
      event.title !== known.title && `It is now called “${event.title}”.`,
      event.date !== known.date && `It is now on ${time(event.date)}, and not on ${time(known.date)}.`,
      event.clubId !== known.clubId && `It is now held by ${event.club}, and not by ${known.club}.`,
    ].filter(change => change !== false)
    // Changed back, or told already
    if (changes.length === 0) return undefined
    return {
      subject: `Changed: ${event.title}`,
      paragraphs: [
        `“${known.title}”, which you are registered for, has changed.`,
        ...changes,
        'The file that comes with this mail changes it in your calendar.',
      ],
      calendar: calendarOf(event, 'PUBLISH', context),
      told: toldOf(event),
    }
  },
})
