import type { PendingQuery, Row } from 'postgres'

import { endOf, withDetails } from '../../agenda/details.ts'
import { isOrganizer, offerColumns, officeOf } from '../../clubs/members.ts'
import type { Office } from '../../clubs/offices.ts'
import { excerpt, untrimmedName } from '../../database/columns.ts'
import { paragraphsOf } from '../../values/formats.ts'
import { formatTime, formatTimes, linkTo, sentence } from '../content.ts'
import { isNotified, notification } from '../notifications.ts'

/**
 * Tells organizers about requests to join their club, or admins if no organizer gets an email of this batch or a later
 * one. No request is left if they have decided before. Of two emails that have waited, the later one says everything.
 */
export const clubRequest = notification<{ club: string }>(async ({ id, userId, data, createdAt }, context) => {
  const { sql } = context
  const emailsOf = (user: PendingQuery<Row[]>) => sql`
    SELECT FROM emails
    WHERE emails.user_id = ${user} AND template = 'club-request' AND emails.data ->> 'club' = ${data.club}
      AND status <> 'failed'
  `
  const requests = await sql<{ club: string, name: string }[]>`
    SELECT clubs.name AS club, ${untrimmedName(sql)} AS name
    FROM club_members AS members JOIN clubs ON clubs.id = members.club_id JOIN users ON users.id = members.user_id
    WHERE clubs.id = ${data.club} AND state = 'requested'
      AND EXISTS (
        SELECT FROM users WHERE users.id = ${userId} AND (${isOrganizer(sql)} OR role = 'ADMIN' AND NOT EXISTS (
          SELECT FROM users WHERE club_id = clubs.id AND ${isOrganizer(sql)} AND ${isNotified(sql, 'club-request')}
            AND EXISTS (${emailsOf(sql`users.id`)} AND emails.created_at >= ${createdAt})
        ))
      )
      AND NOT EXISTS (${emailsOf(sql`${userId}`)} AND emails.id > ${id})
    ORDER BY changed_at, users.id LIMIT ${SHOWN + 1}
  `
  const [first] = requests
  if (!first) return undefined
  return {
    subject: `Requests to join ${first.club}`,
    paragraphs: [
      sentence`These people ask to join ${first.club}:`,
      ...requests.slice(0, SHOWN).map(({ name }) => sentence`${name}`),
      ...requests.length > SHOWN ? ['There are more requests.'] : [],
      ...linkTo(`/clubs/${data.club}/members`, 'Decide about the requests', context),
    ],
  }
})

/** The most people or events that an email names. */
const SHOWN = 20

interface NewEvent {
  id: string
  club: string
  title: string
  date: string
  endsAt: string | null
  place: string | null
}

/**
 * Tells members about the events of their club that were created since a time and have not begun. Leaves out events
 * that an earlier email has named: that email may have waited, and so include events that are newer than the time.
 *
 * It reads and remembers only the events that it names. With all 50,000 new events of a club, a sender of 40 such
 * emails grew to 716 MB, they stored 46 MB, and the next email took longer than a statement may.
 */
export const clubNews = notification<{ club: string, since: string }>(async ({ id, userId, data }, context) => {
  const { sql, config } = context
  const events = await sql<NewEvent[]>`
    SELECT
      events.id, clubs.name AS club, ${excerpt(sql, sql`title`)} AS title,
      iso8601(date) AS date, iso8601(${endOf(sql)}) AS "endsAt", place
    FROM (
      -- First, so that PostgreSQL reads the titles of these events only. All of them can be 250 MB.
      SELECT * FROM events
      WHERE club_id = ${data.club} AND created_at >= ${data.since}::text::timestamptz AND date > now()
        AND EXISTS (
          SELECT FROM club_members AS members
          WHERE members.user_id = ${userId} AND members.club_id = events.club_id AND state = 'member' AND news
        )
        AND id NOT IN (
          SELECT jsonb_array_elements_text(emails.data #> '{announced,events}')::uuid FROM emails
          WHERE emails.user_id = ${userId} AND template = 'club-news' AND emails.id <> ${id}
        )
      ORDER BY date, id LIMIT ${SHOWN + 1}
    ) AS events JOIN clubs ON clubs.id = club_id ${withDetails(sql)}
    ORDER BY events.date, events.id
  `
  const [first] = events
  if (!first) return undefined
  const { club } = first
  const named = events.slice(0, SHOWN)
  return {
    subject: events.length === 1 ? `${club}: ${first.title}` : `New events of ${club}`,
    paragraphs: [
      events.length === 1 ? sentence`${club} has a new event:` : sentence`${club} has new events:`,
      ...named.map(event => event.place === null
        ? sentence`“${event.title}”, on ${formatTimes(event, config)}.`
        : sentence`“${event.title}”, on ${formatTimes(event, config)}. Place: ${event.place}.`),
      ...events.length > SHOWN ? ['There are more new events.'] : [],
      ...linkTo(`/clubs/${data.club}`, 'Open the page of the club', context),
    ],
    announced: { events: named.map(event => event.id) },
  }
})

/** A decision about a membership or an office. */
export interface ClubDecision {
  club: string
  kind: 'accepted' | 'refused' | 'removed' | 'offered' | 'demoted' | 'ended'
  /** The office that is offered. */
  office: Office | null
  /** When the state of the membership began. */
  at: string
}

/** Tells a person what an organizer has decided about their membership or office. */
export const clubDecision = notification<ClubDecision>(async ({ userId, data }, context) => {
  const { club: id, kind, office, at } = data
  const { sql, config } = context
  const [now] = await sql<{
    club: string,
    state: string,
    reason: string | null,
    office: string | null,
    offered: Office | null,
    offeredUntil: string | null,
    since: string
  }[]>`
    SELECT
      clubs.name AS club, state, reason, ${officeOf(sql)} AS office, ${offerColumns(sql, sql`now()`)},
      iso8601(changed_at) AS since
    FROM club_members AS members JOIN clubs ON clubs.id = members.club_id JOIN users ON users.id = members.user_id
    WHERE members.user_id = ${userId} AND clubs.id = ${id}
  `
  if (!now) return undefined
  const { club } = now
  // A later decision has an email of its own.
  const isRefused = now.state === 'refused' && now.since === at
  const isCurrent = {
    accepted: now.state === 'member' && now.since === at,
    refused: isRefused,
    removed: isRefused,
    offered: now.offered !== null && now.offered === office,
    demoted: now.office === 'deputy',
    ended: now.state === 'member' && now.office === null,
  }[kind]
  if (!isCurrent) return undefined
  const reason = now.reason === null ? [] : ['The organizers wrote:', ...paragraphsOf(now.reason)]
  switch (kind) {
    case 'accepted': return {
      subject: `You are a member of ${club}`,
      paragraphs: [sentence`You are a member of ${club} now.`, ...linkTo(`/clubs/${id}`, 'Open the club', context)],
    }
    case 'refused': return {
      subject: `Your request to join ${club}`,
      paragraphs: [sentence`The organizers of ${club} did not accept your request.`, ...reason, ASK_AGAIN],
    }
    case 'removed': return {
      subject: `You are no longer a member of ${club}`,
      paragraphs: [sentence`The organizers of ${club} have ended your membership.`, ...reason, ASK_AGAIN],
    }
    case 'offered': return {
      subject: `Will you ${now.offered === 'head' ? 'lead' : 'help to run'} ${club}?`,
      paragraphs: [
        now.offered === 'head'
          ? sentence`You are asked to become the head of ${club}.`
          : sentence`You are asked to become a deputy of ${club}, who organizes it together with others.`,
        'If you accept, your name, picture and email address become public as an organizer.',
        `You can answer until ${formatTime(new Date(now.offeredUntil!), config)}.`,
        ...linkTo('/me', 'Accept or decline', context),
      ],
    }
    case 'demoted': return {
      subject: `You are a deputy of ${club}`,
      paragraphs: [
        sentence`You are now a deputy of ${club}, and no longer its head.`,
        ...linkTo(`/clubs/${id}`, 'Open the club', context),
      ],
    }
    case 'ended': return {
      subject: `You no longer organize ${club}`,
      paragraphs: [sentence`Your office in ${club} has ended. You are still a member.`],
    }
  }
})

const ASK_AGAIN = 'You can ask again after a week.'
