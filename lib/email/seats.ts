import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { runsUntil, withDetails } from '../agenda/details.ts'
import { firstWaiting, seatsOf } from '../agenda/seats.ts'
import type { Sql } from '../database/client.ts'
import { lastAnnounced } from './events.ts'
import type { Outbox } from './outbox.ts'

/**
 * SQL statement that enqueues an email to everybody at these events who has a seat, and whose last email said that they
 * wait. Nobody is told about a seat while an event is over, so this is for events that were over by mistake. The query
 * `events` has the column `id`.
 */
export const tellSeats = (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>, events: PendingQuery<Row[]>, cause: string | null
) =>
  outbox.enqueueBatch('seat', sql`
    SELECT
      NULL AS key, id AS event_id, jsonb_build_object('event', id) AS data,
      ARRAY(
        SELECT user_id FROM (${seatsOf(sql, sql`running.id`)}) AS seats
        WHERE state = 'seated' AND EXISTS (
          SELECT FROM (${lastAnnounced(sql, sql`seats.user_id`, sql`running.id`)}) AS last
          WHERE announced -> 'seat' ->> 'state' = 'waiting'
        )
        ORDER BY since, seats.id
      ) AS user_ids
    FROM (${events}) AS running
  `, cause)

/**
 * Runs a change of who comes to these events, or of their seats. Enqueues an email to everybody who waited before the
 * change and has a seat after it, also if they got it while the date of the event was in the past by mistake. Locks the
 * events: `change` sees everybody who has registered, and changes at the same time follow one another, so that each of
 * these people is told once. `cause` is the same as for
 * `enqueueBatch`.
 */
export async function changeSeats<Result> (
  sql: Sql, transaction: TransactionSql, outbox: Pick<Outbox, 'enqueueBatch'> | undefined,
  { events, cause }: { events: PendingQuery<Row[]>, cause: string | null }, change: () => Promise<Result>
) {
  await transaction`SELECT FROM events WHERE id IN (${events}) ORDER BY id FOR UPDATE`
  const over = await transaction<{ id: string }[]>`
    SELECT id FROM events ${withDetails(sql)} WHERE id IN (${events}) AND ${runsUntil(sql)} <= now()
  `
  const firsts = await transaction<{ event: string, since: string, id: string }[]>`
    SELECT events.id AS event, first.since::text AS since, first.id
    FROM events ${withDetails(sql)} CROSS JOIN LATERAL (${firstWaiting(sql, sql`events.id`)}) AS first
    WHERE events.id IN (${events}) AND capacity IS NOT NULL
  `
  const result = await change()
  if (outbox && firsts.length > 0) {
    await transaction`${outbox.enqueueBatch('seat', sql`
      SELECT
        events.id::text AS key, events.id AS event_id, jsonb_build_object('event', events.id) AS data,
        ARRAY(
          SELECT user_id FROM (${seatsOf(sql, sql`events.id`)}) AS seats
          WHERE state = 'seated' AND (seats.since, seats.id) >= (first.since::timestamptz, first.id)
          ORDER BY seats.since, seats.id
        ) AS user_ids
      FROM jsonb_to_recordset(${JSON.stringify(firsts)}::text::jsonb) AS first (event uuid, since text, id uuid)
        JOIN events ON events.id = first.event ${withDetails(sql)}
      WHERE ${runsUntil(sql)} > now()
    `, cause)}`
  }
  if (outbox && over.length > 0) {
    await transaction`${tellSeats(sql, outbox, sql`
      SELECT id FROM events ${withDetails(sql)}
      WHERE id IN ${sql(over.map(({ id }) => id))} AND ${runsUntil(sql)} > now()
    `, cause)}`
  }
  return result
}
