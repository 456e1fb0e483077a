import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { Sql } from '../database/client.ts'
import { type KindName, kinds } from './kinds.ts'
import { enqueueMails } from './outbox.ts'

/**
 * The statement that writes a mailing, mails of a kind to many, for the WITH of the statement that causes it. `mailing`
 * is a query with the columns `key` (text), `data` (jsonb) and `user_ids` (uuid[]). One of this kind and key that waits
 * keeps its data and time, and goes to these users. `delay` is in seconds.
 */
export const enqueueMailing = (sql: Sql, kind: KindName, mailing: PendingQuery<Row[]>, delay = 0) => sql`
  INSERT INTO mailings (kind, key, data, user_ids, due_at)
  SELECT ${kind}, key, data, user_ids, statement_timestamp() + make_interval(secs => ${delay})
  FROM (${mailing}) AS caused WHERE cardinality(user_ids) > 0
  -- The id is part of the keys of mails: a new one keeps those already written from counting as told of this cause.
  ON CONFLICT (kind, key) DO UPDATE
    SET id = excluded.id, user_ids = excluded.user_ids, caused_at = excluded.caused_at
  RETURNING id
`

/** Mails that are written for a mailing at a time. */
const MAILING_MAILS = 5000

/** Seconds in which what caused a mailing is committed. */
const COMMIT_SECONDS = 10

/** Kinds that this version does not know are left to the instances that do. */
const dueMailings = (sql: Sql | TransactionSql) => sql`
  FROM mailings WHERE due_at <= now() AND kind IN ${sql(Object.keys(kinds))}
`

/**
 * Users whose mail of this kind and key includes the cause of the mailing. A subquery without the user, so that it is
 * scanned once: with the user in it, a generic plan made for an empty outbox scans it for each.
 */
const told = (sql: Sql, kind: KindName, key: string) => sql`
  SELECT user_id FROM mails
  WHERE kind = ${kind} AND starts_with(mails.key, ${`${key} `}::text)
    AND (status = 'pending' OR claimed_at > (SELECT caused_at FROM mailing) + make_interval(secs => ${COMMIT_SECONDS}))
`

/**
 * Writes mails of a mailing that is due, unless another sender does. Each user gets one reminder per key. For other
 * kinds with a key, users are skipped whose mail is unclaimed, or was claimed late enough to tell of the cause.
 */
export function writeMails (sql: Sql) {
  return sql.begin(async transaction => {
    const [due] = await transaction<{ id: string }[]>`SELECT id ${dueMailings(transaction)} ORDER BY due_at LIMIT 1`
    if (!due) return
    const { id } = due
    // Before the mailing: an erasure may hold one of them and wait for the event, whose change waits for the mailing.
    await transaction`
      WITH recipients AS (
        SELECT FROM users WHERE id IN (SELECT unnest(user_ids[:${MAILING_MAILS}]) FROM mailings WHERE id = ${id})
        ORDER BY id FOR KEY SHARE
      )
      SELECT count(*) FROM recipients
    `
    const [mailing] = await transaction<{ kind: KindName, key: string | null, data: any }[]>`
      SELECT kind, key, data FROM mailings WHERE id = ${id} FOR UPDATE SKIP LOCKED
    `
    if (!mailing) return
    const { kind, key, data } = mailing
    const isOnce = kind === 'event-reminder'
    await transaction`
      WITH mailing AS (SELECT * FROM mailings WHERE id = ${id}), mailed AS (${enqueueMails(sql, kind, sql`
        SELECT recipient AS user_id, data, ${isOnce ? sql`key` : sql`concat_ws(' ', key, id)`} AS key
        FROM mailing CROSS JOIN unnest(user_ids[:${MAILING_MAILS}]) AS recipient
        ${key === null || isOnce ? sql`` : sql`WHERE recipient NOT IN (${told(sql, kind, key)})`}
      `)}), written AS (
        DELETE FROM mailings WHERE id = ${id} AND cardinality(user_ids) <= ${MAILING_MAILS}
      )
      UPDATE mailings SET user_ids = user_ids[${MAILING_MAILS + 1}:]
      WHERE id = ${id} AND cardinality(user_ids) > ${MAILING_MAILS}
    `
    // They would not be sent, but the cancellation would wait for them.
    if (kind === 'event-cancelled') {
      await transaction`
        DELETE FROM mails WHERE id IN (
          SELECT id FROM mails
          WHERE status = 'pending' AND bulk AND kind IN ('event-changed', 'event-reminder')
            AND data ->> 'event' = ${data.event.id}
          -- In the order of an erasure
          ORDER BY id FOR UPDATE
        )
      `
    }
  })
}

/** Events whose reminders are written at a time. */
const BATCH_EVENTS = 20

const interval = (sql: Sql, hours: number) => sql`make_interval(hours => ${hours})`

/** Events that begin in less than so many hours, and whose reminders are not written yet; none for 0. */
const dueReminders = (sql: Sql, hours: number) => sql`
  FROM events
  WHERE date > now() AND date <= now() + ${interval(sql, hours)}
    AND NOT EXISTS (SELECT FROM event_reminders WHERE event_id = events.id AND event_reminders.date = events.date)
`

/**
 * Writes the reminders of some events to those who were registered before they are due; who registers later has the
 * confirmation. The key of `event_reminders` has one sender do it, once for each date of an event; when a reminder is
 * removed, they are written again if the event is still, or comes back, at that date.
 */
export const writeReminders = (sql: Sql, hours: number) => sql`
  WITH due AS (
    SELECT id, date ${dueReminders(sql, hours)} ORDER BY date LIMIT ${BATCH_EVENTS}
    FOR KEY SHARE OF events SKIP LOCKED
  ), reminded AS (
    INSERT INTO event_reminders (event_id, date) SELECT id, date FROM due
    ON CONFLICT (event_id, date) DO NOTHING RETURNING event_id, date
  )
  ${enqueueMailing(sql, 'event-reminder', sql`
    SELECT
      concat(event_id, ' ', iso8601(date)) AS key,
      jsonb_build_object('event', event_id, 'date', iso8601(date)) AS data,
      ARRAY(
        SELECT user_id FROM event_registrations AS registrations
        WHERE registrations.event_id = reminded.event_id AND registered_at < date - ${interval(sql, hours)}
      ) AS user_ids
    FROM reminded
  `)}
`

/** Finds out whether mails to many are to be written. It only reads. */
export async function findMailings (sql: Sql, reminderHours: number) {
  const [found] = await sql<[{ mailing: boolean, reminder: boolean }]>`
    SELECT
      EXISTS (SELECT ${dueMailings(sql)}) AS mailing,
      EXISTS (SELECT ${dueReminders(sql, reminderHours)}) AS reminder
  `
  return found
}
