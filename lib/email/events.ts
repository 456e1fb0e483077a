import { calendarColumns } from '../database/columns.ts'
import { type CalendarEvent, type CalendarMethod, DURATION, writeInvitation } from '../icalendar.ts'
import type { ClaimedEmail, Content, Context } from './message.ts'

/** An event that an email is about. */
export interface EmailedEvent extends CalendarEvent {
  clubId: string
  /** Whether the event begins in the future. */
  isComing: boolean
  isOver: boolean
}

/** An event as a user last saw it in an email. */
export interface KnownEvent {
  title: string
  date: string
  clubId: string
  club: string
}

/** Picks the fields of an event that an email announces. */
export const announcedOf = ({ title, date, clubId, club }: EmailedEvent): KnownEvent =>
  ({ title, date, clubId, club })

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
      ${calendarColumns(sql)}, events.club_id AS "clubId", date > now() AS "isComing",
      date + ${DURATION}::interval <= now() AS "isOver"
    FROM event_registrations
      JOIN events ON events.id = event_id
      JOIN clubs ON clubs.id = events.club_id
    WHERE user_id = ${userId} AND event_id = ${eventId}
  `
  return event
}

/** Builds the calendar part of an email. */
export function calendarOf (
  event: CalendarEvent, method: CalendarMethod, { config: { FRONTEND_URL: [frontend] } }: Context
): Content['calendar'] {
  return { method, text: writeInvitation(event, method, frontend && `${frontend}/events`) }
}
