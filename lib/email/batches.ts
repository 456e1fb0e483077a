import type { PendingQuery, Row } from 'postgres'

import { comes, placeInLine } from '../agenda/seats.ts'
import type { AnySql, Sql } from '../database/pools.ts'
import { arrayOf } from '../database/columns.ts'
import { retryConflict } from '../database/conflicts.ts'
import { templates } from './templates.ts'
import { dueEmails, enqueueEmails, isCauseIdle, causeOfBatch, untriedEmail } from './emails.ts'
import { isNotified, type NotificationTemplate } from './notifications.ts'

/** When the emails of a batch are written. */
export interface BatchTimes {
  /** Seconds until the batch is due. */
  delaySeconds?: number
  /** Minimum seconds since the emails of the previous batch with this template and key. */
  pauseSeconds?: number
}

/** Requests to join a club within ten minutes share an email. At least a day passes between two emails. */
export const REQUESTS: BatchTimes = { delaySeconds: 600, pauseSeconds: 86_400 }

/** New events of a club within 15 minutes share an email. At least a day passes between two emails. */
export const NEWS: BatchTimes = { delaySeconds: 900, pauseSeconds: 86_400 }

/**
 * SQL statement that enqueues email batches, and returns the number of users of each as `count`. Use it as a CTE of the
 * statement that causes the batches. If that statement wrote the emails itself, a change of an event with 10,000
 * attendees would take 280 ms longer instead of 20 ms, and would send an email for each correction.
 *
 * The query `batches` has the columns `key` (text), `data` (jsonb), `event_id` (uuid, deleting this event deletes the
 * batch) and `user_ids` (uuid[]). Only users with these emails turned on are kept; a batch without any is not written.
 *
 * If a batch with this template and key is waiting, the new users are added to it. The batch keeps its time and its
 * data, unless the new data have an earlier time `since`. If the emails of this batch were written, it starts again
 * with the new users. `cause` is the same as for `enqueueEmails`.
 */
export const enqueueBatch = (
  sql: Sql, template: NotificationTemplate, batches: PendingQuery<Row[]>, cause: string | null | PendingQuery<Row[]>,
  { delaySeconds = 0, pauseSeconds = 0 }: BatchTimes = {}
) => sql`
  INSERT INTO email_batches AS known (template, key, data, event_id, user_ids, caused_by, due_at)
  SELECT
    ${template}, key, data, event_id, notified.ids, ${cause},
    statement_timestamp() + make_interval(secs => ${delaySeconds})
  FROM (${batches}) AS caused CROSS JOIN LATERAL (
    SELECT array_agg(users.id ORDER BY place)
    FROM unnest(user_ids) WITH ORDINALITY AS recipient (id, place) JOIN users ON users.id = recipient.id
    WHERE ${isNotified(sql, template)}
  ) AS notified (ids)
  WHERE notified.ids IS NOT NULL
  ON CONFLICT (template, key) DO UPDATE SET
    -- A sender that has read the old row will not find its id.
    id = excluded.id,
    -- Version 1.0.0 writes a batch in parts. The users who are left wait with the new users.
    user_ids = ARRAY(SELECT DISTINCT unnest(known.user_ids[known.next:] || excluded.user_ids)),
    caused_by = excluded.caused_by,
    next = 1,
    data = CASE
      WHEN known.due_at = 'infinity'
        OR (excluded.data ->> 'since')::timestamptz < (known.data ->> 'since')::timestamptz THEN excluded.data
      ELSE known.data END,
    due_at = CASE WHEN known.next = 1 THEN known.due_at
      ELSE greatest(excluded.due_at, known.told_at + make_interval(secs => ${pauseSeconds})) END
  RETURNING cardinality(user_ids) AS count
`

/** Number of emails that are written at once. Sending them takes a minute at the default of MAIL_RATE. */
const PART = 600

/**
 * Batches whose next emails can be written: they are due, and no emails of the same cause wait or are being sent. An
 * email that is being sent may not contain the news of the batch, and its outcome is not known. Instances of a newer
 * version handle templates that this version does not know.
 */
const dueBatches = (sql: AnySql) => sql`
  FROM email_batches
  WHERE due_at <= now() AND template IN ${sql(Object.keys(templates))} AND ${isCauseIdle(sql)}
`

/** The next users of a batch to write emails to. */
const nextUsers = (sql: AnySql) => sql`unnest(user_ids[next:next + ${PART - 1}])`

/**
 * Writes the next emails of due batches: from the oldest batch of each cause, then from the second oldest batches,
 * until PART emails are written. Skips batches that a different sender is writing.
 *
 * The key allows a user one reminder per event date, one email per seat and one email per draw. Emails about a seat or
 * a draw are written even if a confirmation waits, because an instance of version 1.0.0 may send it without the seat.
 * If the confirmation told the seat, the email is dropped when it is composed. In other batches, users whose email
 * about the same event is still waiting are skipped, because this email will be composed later and include the news.
 */
export function writeEmails (sql: Sql) {
  return retryConflict(() => sql.begin(async sql => {
    const due = await sql<{ id: string, next: number }[]>`
      SELECT id, next FROM (
        SELECT id, next, size, sum(size) OVER (ORDER BY turn, due_at, id) AS total FROM (
          SELECT id, next, due_at, least(cardinality(user_ids) - next + 1, ${PART}) AS size,
            row_number() OVER (PARTITION BY ${causeOfBatch(sql)} ORDER BY due_at, id) AS turn
          ${dueBatches(sql)}
        ) AS batches
      ) AS ordered WHERE total - size < ${PART}
    `
    if (due.length === 0) return
    const chosen = sql`
      email_batches JOIN jsonb_to_recordset(${JSON.stringify(due)}::text::jsonb) AS due (id uuid, next integer)
        USING (id, next)
    `
    // Users are locked before the batches to prevent a deadlock: an erasure may hold a user and wait for the event,
    // whose change waits for the batch.
    await sql`
      WITH recipients AS (
        SELECT FROM users WHERE id IN (SELECT ${nextUsers(sql)} FROM ${chosen}) ORDER BY id FOR KEY SHARE
      )
      SELECT count(*) FROM recipients
    `
    // Changes of seats wait. Otherwise, an email about an earlier place in line could replace an email about the
    // present place, see migrations/20261130120000000_superseded-emails.sql.
    await sql`
      SELECT FROM events WHERE id IN (SELECT event_id FROM ${chosen} WHERE template = 'seat')
      ORDER BY id FOR KEY SHARE
    `
    const batches = await sql<{ id: string, template: NotificationTemplate }[]>`
      SELECT id, template FROM ${chosen} FOR UPDATE OF email_batches SKIP LOCKED
    `
    if (batches.length === 0) return
    const isChosen = sql`email_batches.id = ANY (${arrayOf(batches.map(({ id }) => id))}::uuid[])`
    for (const template of new Set(batches.map(({ template }) => template))) {
      await sql`${enqueueEmails(sql, template, sql`
        SELECT recipient AS user_id, data, caused_by, CASE template
          WHEN 'event-reminder' THEN concat_ws(' ', data ->> 'event', data ->> 'date')
          WHEN 'draw' THEN data ->> 'event'
          WHEN 'seat' THEN ${placeInLine(sql, sql`recipient`, sql`email_batches.event_id`)}
        END AS key
        FROM email_batches CROSS JOIN LATERAL ${nextUsers(sql)} AS recipient
        WHERE ${isChosen} AND template = ${template} AND (
          template IN ('event-reminder', 'seat', 'draw')
            OR NOT EXISTS (${untriedEmail(sql, template, sql`recipient`, sql`email_batches.data ->> 'event'`)})
        )
      `, sql`caused_by`)}`
    }
    // The remaining users get a batch without a key: later news starts a new round, which must not delay this one.
    await sql`
      WITH rest AS (
        INSERT INTO email_batches (template, data, event_id, user_ids, caused_by, due_at)
        SELECT template, data, event_id, user_ids[next + ${PART}:], caused_by, now() FROM email_batches
        WHERE ${isChosen} AND cardinality(user_ids) >= next + ${PART}
      )
      UPDATE email_batches SET
        user_ids = user_ids[:next + ${PART - 1}],
        next = next + ${PART},
        told_at = CASE WHEN next = 1 THEN now() ELSE told_at END,
        due_at = 'infinity'
      WHERE ${isChosen}
    `
    await sql`
      DELETE FROM email_batches WHERE id IN (
        SELECT id FROM email_batches
        WHERE due_at = 'infinity' AND told_at < now() - interval '1 day' LIMIT 100 FOR UPDATE SKIP LOCKED
      )
    `
  }))
}

/** Number of events whose reminders are written at once. */
const BATCH_EVENTS = 20

const interval = (sql: AnySql, hours: number) => sql`make_interval(hours => ${hours})`

/** Events that begin within this number of hours and whose reminders have not been written; empty for 0. */
const dueReminders = (sql: AnySql, hours: number) => sql`
  FROM events
  WHERE date > now() AND date <= now() + ${interval(sql, hours)}
    AND NOT EXISTS (SELECT FROM event_reminders WHERE event_id = events.id)
`

/**
 * SQL statement that writes reminders of some events. A registration after the reminder was due gets none, because its
 * confirmation is recent. The key of `event_reminders` ensures that one sender does this, once per date of an event.
 * Clubs take turns.
 */
export const writeReminders = (sql: Sql, hours: number) => sql`
  WITH due AS (
    SELECT id, date, club_id ${dueReminders(sql, hours)} ORDER BY date LIMIT ${BATCH_EVENTS}
    FOR KEY SHARE OF events SKIP LOCKED
  ), reminded AS (
    INSERT INTO event_reminders (event_id) SELECT id FROM due ON CONFLICT (event_id) DO NOTHING RETURNING event_id
  )
  ${enqueueBatch(sql, 'event-reminder', sql`
    SELECT
      concat(id, ' ', iso8601(date)) AS key,
      jsonb_build_object('event', id, 'date', iso8601(date)) AS data,
      id AS event_id,
      club_id::text AS caused_by,
      ARRAY(
        SELECT user_id FROM event_registrations AS registrations
        WHERE registrations.event_id = due.id AND registered_at < date - ${interval(sql, hours)} AND ${comes(sql)}
      ) AS user_ids
    FROM due JOIN reminded ON reminded.event_id = due.id
  `, sql`caused_by`)}
`

/** Tells which emails are due to be sent, and which are due to be written. Only reads. */
export async function findWork (sql: Sql, reminderHours: number) {
  const [found] = await sql<[Record<'account' | 'bulk' | 'batch' | 'reminder', boolean>]>`
    SELECT
      EXISTS (SELECT FROM emails WHERE ${dueEmails(sql)} AND NOT bulk) AS account,
      EXISTS (SELECT FROM emails WHERE ${dueEmails(sql)} AND bulk) AS bulk,
      EXISTS (SELECT ${dueBatches(sql)}) AS batch,
      EXISTS (SELECT ${dueReminders(sql, reminderHours)}) AS reminder
  `
  return found
}
