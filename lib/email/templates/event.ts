import { type CalendarEvent, isOver } from '../../agenda/icalendar.ts'
import { excerpt, untrimmedName } from '../../database/columns.ts'
import { paragraphsOf } from '../../values/formats.ts'
import {
  announcedOf, calendarOf, describeSeat, describeTime, detailsOf, type EmailedEvent, findAnnounced, findEventOf,
  type KnownEvent, linkToEvent, TIMES,
} from '../events.ts'
import {
  type ClaimedEmail, type Content, type Context, formatTime, formatTimes, linkTo, type Paragraph, sentence,
} from '../content.ts'
import { notification, wantsEmails } from '../notifications.ts'

/** Confirms the registration for an event, even after it has begun, because people register at the door. */
export const registration = notification<{ event: string }>(async (email, context) => {
  const { userId, data, key, createdAt } = email
  const event = await findEventOf(context, userId, data.event)
  if (!event || isOver(event) || event.seat.state === 'declined') return undefined
  // Somebody who was taken off the list and registered again has a confirmation of the new registration. Version 1.0.0
  // writes the id of the event as the key.
  if (![event.placeInLine, event.registrationId, event.id].includes(key)) return undefined
  // After a failed attempt, or while the person came back, a different email may have told everything. An email that
  // was sent before this row was written has told an earlier registration.
  const announced = await findAnnounced(context, email, event.id)
  const isSince = announced?.at !== undefined && announced.at >= createdAt.toISOString()
  if (isSince && announced.seat?.state === event.seat.state && isUnchangedSince(event, announced)) return undefined
  const reminder = await findReminder(context, userId, event.date)
  return withEvent(event, context, CONFIRMATIONS[event.seat.state], [
    opening(event, context),
    ...aboutSeat(event),
    ...detailsOf(event, context),
    ...reminder ? [`You will be reminded on ${formatTime(reminder, context.config)}.`] : [],
  ])
})

/** An email that adds an event to the calendar of its reader. `links` follow the link to the event. */
const withEvent = (
  event: EmailedEvent, context: Context, subject: string, paragraphs: Paragraph[], links: Paragraph[] = []
): Content => ({
  subject: `${subject}: ${event.title}`,
  paragraphs: [
    ...paragraphs,
    'Open the attached file to add the event to your calendar.',
    ...linkToEvent(event, context),
    ...links,
  ],
  calendar: calendarOf(event, 'PUBLISH', context),
  announced: announcedOf(event),
})

/** The beginning of the subject of a confirmation. */
const CONFIRMATIONS = {
  seated: 'You are registered', waiting: 'You are waiting for a seat', drawing: 'You take part in the draw',
}

const haveSeat = (event: EmailedEvent, { config }: Context) =>
  sentence`You have a seat at “${event.title}” of ${event.club}, on ${formatTimes(event, config)}.`

/** What people with a new seat can do for the next in line. */
const IF_NOT = 'If you cannot come, please say so on the page of the event. The next person in line gets your seat.'

/** Tells whether an email has told the person their present seat or place in line. */
const isSeatAnnounced = (event: EmailedEvent, announced: KnownEvent | undefined) =>
  announced?.seat?.state === event.seat.state && announced.seat.placeInLine === event.placeInLine

/** Tells a person in line that there is a seat now. */
export const seat = notification<{ event: string }>(async (email, context) => {
  const { userId, data, key } = email
  const event = await findEventOf(context, userId, data.event)
  if (!event || isOver(event) || event.seat.state !== 'seated') return undefined
  // The person left this place in line. If the person waited again, another email tells about the new place.
  if (event.placeInLine !== key) return undefined
  const announced = await findAnnounced(context, email, event.id)
  if (isSeatAnnounced(event, announced)) return undefined
  return withEvent(event, context, 'You have a seat', [haveSeat(event, context), ...detailsOf(event, context), IF_NOT])
})

/** Tells an entrant of a draw its result, unless an email has told it, for example the confirmation. */
export const draw = notification<{ event: string }>(async (email, context) => {
  const event = await findEventOf(context, email.userId, email.data.event)
  const announced = await findAnnounced(context, email, email.data.event)
  if (!event || isOver(event) || event.seat.state === 'declined' || isSeatAnnounced(event, announced)) return undefined
  const isSeated = event.seat.state === 'seated'
  return withEvent(event, context, isSeated ? 'You have a seat' : 'You are waiting for a seat', [
    'The seats have been drawn.',
    ...isSeated ? [haveSeat(event, context)] : [opening(event, context), ...describeSeat(event)],
    ...detailsOf(event, context),
    isSeated ? IF_NOT : 'You get an email if a seat becomes free for you.',
  ], linkTo(`/events/${event.id}/draw`, 'See the draw, and compute it yourself', context))
})

/** An event that was deleted, or whose registration was deleted. */
interface Removal {
  event: CalendarEvent
  /** The event before a change that the user may not have been told. */
  known?: KnownEvent
}

/**
 * Returns the event with the facts that the user was last told. If the email named a date that the user does not know,
 * it could seem to cancel a different event on that date. `undefined` if the event is over at its date and at the date
 * that the user knows.
 */
async function findLastAnnounced (email: ClaimedEmail<Removal>, context: Context): Promise<CalendarEvent | undefined> {
  const { event, known } = email.data
  const announced = await findAnnounced(context, email, event.id) ?? known
  if (isOver(event) && isOver(announced ?? event)) return undefined
  if (!announced) return event
  const { title, date, club, endsAt, place } = announced
  return { ...event, title, date, club, endsAt, place }
}

/** Tells a person that the organizer has deleted the registration. */
export const seatRemoved = notification<Removal>(async (email, context) => {
  const event = await findLastAnnounced(email, context)
  // The person has registered again.
  if (!event || await findEventOf(context, email.userId, event.id)) return undefined
  return withoutEvent(event, context, 'You are no longer registered',
    sentence`The organizer of “${event.title}” of ${event.club}, on ${
      formatTimes(event, context.config)}, has taken you off the list.`)
})

/** An email that removes an event from the calendar of its reader. */
const withoutEvent = (event: CalendarEvent, context: Context, subject: string, reason: Paragraph): Content => ({
  subject: `${subject}: ${event.title}`,
  paragraphs: [
    reason, 'If the event is in your calendar, delete it there: some calendar apps do not remove it automatically.',
  ],
  calendar: calendarOf(event, 'CANCEL', context),
})

/** Says that the user is registered, waits or takes part in the draw, and when the event is. */
function opening (event: EmailedEvent, { config }: Context) {
  const times = formatTimes(event, config)
  switch (event.seat.state) {
    case 'waiting': return sentence`You are waiting for a seat at “${event.title}” of ${event.club}, on ${times}.`
    case 'drawing':
      return sentence`You take part in the draw of seats at “${event.title}” of ${event.club}, on ${times}.`
    default: return sentence`You are registered for “${event.title}” of ${event.club}, on ${times}.`
  }
}

/** Says whether the user has a seat, after `opening`, which says whether the user takes part in a draw. */
const aboutSeat = (event: EmailedEvent) => event.seat.state === 'drawing' ? [] : describeSeat(event)

/** Returns when the user will be reminded of an event with this date, or `undefined` without a reminder. */
async function findReminder ({ sql, config: { REMINDER_HOURS } }: Context, userId: string, date: string) {
  const time = new Date(Date.parse(date) - REMINDER_HOURS * 3_600_000)
  if (REMINDER_HOURS === 0 || time <= new Date()) return undefined
  return await wantsEmails(sql, userId, 'event-reminder') ? time : undefined
}

interface Change {
  event: string
  known: KnownEvent
  /** The facts of an earlier attempt that may have arrived. */
  announced?: KnownEvent
  /** When an earlier attempt began whose outcome is unknown, because its sender was killed. */
  unsureSince?: string
}

/**
 * Tells each attendee about a new title, date, end, place or club, when registration opens or closes, and when seats
 * are drawn. People with a seat are also told about a new online link. People who do not come are told about a new date
 * only, because it may suit them. The email lists the changes since the last email to that person, or since `known` if
 * there was no email.
 */
export const eventChanged = notification<Change>(async (email, context) => {
  const { userId, data } = email
  const event = await findEventOf(context, userId, data.event)
  if (!event) return undefined
  const confirmation = await findConfirmation(context, userId, event)
  if (confirmation?.attempts === 0) return undefined
  const announced = await findAnnounced(context, email, event.id)
  const before = announced ? complete(announced, data.known) : data.known
  // Between the changes of an email batch, the user has registered, and has seen facts that no email tells.
  const isOlder = !announced && data.known.at !== undefined && data.known.at < event.registeredAt
  // An earlier attempt to send this email may have arrived before the event was changed back.
  const told = data.announced && isUnchangedSince(event, before) ? complete(data.announced, before) : before
  const known = isOlder ? announcedOf(event) : told
  if (isOver(event) && isOver(known)) return undefined
  const declined = event.seat.state === 'declined'
  const corrects = isOlder || mayHaveAnnouncedElse(event, data)
  if (declined && event.date === known.date && !corrects) return undefined
  const { config } = context
  const changes = [
    event.title !== known.title && sentence`New title: “${event.title}”.`,
    event.date !== known.date && `New date: ${formatTimes(event, config)} (was ${formatTimes(known, config)}).`,
    ...changesOfDetails(event, known, context),
    ...TIMES.flatMap(name => isNewTime(event[name], known[name])
      ? describeTime(name, event, config, known[name])
      : []),
    event.clubId !== known.clubId && sentence`New organizer: ${event.club} (was ${known.club}).`,
  ].filter(change => change !== false)
  // The event was changed back, or the user already knows.
  if (changes.length === 0 && !corrects) return undefined
  // The user may have got a seat since the last email, even by a limit that was removed.
  const hadNone = announced?.seat?.state === 'waiting' || announced?.seat?.state === 'drawing'
  const [seat] = describeSeat({ ...event, isLimited: event.isLimited || hadNone })
  return {
    subject: `Changed: ${event.title}`,
    paragraphs: [
      declined
        ? sentence`“${known.title}” has changed. You said that you cannot come.`
        : sentence`“${known.title}” has changed. ${seat ?? 'You are registered for it.'}`,
      ...changes,
      ...event.date === known.date ? [`Date: ${formatTimes(event, config)}.`] : [],
      ...corrects || confirmation ? factsOf(event, known, context) : [],
      ...declined ? [] : ['If the event is in your calendar, open the attached file to update it.'],
      ...linkToEvent(event, context),
    ],
    ...!declined && { calendar: calendarOf(event, 'PUBLISH', context) },
    announced: announcedOf(event),
  }
})

/**
 * Returns the confirmation of the registration that waits, which tells the user everything. After a failed attempt, it
 * waits up to four hours, and news must not.
 */
async function findConfirmation ({ sql }: Context, userId: string, { registrationId, placeInLine }: EmailedEvent) {
  const [confirmation] = await sql<{ attempts: number }[]>`
    SELECT attempts FROM emails
    WHERE user_id = ${userId} AND template = 'registration' AND key IN (${registrationId}, ${placeInLine})
      AND status = 'pending'
    ORDER BY attempts LIMIT 1
  `
  return confirmation && await wantsEmails(sql, userId, 'registration') ? confirmation : undefined
}

/** Tells whether the recipient may have received this email, by an earlier attempt, with facts that have changed. */
const mayHaveAnnouncedElse = (event: EmailedEvent, { announced, unsureSince }: Change) =>
  (announced !== undefined && !isUnchangedSince(event, announced)) ||
  (unsureSince !== undefined && event.updatedAt >= unsureSince)

/** The facts that did not change, for a user who may have been told others, or has no confirmation. */
const factsOf = (event: EmailedEvent, known: KnownEvent, { config }: Context): Paragraph[] => [
  ...TIMES.flatMap(name => isNewTime(event[name], known[name]) ? [] : describeTime(name, event, config)),
  ...event.place === known.place ? [event.place ? sentence`Place: ${event.place}.` : 'The event has no place.'] : [],
  ...event.onlineUrl !== undefined && event.onlineUrl === known.onlineUrl
    ? [event.onlineUrl ? { text: 'Join online', href: event.onlineUrl } : 'The event is not online.']
    : [],
  ...event.clubId === known.clubId ? [sentence`Organizer: ${event.club}.`] : [],
]

/**
 * Adds what an email did not tell, because a version before 1.1 sent it, or because the user had no seat. When
 * registration opens, only emails about changes tell.
 */
function complete (announced: KnownEvent, known: KnownEvent): KnownEvent {
  const { date, endsAt, place, onlineUrl, opensAt, closesAt, drawAt } = known
  const moved = endsAt && new Date(Date.parse(announced.date) + Date.parse(endsAt) - Date.parse(date)).toISOString()
  const hadSeat = announced.seat === undefined || announced.seat.state === 'seated'
  return { endsAt: moved, place, onlineUrl: hadSeat ? onlineUrl : null, opensAt, closesAt, drawAt, ...announced }
}

/** Describes a new end, place and online link. An end that moved along with the date is not news. */
function changesOfDetails (event: EmailedEvent, known: KnownEvent, { config }: Context): (Paragraph | false)[] {
  const { date, endsAt, place, onlineUrl } = known
  const duration = (start: string, end?: string | null) => end && Date.parse(end) - Date.parse(start)
  return [
    endsAt !== undefined && duration(event.date, event.endsAt) !== duration(date, endsAt) &&
      (event.endsAt ? `New end: ${formatTime(new Date(event.endsAt), config)}.` : 'The event has no end any more.'),
    place !== undefined && event.place !== place &&
      (event.place ? sentence`New place: ${event.place}.` : 'The event has no place any more.'),
    onlineUrl !== undefined && event.onlineUrl !== undefined && event.onlineUrl !== onlineUrl &&
      (event.onlineUrl ? { text: 'New online link', href: event.onlineUrl } : 'The event is not online any more.'),
  ]
}

/** Tells whether a time that is to come is new to a person. It is not if it is not known what they were told. */
const isNewTime = (time: string | null, known?: string | null) =>
  time !== null && known !== undefined && time !== known && new Date(time) > new Date()

/** Tells whether `known` is the current state of the event. */
const isUnchangedSince = (event: EmailedEvent, known: KnownEvent) =>
  !TIMES.some(name => isNewTime(event[name], known[name])) &&
  (['title', 'date', 'clubId', 'endsAt', 'place', 'onlineUrl'] as const).every(field =>
    known[field] === undefined || event[field] === undefined || known[field] === event[field])

/** Tells all attendees that the event was deleted. The email carries the event because its row no longer exists. */
export const eventCancelled = notification<Removal>(async (email, context) => {
  const event = await findLastAnnounced(email, context)
  if (!event) return undefined
  return withoutEvent(event, context, 'Cancelled',
    sentence`“${event.title}” of ${event.club}, on ${formatTimes(event, context.config)}, has been cancelled.`)
})

/** Reminds all attendees REMINDER_HOURS before the event. */
export const eventReminder = notification<{ event: string, date: string }>(async ({ userId, data }, context) => {
  const event = await findEventOf(context, userId, data.event)
  // A moved event gets a new reminder.
  if (!event || event.date !== data.date || event.seat.state === 'declined') return undefined
  if (new Date(event.date) <= new Date()) return undefined
  return {
    subject: event.seat.state === 'waiting'
      ? `You are still waiting for a seat: ${event.title}`
      : `Reminder: ${event.title}`,
    paragraphs: [
      opening(event, context),
      ...aboutSeat(event),
      ...detailsOf(event, context),
      ...linkToEvent(event, context),
    ],
    announced: announcedOf(event),
  }
})

interface EventMessage {
  subject: string
  text: string
  title: string
  /** Is `null` if the event was deleted. */
  eventId: string | null
  /** Is `null` if the account of the sender was deleted. */
  name: string | null
  /** Is `null` also until the address is verified. */
  email: string | null
}

/**
 * Sends a message from the organizer of an event to all attendees. An accepted message outlives its event and its
 * sender.
 */
export const eventMessage = notification<{ message: string }>(async ({ data }, context) => {
  const { sql } = context
  const [message] = await sql<EventMessage[]>`
    SELECT
      subject, text, ${excerpt(sql, sql`coalesce(title, event_title)`)} AS title, event_id AS "eventId",
      CASE WHEN users.id IS NOT NULL THEN ${untrimmedName(sql)} END AS name,
      CASE WHEN email_verified_at IS NOT NULL THEN email END AS email
    FROM event_messages
      LEFT JOIN events ON events.id = event_id
      LEFT JOIN users ON users.id = sender_id
    WHERE event_messages.id = ${data.message}
  `
  if (!message) return undefined
  const { subject, text, title, eventId, name, email } = message
  return {
    subject,
    paragraphs: [
      sentence`${name ?? 'An organizer'} sent this message to everyone who comes to “${title}”:`,
      ...paragraphsOf(text),
      ...eventId ? linkToEvent({ id: eventId }, context) : [],
    ],
    ...name !== null && email !== null && { replyTo: { name, address: email } },
  }
})
