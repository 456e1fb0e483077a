import type { PendingQuery, Row } from 'postgres'

import type { Sql } from '../database/client.ts'
import { NEWS } from './batches.ts'
import type { Outbox } from './outbox.ts'

/**
 * SQL statement that enqueues an email about new events of a club, without past events. Members get it if they want it,
 * but not the author of the events. The query `events` has the columns `club_id`, `date` and `created_at`.
 */
export const enqueueNews = (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>, events: PendingQuery<Row[]>, userId: string
) => outbox.enqueueBatch('club-news', sql`
  SELECT
    club_id::text AS key, NULL::uuid AS event_id,
    jsonb_build_object('club', club_id, 'since', min(created_at)) AS data,
    ARRAY(
      SELECT user_id FROM club_members AS members
      WHERE members.club_id = added.club_id AND state = 'member' AND news AND user_id <> ${userId}
    ) AS user_ids
  FROM (${events}) AS added WHERE date > now() GROUP BY club_id
`, userId, NEWS)
