import { printable } from '../../formats.ts'
import type { CalendarEvent } from '../../icalendar.ts'
import { calendarOf, findEventOf, findTold, type KnownEvent, type EmailedEvent, toldOf } from '../events.ts'
import { type Context, formatTime } from '../message.ts'
import { notification, wantsEmails } from '../notifications.ts'

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
        'Open the file that comes with this email to add it to your calendar.',
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
  return await wantsEmails(sql, userId, 'event-reminder') ? time : undefined
}

/**
 * Tells everybody who is registered about a new title, date or club: the changes since the last email to that person,
 * or else since the event was as in `known`.
 */
export const eventChanged = notification<{ event: string, known: KnownEvent, told?: KnownEvent }>({
  bulk: true,
  async compose (email, context) {
    const { userId, data } = email
    const event = await findEventOf(context, userId, data.event)
    if (!event) return undefined
    const before = await findTold(context, email, event.id) ?? data.known
    // An attempt of this email may have arrived, and the event may have changed back since.
    const known = data.told && isAs(event, before) ? data.told : before
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
        'Open the file that comes with this email to update your calendar, if you added the event there.',
      ],
      calendar: calendarOf(event, 'PUBLISH', context),
      told: toldOf(event),
    }
  },
})

/** Whether people who know this know the event. */
const isAs = (event: EmailedEvent, { title, date, clubId }: KnownEvent) =>
  event.title === title && event.date === date && event.clubId === clubId

/** Tells all who were registered that the event is deleted. It is gone, so the email has what it needs. */
export const eventCancelled = notification<{ event: CalendarEvent }>({
  bulk: true,
  async compose ({ data: { event } }, context) {
    const date = new Date(event.date)
    if (date < new Date()) return undefined
    return {
      subject: `Cancelled: ${event.title}`,
      paragraphs: [
        `“${event.title}” of ${event.club}, on ${formatTime(date, context.config)}, does not take place.`,
        'If your calendar has the event, please delete it there: some calendar apps do not do that by themselves.',
      ],
      calendar: calendarOf(event, 'CANCEL', context),
    }
  },
})

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

interface EventMessage {
  subject: string
  text: string
  title: string
  name: string
  /** `null` until it is a verified address. */
  email: string | null
}

/** A message of those who hold the event to all who are registered for it. */
export const eventMessage = notification<{ message: string }>({
  bulk: true,
  async compose ({ userId, data }, { sql }) {
    const [message] = await sql<EventMessage[]>`
      SELECT
        subject, text, title, concat_ws(' ', first_name, last_name) AS name,
        CASE WHEN email_verified_at IS NOT NULL THEN email END AS email
      FROM event_messages
        JOIN events ON events.id = event_messages.event_id
        JOIN event_registrations ON event_registrations.event_id = events.id
        JOIN users ON users.id = sender_id
      WHERE event_messages.id = ${data.message} AND user_id = ${userId}
    `
    if (!message) return undefined
    const { subject, text, title, name, email } = message
    return {
      subject,
      paragraphs: [
        `${name} writes to all who are registered for “${title}”:`,
        ...printable(text).split(/\n\s*\n/).filter(part => part.trim()).map(part => part.trim().split('\n')),
      ],
      ...email !== null && { replyTo: { name, address: email } },
    }
  },
})
