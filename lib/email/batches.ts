import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { comes, placeInLine } from '../agenda/seats.ts'
import type { Sql } from '../database/client.ts'
import { retryConflict } from '../database/conflicts.ts'
import { type TemplateName, templates } from './templates.ts'
import { dueEmails, enqueueEmails } from './emails.ts'

/** When the emails of a batch are written. */
export interface BatchTimes {
  /** Seconds until the batch is due. */
  delaySeconds?: number
  /** Minimum seconds since the emails of the previous batch with this template and key. */
  pauseSeconds?: number
}

/** Changes of an event within two minutes share an email. At least 15 minutes pass between two emails. */
export const CHANGES: BatchTimes = { delaySeconds: 120, pauseSeconds: 900 }

/**
 * SQL statement that enqueues an email batch. Use it as a CTE of the statement that causes the batch. The query `batch`
 * has the columns `key` (text), `data` (jsonb), `event_id` (uuid, deleting this event deletes the batch) and `user_ids`
 * (uuid[]). If a batch with this template and key is waiting, it keeps its data and time but gets the new users. If its
 * emails are being written, the batch starts again.
 */
export const enqueueBatch = (
  sql: Sql, template: TemplateName, batch: PendingQuery<Row[]>, { delaySeconds = 0, pauseSeconds = 0 }: BatchTimes = {}
) => sql`
  INSERT INTO email_batches AS known (template, key, data, event_id, user_ids, due_at)
  SELECT ${template}, key, data, event_id, user_ids, statement_timestamp() + make_interval(secs => ${delaySeconds})
  FROM (${batch}) AS caused WHERE cardinality(user_ids) > 0
  ON CONFLICT (template, key) DO UPDATE SET
    -- A sender that has read the old row will not find its id.
    id = excluded.id,
    user_ids = excluded.user_ids,
    next = 1,
    data = CASE WHEN known.due_at = 'infinity' THEN excluded.data ELSE known.data END,
    due_at = CASE WHEN known.next = 1 THEN known.due_at
      ELSE greatest(excluded.due_at, known.told_at + make_interval(secs => ${pauseSeconds})) END
  RETURNING id
`

/** Number of emails of a batch that are written at once, if no other bulk emails wait. Sending them takes a minute. */
const BATCH_EMAILS = 600

/** Batches that are due. Instances of a newer version handle templates that this version does not know. */
const dueBatches = (sql: Sql | TransactionSql) => sql`
  FROM email_batches WHERE due_at <= now() AND template IN ${sql(Object.keys(templates))}
`

/** The next users of a batch to write emails to. */
const nextUsers = (sql: Sql | TransactionSql) => sql`unnest(user_ids[next:next + ${BATCH_EMAILS - 1}])`

/**
 * Writes the next emails of a due batch, unless another sender is doing so. Each user gets one reminder per event date,
 * and one email per seat. In other batches, users whose email about the same event is still waiting are skipped,
 * because that email will be composed later and include this news.
 */
export function writeEmails (sql: Sql) {
  return retryConflict(() => sql.begin(async transaction => {
    const [due] = await transaction<{ id: string, next: number }[]>`
      SELECT id, next ${dueBatches(transaction)} ORDER BY due_at LIMIT 1
    `
    if (!due) return
    const { id, next } = due
    // Users are locked before the batch to prevent a deadlock: an erasure may hold a user and wait for the event, whose
    // change waits for the batch.
    await transaction`
      WITH recipients AS (
        SELECT FROM users WHERE id IN (SELECT ${nextUsers(transaction)} FROM email_batches WHERE id = ${id})
        ORDER BY id FOR KEY SHARE
      )
      SELECT count(*) FROM recipients
    `
    const [batch] = await transaction<{ template: TemplateName, key: string | null }[]>`
      SELECT template, key FROM email_batches WHERE id = ${id} AND next = ${next} FOR UPDATE SKIP LOCKED
    `
    if (!batch) return
    const { template, key } = batch
    await transaction`
      WITH emailed AS (${enqueueEmails(sql, template, sql`
        SELECT recipient AS user_id, data, CASE template
          WHEN 'event-reminder' THEN key
          WHEN 'seat' THEN ${placeInLine(sql, sql`recipient`, sql`email_batches.event_id`)}
        END AS key
        FROM email_batches CROSS JOIN LATERAL ${nextUsers(sql)} AS recipient
        WHERE email_batches.id = ${id} AND recipient NOT IN (
          SELECT user_id FROM emails
          WHERE status = 'pending' AND attempts = 0 AND (
            (bulk AND emails.template = ${template} AND emails.data ->> 'event' = ${key})
            -- The confirmation will tell the seat.
            OR (${template === 'seat'} AND emails.template = 'registration'
              AND emails.data ->> 'event' = email_batches.data ->> 'event')
          )
        )
      `)})
      UPDATE email_batches SET
        next = next + ${BATCH_EMAILS},
        told_at = CASE WHEN next = 1 THEN now() ELSE told_at END,
        due_at = CASE WHEN next + ${BATCH_EMAILS} > cardinality(user_ids) THEN 'infinity' ELSE due_at END
      WHERE id = ${id}
    `
    await transaction`
      DELETE FROM email_batches WHERE id IN (
        SELECT id FROM email_batches
        WHERE due_at = 'infinity' AND told_at < now() - interval '1 day' LIMIT 100 FOR UPDATE SKIP LOCKED
      )
    `
  }))
}

/** Number of events whose reminders are written at once. */
const BATCH_EVENTS = 20

const interval = (sql: Sql, hours: number) => sql`make_interval(hours => ${hours})`

/** Events that begin within this number of hours and whose reminders have not been written; empty for 0. */
const dueReminders = (sql: Sql, hours: number) => sql`
  FROM events
  WHERE date > now() AND date <= now() + ${interval(sql, hours)}
    AND NOT EXISTS (SELECT FROM event_reminders WHERE event_id = events.id)
`

/**
 * SQL statement that writes reminders of some events to users who registered before the reminder was due. Later
 * attendees have a recent confirmation. The key of `event_reminders` ensures that one sender does this, once per date
 * of an event.
 */
export const writeReminders = (sql: Sql, hours: number) => sql`
  WITH due AS (
    SELECT id, date ${dueReminders(sql, hours)} ORDER BY date LIMIT ${BATCH_EVENTS}
    FOR KEY SHARE OF events SKIP LOCKED
  ), reminded AS (
    INSERT INTO event_reminders (event_id) SELECT id FROM due ON CONFLICT (event_id) DO NOTHING RETURNING event_id
  )
  ${enqueueBatch(sql, 'event-reminder', sql`
    SELECT
      concat(id, ' ', iso8601(date)) AS key,
      jsonb_build_object('event', id, 'date', iso8601(date)) AS data,
      id AS event_id,
      ARRAY(
        SELECT user_id FROM event_registrations AS registrations
        WHERE registrations.event_id = due.id AND registered_at < date - ${interval(sql, hours)} AND ${comes(sql)}
      ) AS user_ids
    FROM due JOIN reminded ON reminded.event_id = due.id
  `)}
`

/** Tells which emails are due to be sent, and which are due to be written. Only reads. */
export async function findWork (sql: Sql, reminderHours: number) {
  const [found] = await sql<[Record<'account' | 'bulk' | 'batch' | 'reminder', boolean>]>`
    SELECT
      EXISTS (SELECT FROM emails WHERE ${dueEmails(sql, false)}) AS account,
      EXISTS (SELECT FROM emails WHERE ${dueEmails(sql, true)}) AS bulk,
      EXISTS (SELECT ${dueBatches(sql)}) AS batch,
      EXISTS (SELECT ${dueReminders(sql, reminderHours)}) AS reminder
  `
  return found
}
