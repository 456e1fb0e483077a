import type { PendingQuery, Row } from 'postgres'

import { calendarColumns, waitingDraw, withDetails } from '../agenda/details.ts'
import { type CalendarEvent, type CalendarMethod, writeInvitation } from '../agenda/icalendar.ts'
import { isTentative, placeInLine, type Seat, type SeatState, withSeat } from '../agenda/seats.ts'
import type { Config } from '../config/config.ts'
import type { AnySql } from '../database/pools.ts'
import {
  type ClaimedEmail, type Content, type Context, formatTime, linkTo, type Paragraph, sentence,
} from './content.ts'

/** An event that an email is about. */
export interface EmailedEvent extends CalendarEvent {
  registrationId: string
  registeredAt: string
  clubId: string
  seat: Seat
  opensAt: string | null
  closesAt: string | null
  /** When the seats will be drawn. */
  drawAt: string | null
  /** Identifies the place of the user in line; null if the user does not come. */
  placeInLine: string | null
  /** Whether the number of seats is limited. */
  isLimited: boolean
}

/**
 * An event as a user last saw it in an email. Without this record, 200 people who registered while the SMTP server was
 * away got 400 emails: the confirmation with the new date of the event, and then the change of the date.
 */
export interface KnownEvent {
  title: string
  date: string
  clubId: string
  club: string
  /** Missing in emails of versions before 1.1. */
  endsAt?: string | null
  place?: string | null
  /** Missing in emails of versions before 1.1, and in emails to users without a seat. */
  onlineUrl?: string | null
  /** Missing in emails, because only an email about a change tells it. */
  opensAt?: string | null
  /** Missing in emails of versions before 1.1. */
  closesAt?: string | null
  drawAt?: string | null
  seat?: AnnouncedSeat
  /** When an attempt announced it, or when it held. Missing in emails of versions before 1.1. */
  at?: string
}

/** The seat that an email announced. */
interface AnnouncedSeat {
  state: SeatState
  placeInLine: string | null
}

/** Picks the fields of an event that an email announces. */
export const announcedOf = (event: EmailedEvent): KnownEvent => {
  const { title, date, clubId, club, endsAt, place, onlineUrl, closesAt, drawAt, seat: { state }, placeInLine } = event
  return { title, date, clubId, club, endsAt, place, onlineUrl, closesAt, drawAt, seat: { state, placeInLine } }
}

/** SQL: when an email announced something. */
const announcedAt = (sql: AnySql) => sql`coalesce(data #>> '{announced,at}', iso8601(claimed_at))`

/**
 * SQL query: what the last email about an event told a user, as jsonb; no row without an email. Ignores emails that are
 * being sent, and emails whose sender was killed, because they may not have arrived. Also ignores emails about an
 * earlier registration of the user, who has seen newer facts when they registered again.
 */
export const lastAnnounced = (
  sql: AnySql, userId: PendingQuery<Row[]>, eventId: PendingQuery<Row[]>, but: string | null = null
) => sql`
  SELECT data -> 'announced' AS announced FROM emails
  WHERE user_id = ${userId} AND template IN ('registration', 'seat', 'draw', 'event-changed', 'event-reminder')
    AND data ->> 'event' = ${eventId}::text
    AND status IN ('pending', 'sent') AND data -> 'announced' IS NOT NULL AND id IS DISTINCT FROM ${but}
    AND ${announcedAt(sql)} >= coalesce((
      SELECT iso8601(registered_at) FROM event_registrations AS latest
      WHERE latest.user_id = ${userId} AND latest.event_id = ${eventId}
    ), '')
  ORDER BY ${announcedAt(sql)} DESC LIMIT 1
`

/** Returns the event as the user's previous email announced it; `undefined` without one. */
export async function findAnnounced (
  { sql }: Pick<Context, 'sql'>, { id, userId }: Pick<ClaimedEmail, 'id' | 'userId'>, eventId: string
) {
  const [last] = await sql<{ announced: KnownEvent }[]>`
    ${lastAnnounced(sql, sql`${userId}`, sql`${eventId}`, id)}
  `
  return last?.announced
}

/** Finds an event; `undefined` if it was deleted or the user is not registered for it. */
export async function findEventOf ({ sql }: Pick<Context, 'sql'>, userId: string, eventId: string) {
  const [event] = await sql<EmailedEvent[]>`
    SELECT
      ${calendarColumns(sql)}, registrations.id AS "registrationId",
      iso8601(registered_at) AS "registeredAt", events.club_id AS "clubId",
      capacity IS NOT NULL AS "isLimited", seat, ${isTentative(sql)} AS "isTentative", online_url AS "onlineUrl",
      iso8601(opens_at) AS "opensAt", iso8601(closes_at) AS "closesAt", ${waitingDraw(sql)} AS "drawAt",
      ${placeInLine(sql, sql`${userId}`, sql`${eventId}`)} AS "placeInLine"
    FROM event_registrations AS registrations
      JOIN events ON events.id = registrations.event_id
      JOIN clubs ON clubs.id = events.club_id
      ${withDetails(sql)}
      ${withSeat(sql)}
    WHERE user_id = ${userId} AND events.id = ${eventId}
  `
  // Only people with a seat see the link.
  if (event && event.seat.state !== 'seated') delete event.onlineUrl
  return event
}

/** Builds the calendar part of an email. */
export function calendarOf (
  event: CalendarEvent, method: CalendarMethod, { config: { FRONTEND_URL: [frontend] } }: Context
): Content['calendar'] {
  return { method, text: writeInvitation(event, method, frontend && `${frontend}/events`) }
}

/** A link to the page of an event, if the app is known. */
export const linkToEvent = ({ id }: Pick<CalendarEvent, 'id'>, context: Context) =>
  linkTo(`/events/${id}`, 'Open the page of the event', context)

/** Where an event is, and times that are to come. The link is only for people with a seat. */
export const detailsOf = (event: EmailedEvent, { config }: Context): Paragraph[] => [
  ...describeTime('drawAt', event, config),
  ...describeTime('closesAt', event, config),
  ...event.place ? [sentence`Place: ${event.place}.`] : [],
  ...event.onlineUrl ? [{ text: 'Join online', href: event.onlineUrl }] : [],
]

/** Times of an event, other than its start and end. */
export const TIMES = ['drawAt', 'opensAt', 'closesAt'] as const

/** Says what happens at a time that is to come, and when the user was told that it happens. */
export function describeTime (name: typeof TIMES[number], event: EmailedEvent, config: Config, known?: string | null) {
  const time = event[name]
  if (!time || new Date(time) <= new Date()) return []
  const was = known ? ` (was ${formatTime(new Date(known), config)})` : ''
  const words = formatTime(new Date(time), config) + was
  if (name === 'opensAt') return [`Registration opens on ${words}.`]
  if (name === 'closesAt') return [`Registration closes on ${words}.`]
  if (was) return [`New time of the draw: ${words}.`]
  return event.seat.state === 'drawing'
    ? [`The seats are drawn on ${words}. You get an email then.`]
    : [`The free seats will be drawn on ${words}.`]
}

/** Says whether the user has a seat. Nothing if the number of seats is not limited. */
export function describeSeat ({ isLimited, seat }: EmailedEvent) {
  if (seat.state === 'waiting') return [`You do not have a seat yet: you are number ${seat.position} in line.`]
  if (seat.state === 'drawing') return ['You take part in the draw of seats.']
  return isLimited ? ['You have a seat.'] : []
}
