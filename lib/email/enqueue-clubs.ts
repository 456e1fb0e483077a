import type { PendingQuery, Row } from 'postgres'

import { isOrganizer } from '../clubs/members.ts'
import type { AnySql } from '../database/pools.ts'
import { NEWS, REQUESTS } from './batches.ts'
import { isNotified } from './notifications.ts'
import type { Outbox } from './outbox.ts'
import type { ClubDecision } from './templates/club.ts'

/**
 * SQL statement that enqueues an email about new events of a club, without past events. Members get it if they want it,
 * but not the author of the events. The query `events` has the columns `club_id`, `date` and `created_at`.
 */
export const enqueueNews = (
  sql: AnySql, outbox: Outbox, events: PendingQuery<Row[]>, userId: string | null
) => outbox.enqueueBatch('club-news', sql`
  SELECT
    club_id::text AS key, NULL::uuid AS event_id,
    jsonb_build_object('club', club_id, 'since', min(created_at)) AS data,
    ARRAY(
      SELECT user_id FROM club_members AS members
      WHERE members.club_id = added.club_id AND state = 'member' AND news
        AND user_id IS DISTINCT FROM ${userId}
    ) AS user_ids
  FROM (${events}) AS added WHERE date > now() GROUP BY club_id
`, userId, NEWS)

/** SQL statement that enqueues an email to a member, or to somebody who was refused, about a decision of a user. */
export const enqueueClubDecision = (
  sql: AnySql, outbox: Outbox,
  { userId, clubId, kind }: { userId: string, clubId: string, kind: ClubDecision['kind'] }, actorId: string
) => outbox.enqueue('club-decision', sql`
  SELECT
    user_id,
    -- An office that is offered and withdrawn again and again is told once a day, unless an email told a different
    -- decision in between.
    CASE ${kind}::text
      WHEN 'offered' THEN concat_ws(' ', club_id, offered, (offered_at AT TIME ZONE 'UTC')::date, (
        SELECT id FROM emails
        WHERE emails.user_id = ${userId} AND template = 'club-decision' AND data ->> 'club' = ${clubId}
          AND data ->> 'kind' <> 'offered'
        ORDER BY id DESC LIMIT 1
      ))
    END AS key,
    jsonb_build_object('club', club_id, 'kind', ${kind}::text, 'office', offered, 'at', iso8601(changed_at)) AS data
  FROM club_members
  WHERE user_id = ${userId} AND club_id = ${clubId}
`, actorId)

/**
 * SQL statement that enqueues an email about the requests to join a club. It goes to its organizers. Before it is sent,
 * all of them may leave or turn it off, so admins are recipients as well: the template decides who needs it.
 */
export const enqueueRequests = (
  sql: AnySql, outbox: Pick<Outbox, 'enqueueBatch'>, clubId: string, cause: string | null,
  isMeant = sql`true`
) => outbox.enqueueBatch('club-request', sql`
  SELECT
    clubs.id::text AS key, NULL::uuid AS event_id, jsonb_build_object('club', clubs.id) AS data,
    ARRAY(SELECT users.id FROM users WHERE role = 'ADMIN' OR club_id = clubs.id AND ${isOrganizer(sql)}) AS user_ids
  FROM clubs WHERE clubs.id = ${clubId} AND ${isMeant}
`, cause, REQUESTS)

/** The same after an office has ended, if no organizer who is left gets emails about requests. */
export const enqueueLeftRequests = (
  sql: AnySql, outbox: Pick<Outbox, 'enqueueBatch'>, clubId: string, cause: string | null
) => enqueueRequests(sql, outbox, clubId, cause, sql`
  EXISTS (SELECT FROM club_members WHERE club_id = clubs.id AND state = 'requested')
  AND NOT EXISTS (
    SELECT FROM users WHERE club_id = clubs.id AND ${isOrganizer(sql)} AND ${isNotified(sql, 'club-request')}
  )
`)
