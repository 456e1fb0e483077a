import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { runsUntil, withDetails } from '../agenda/details.ts'
import type { TellDraw } from '../agenda/draws.ts'
import { comes, type Lines, newSeats, type SeatState, seatsOf } from '../agenda/seats.ts'
import { arrayOf } from '../database/columns.ts'
import type { AnySql } from '../database/pools.ts'
import type { BatchTimes } from './batches.ts'
import { enqueueNews } from './enqueue-clubs.ts'
import { lastAnnounced } from './events.ts'
import type { Outbox } from './outbox.ts'

/** Changes of an event within two minutes share an email. At least 15 minutes pass between two emails. */
const CHANGES: BatchTimes = { delaySeconds: 120, pauseSeconds: 900 }

/**
 * SQL statement that enqueues an email about a change of an event to everybody who has registered, also to people who
 * do not come. The query `changed` has the `id` of the event, and in `known` its facts before the change, see
 * `knownEvent`.
 */
export const enqueueChange = (sql: AnySql, outbox: Outbox, changed: PendingQuery<Row[]>, userId: string) =>
  outbox.enqueueBatch('event-changed', sql`
    SELECT
      id::text AS key, id AS event_id, jsonb_build_object('event', id, 'known', known) AS data,
      ARRAY(SELECT user_id FROM event_registrations WHERE event_id = changed.id) AS user_ids
    FROM (${changed}) AS changed
  `, userId, CHANGES)

/** SQL query for `enqueueBatch`: a batch about each event of a query with the columns `event_id` and `user_ids`. */
const batchesOf = (sql: AnySql, events: PendingQuery<Row[]>) => sql`
  SELECT event_id::text AS key, event_id, jsonb_build_object('event', event_id) AS data, user_ids
  FROM (${events}) AS events
`

/**
 * After a change of who comes to events, or of their seats: enqueues an email to everybody who waited in these lines
 * and has a seat now. `cause` is the same as for `enqueueBatch`.
 */
export async function tellSeats (
  sql: TransactionSql, outbox: Pick<Outbox, 'enqueueBatch'>, { waiting }: Lines, cause: string | null
) {
  if (waiting.length === 0) return
  await sql`${outbox.enqueueBatch('seat', batchesOf(sql, newSeats(sql, waiting)), cause)}`
}

/** After a draw: enqueues an email to its entrants, without a cause, because the draw was due. */
export const tellDraw = (outbox: Outbox): TellDraw => async (sql, eventId, userIds) => {
  const event = sql`SELECT ${eventId}::uuid AS event_id, ${arrayOf(userIds)}::uuid[] AS user_ids`
  await sql`${outbox.enqueueBatch('draw', batchesOf(sql, event), null)}`
}

/**
 * After a change of an event: if it was over by mistake, and runs again, enqueues the emails that were not sent while
 * it was over. They go to people
 *
 * - who have registered since then
 * - whose last email said that they take part in a draw, which has been drawn
 * - who have a seat, and whose last email said that they wait
 *
 * If the event was created within the last day, the members of its club get its news.
 */
export async function tellMissed (sql: TransactionSql, outbox: Outbox, { over }: Lines, cause: string | null) {
  if (over.length === 0) return
  const running = sql`
    SELECT id, until::timestamptz AS until
    FROM jsonb_to_recordset(${JSON.stringify(over)}::text::jsonb) AS over (id uuid, until text)
      JOIN events USING (id) ${withDetails(sql)}
    WHERE ${runsUntil(sql)} > now()
  `
  /** SQL query: the users whose last email announced the state `from`, and who have one of the states `to` now. */
  const moved = (from: SeatState, to: SeatState[]) => sql`
    SELECT id AS event_id, ARRAY(
      SELECT user_id FROM (${seatsOf(sql, sql`running.id`)}) AS seats
      WHERE state IN ${sql(to)} AND EXISTS (
        SELECT FROM (${lastAnnounced(sql, sql`seats.user_id`, sql`running.id`)}) AS last
        WHERE announced #>> '{seat,state}' = ${from}
      )
      ORDER BY since, seats.id
    ) AS user_ids
    FROM (${running}) AS running
  `
  await sql`${outbox.enqueueBatch('seat', batchesOf(sql, moved('waiting', ['seated'])), cause)}`
  await sql`${outbox.enqueueBatch('draw', batchesOf(sql, moved('drawing', ['seated', 'waiting'])), cause)}`
  await sql`${outbox.enqueue('registration', sql`
    SELECT user_id, jsonb_build_object('event', event_id) AS data, registrations.id::text AS key
    FROM event_registrations AS registrations JOIN (${running}) AS running ON running.id = event_id
    WHERE registered_at > until AND ${comes(sql)}
  `, cause)}`
  await sql`${enqueueNews(sql, outbox, sql`
    SELECT events.* FROM events JOIN (${running}) AS running USING (id)
    WHERE events.created_at > now() - interval '1 day'
  `, cause)}`
}

/**
 * After a user has verified the email address: enqueues the confirmations of registrations for events to come, which
 * were not sent to an address that was not verified. Most people register first, and then open the link that they got
 * when they signed up. The statement that verified the address has waited for running registrations, which saw an
 * address that was not verified, see `enqueueEmails`.
 */
export async function tellVerified (
  sql: TransactionSql, outbox: Pick<Outbox, 'enqueue'>, userId: string, cause: string
) {
  await sql`${outbox.enqueue('registration', sql`
    SELECT user_id, jsonb_build_object('event', events.id) AS data, registrations.id::text AS key
    FROM event_registrations AS registrations JOIN events ON events.id = event_id ${withDetails(sql)}
    WHERE user_id = ${userId} AND ${comes(sql)} AND ${runsUntil(sql)} > now()
      AND NOT EXISTS (${lastAnnounced(sql, sql`registrations.user_id`, sql`events.id`)})
  `, cause)}`
}
