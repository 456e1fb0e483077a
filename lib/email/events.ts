import { calendarColumns, withDetails } from '../agenda/details.ts'
import { type CalendarEvent, type CalendarMethod, writeInvitation } from '../agenda/icalendar.ts'
import { placeInLine, type Seat, withSeat } from '../agenda/seats.ts'
import type { ClaimedEmail, Content, Context } from './message.ts'

/** An event that an email is about. */
export interface EmailedEvent extends CalendarEvent {
  registrationId: string
  clubId: string
  seat: Seat
  /** Identifies the place of the user in line; null if the user does not come. */
  placeInLine: string | null
  /** Whether the number of seats is limited. */
  isLimited: boolean
}

/** An event as a user last saw it in an email. */
export interface KnownEvent {
  title: string
  date: string
  clubId: string
  club: string
  /** Missing in emails of versions before 1.1. */
  endsAt?: string | null
  place?: string | null
}

/** Picks the fields of an event that an email announces. */
export const announcedOf = ({ title, date, clubId, club, endsAt, place }: EmailedEvent): KnownEvent =>
  ({ title, date, clubId, club, endsAt, place })

/**
 * Returns the event as the user's previous email announced it; `undefined` without one, or if its sender was killed.
 */
export async function findAnnounced (
  { sql }: Pick<Context, 'sql'>, { id, userId }: Pick<ClaimedEmail, 'id' | 'userId'>, eventId: string
) {
  const [last] = await sql<{ announced: KnownEvent | null }[]>`
    SELECT data -> 'announced' AS announced FROM emails
    WHERE user_id = ${userId} AND template IN ('registration', 'event-changed') AND data ->> 'event' = ${eventId}
      AND status IN ('pending', 'sent') AND claimed_at IS NOT NULL AND id <> ${id}
    ORDER BY claimed_at DESC LIMIT 1
  `
  return last?.announced
}

/** Finds an event; `undefined` if it was deleted or the user is not registered for it. */
export async function findEventOf ({ sql }: Pick<Context, 'sql'>, userId: string, eventId: string) {
  const [event] = await sql<EmailedEvent[]>`
    SELECT
      ${calendarColumns(sql)}, registrations.id AS "registrationId", events.club_id AS "clubId",
      capacity IS NOT NULL AS "isLimited", seat, seat ->> 'state' = 'waiting' AS "isWaiting",
      ${placeInLine(sql, sql`${userId}`, sql`${eventId}`)} AS "placeInLine"
    FROM event_registrations AS registrations
      JOIN events ON events.id = registrations.event_id
      JOIN clubs ON clubs.id = events.club_id
      ${withDetails(sql)}
      ${withSeat(sql)}
    WHERE user_id = ${userId} AND events.id = ${eventId}
  `
  return event
}

/** Builds the calendar part of an email. */
export function calendarOf (
  event: CalendarEvent, method: CalendarMethod, { config: { FRONTEND_URL: [frontend] } }: Context
): Content['calendar'] {
  return { method, text: writeInvitation(event, method, frontend && `${frontend}/events`) }
}

/** A link to the page of an event, if the app is known. */
export const linkTo = ({ id }: CalendarEvent, { config: { FRONTEND_URL: [frontend] } }: Context) =>
  frontend ? [{ text: 'Open the page of the event', href: `${frontend}/events/${id}` }] : []

const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth']
const SUFFIXES: Record<string, string> = { one: 'st', two: 'nd', few: 'rd', other: 'th' }

/** Writes an ordinal number: `third`, `21st`. */
export function ordinal (position: number) {
  const suffix = SUFFIXES[new Intl.PluralRules('en', { type: 'ordinal' }).select(position)]
  return ORDINALS[position - 1] ?? `${position}${suffix}`
}

/** Says whether the user has a seat. Nothing if the number of seats is not limited. */
export function describeSeat ({ isLimited, seat }: EmailedEvent) {
  if (seat.state === 'waiting') return [`You do not have a seat yet: you are ${ordinal(seat.position!)} in line.`]
  return isLimited ? ['You have a seat.'] : []
}

/** The seat that the confirmation of a registration told. */
export interface ToldSeat {
  state: string
  placeInLine: string | null
}

/** Tells whether the confirmation of the registration said that the user has this seat. */
export async function wasTold ({ sql }: Pick<Context, 'sql'>, userId: string, { id, placeInLine }: EmailedEvent) {
  const seat = { state: 'seated', placeInLine } satisfies ToldSeat
  const { count } = await sql`
    SELECT FROM emails
    WHERE user_id = ${userId} AND template = 'registration' AND data ->> 'event' = ${id}
      AND data -> 'announced' -> 'seat' = ${JSON.stringify(seat)}::text::jsonb
  `
  return count > 0
}
