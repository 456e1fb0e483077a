import { type CalendarEvent, isOver } from '../../agenda/icalendar.ts'
import { untrimmedName } from '../../database/columns.ts'
import { printable } from '../../formats.ts'
import {
  announcedOf, calendarOf, describeSeat, type EmailedEvent, findAnnounced, findEventOf, type KnownEvent, linkTo,
  type ToldSeat, wasTold,
} from '../events.ts'
import { type Context, formatTime } from '../message.ts'
import { notification, wantsEmails } from '../notifications.ts'

/** Confirms the registration for an event, even after it has begun, because people register at the door. */
export const registration = notification<{ event: string }>(async ({ userId, data, key }, context) => {
  const event = await findEventOf(context, userId, data.event)
  // Somebody who was taken off the list and registered again has a confirmation of the new registration. Version 1.0.0
  // writes the id of the event as the key.
  if (!event || (key !== event.registrationId && key !== event.id)) return undefined
  if (isOver(event) || event.seat.state === 'declined') return undefined
  const reminder = await findReminder(context, userId, event.date)
  return {
    subject: `You are registered: ${event.title}`,
    paragraphs: [
      `You are registered for “${event.title}” of ${event.club}, on ` +
        `${formatTime(new Date(event.date), context.config)}.`,
      ...describeSeat(event),
      ...placeOf(event),
      ...reminder ? [`You will be reminded on ${formatTime(reminder, context.config)}.`] : [],
      'Open the attached file to add the event to your calendar.',
      ...linkTo(event, context),
    ],
    calendar: calendarOf(event, 'PUBLISH', context),
    announced: { ...announcedOf(event), seat: seatToTell(event) },
  }
})

/** Tells a person who waited that there is a seat now. */
export const seat = notification<{ event: string }>(async ({ userId, data, key }, context) => {
  const event = await findEventOf(context, userId, data.event)
  if (!event || isOver(event) || event.seat.state !== 'seated') return undefined
  // The person left this place in line. If the person waited again, another email tells about the new place.
  if (event.placeInLine !== key) return undefined
  if (await wasTold(context, userId, event)) return undefined
  return {
    subject: `You have a seat: ${event.title}`,
    paragraphs: [
      `You have a seat at “${event.title}” of ${event.club}, on ` +
        `${formatTime(new Date(event.date), context.config)}.`,
      ...placeOf(event),
      'If you cannot come, please say so on the page of the event. The next person in line gets your seat.',
      'Open the attached file to add the event to your calendar.',
      ...linkTo(event, context),
    ],
    calendar: calendarOf(event, 'PUBLISH', context),
  }
})

/** Tells a person that the organizer has deleted the registration. */
export const seatRemoved = notification<{ event: CalendarEvent }>(async ({ userId, data: { event } }, context) => {
  // The person has registered again.
  if (isOver(event) || await findEventOf(context, userId, event.id)) return undefined
  return {
    subject: `You are no longer registered: ${event.title}`,
    paragraphs: [
      `The organizer of “${event.title}” of ${event.club}, on ${formatTime(new Date(event.date), context.config)}, ` +
        'has taken you off the list.',
      'If the event is in your calendar, delete it there: some calendar apps do not remove it automatically.',
    ],
    calendar: calendarOf(event, 'CANCEL', context),
  }
})

const placeOf = ({ place }: CalendarEvent) => place ? [`Place: ${place}.`] : []

const seatToTell = ({ seat: { state }, placeInLine }: EmailedEvent): ToldSeat => ({ state, placeInLine })

/** Returns when the user will be reminded of an event with this date, or `undefined` without a reminder. */
async function findReminder ({ sql, config: { REMINDER_HOURS } }: Context, userId: string, date: string) {
  const time = new Date(Date.parse(date) - REMINDER_HOURS * 3_600_000)
  if (REMINDER_HOURS === 0 || time <= new Date()) return undefined
  return await wantsEmails(sql, userId, 'event-reminder') ? time : undefined
}

interface Change { event: string, known: KnownEvent, announced?: KnownEvent }

/**
 * Tells each attendee about a new title, date, end, place or club. People who do not come are told about a new date
 * only, because it may suit them. The email lists the changes since the last email to that person,
 * or since `known` if there was no email.
 */
export const eventChanged = notification<Change>(async (email, context) => {
  const { userId, data } = email
  const event = await findEventOf(context, userId, data.event)
  if (!event) return undefined
  const before = await findAnnounced(context, email, event.id) ?? data.known
  // An earlier attempt to send this email may have arrived before the event was changed back.
  const known = data.announced && isUnchangedSince(event, before) ? data.announced : before
  if (isOver(event) && isOver(known)) return undefined
  const declined = event.seat.state === 'declined'
  if (declined && event.date === known.date) return undefined
  const time = (date: string) => formatTime(new Date(date), context.config)
  const changes = [
    event.title !== known.title && `New title: “${event.title}”.`,
    event.date !== known.date && `New date: ${time(event.date)} (was ${time(known.date)}).`,
    ...changesOfDetails(event, known, time),
    event.clubId !== known.clubId && `New organizer: ${event.club} (was ${known.club}).`,
  ].filter(change => change !== false)
  // The event was changed back, or the user already knows.
  if (changes.length === 0) return undefined
  return {
    subject: `Changed: ${event.title}`,
    paragraphs: [
      `“${known.title}” has changed. ${declined ? 'You said that you cannot come.' : 'You are registered for it.'}`,
      ...changes,
      ...declined ? [] : ['If the event is in your calendar, open the attached file to update it.'],
      ...linkTo(event, context),
    ],
    ...!declined && { calendar: calendarOf(event, 'PUBLISH', context) },
    announced: announcedOf(event),
  }
})

/** Describes a new end and a new place. An end that moved along with the date is not news. */
function changesOfDetails (event: EmailedEvent, { date, endsAt, place }: KnownEvent, time: (date: string) => string) {
  const duration = (start: string, end?: string | null) => end && Date.parse(end) - Date.parse(start)
  return [
    endsAt !== undefined && duration(event.date, event.endsAt) !== duration(date, endsAt) &&
      (event.endsAt ? `New end: ${time(event.endsAt)}.` : 'The event has no end any more.'),
    place !== undefined && event.place !== place &&
      (event.place ? `New place: ${event.place}.` : 'The event has no place any more.'),
  ]
}

/** Tells whether `known` is the current state of the event. */
const isUnchangedSince = (event: EmailedEvent, known: KnownEvent) =>
  (['title', 'date', 'clubId', 'endsAt', 'place'] as const)
    .every(field => known[field] === undefined || known[field] === event[field])

/** Tells all attendees that the event was deleted. The email carries the event because its row no longer exists. */
export const eventCancelled = notification<{ event: CalendarEvent }>(async ({ data: { event } }, context) => {
  if (isOver(event)) return undefined
  return {
    subject: `Cancelled: ${event.title}`,
    paragraphs: [
      `“${event.title}” of ${event.club}, on ${formatTime(new Date(event.date), context.config)}, has been cancelled.`,
      'If the event is in your calendar, delete it there: some calendar apps do not remove it automatically.',
    ],
    calendar: calendarOf(event, 'CANCEL', context),
  }
})

/** Reminds all attendees REMINDER_HOURS before the event. */
export const eventReminder = notification<{ event: string, date: string }>(async ({ userId, data }, context) => {
  const event = await findEventOf(context, userId, data.event)
  // A moved event gets a new reminder.
  if (!event || event.date !== data.date || event.seat.state === 'declined') return undefined
  if (new Date(event.date) <= new Date()) return undefined
  return {
    subject: `Reminder: ${event.title}`,
    paragraphs: [
      `You are registered for “${event.title}” of ${event.club}, on ` +
        `${formatTime(new Date(event.date), context.config)}.`,
      ...describeSeat(event),
      ...placeOf(event),
      ...linkTo(event, context),
    ],
  }
})

interface EventMessage {
  subject: string
  text: string
  title: string
  /** Is `null` if the account of the sender was deleted. */
  name: string | null
  /** Is `null` also until the address is verified. */
  email: string | null
}

/**
 * Sends a message from the organizer of an event to all attendees. An accepted message outlives its event and its
 * sender.
 */
export const eventMessage = notification<{ message: string }>(async ({ data }, { sql }) => {
  const [message] = await sql<EventMessage[]>`
    SELECT
      subject, text, coalesce(title, event_title) AS title,
      CASE WHEN users.id IS NOT NULL THEN ${untrimmedName(sql)} END AS name,
      CASE WHEN email_verified_at IS NOT NULL THEN email END AS email
    FROM event_messages
      LEFT JOIN events ON events.id = event_id
      LEFT JOIN users ON users.id = sender_id
    WHERE event_messages.id = ${data.message}
  `
  if (!message) return undefined
  const { subject, text, title, name, email } = message
  return {
    subject,
    paragraphs: [
      `${name ?? 'An organizer'} sent this message to everyone registered for “${title}”:`,
      ...printable(text).split(/\n\s*\n/).filter(part => part.trim()).map(part => part.trim().split('\n')),
    ],
    ...name !== null && email !== null && { replyTo: { name, address: email } },
  }
})
