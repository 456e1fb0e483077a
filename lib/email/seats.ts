import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { runsUntil, withDetails } from '../agenda/details.ts'
import { type Lines, newSeats, seatsOf } from '../agenda/seats.ts'
import type { Sql } from '../database/client.ts'
import { lastAnnounced } from './events.ts'
import type { Outbox } from './outbox.ts'

/**
 * SQL statement that enqueues an email to everybody at these events who has a seat, and whose last email said that they
 * wait. Nobody is told about a seat while an event is over, so this is for events that were over by mistake. The query
 * `events` has the column `id`.
 */
export const tellLateSeats = (
  sql: Sql | TransactionSql, outbox: Pick<Outbox, 'enqueueBatch'>, events: PendingQuery<Row[]>, cause: string | null
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
 * After a change of who comes to events, or of their seats: enqueues an email to everybody who waited in these lines
 * and has a seat now, even if they got it while the date of the event was in the past by mistake. `cause` is the same
 * as for `enqueueBatch`.
 */
export async function tellSeats (
  transaction: TransactionSql, outbox: Pick<Outbox, 'enqueueBatch'>, lines: Lines, cause: string | null
) {
  if (lines.waiting.length > 0) {
    await transaction`${outbox.enqueueBatch('seat', transaction`
      SELECT event_id::text AS key, event_id, jsonb_build_object('event', event_id) AS data, user_ids
      FROM (${newSeats(transaction, lines)}) AS promoted
    `, cause)}`
  }
  if (lines.over.length > 0) {
    await transaction`${tellLateSeats(transaction, outbox, transaction`
      SELECT id FROM events ${withDetails(transaction)}
      WHERE id IN ${transaction(lines.over)} AND ${runsUntil(transaction)} > now()
    `, cause)}`
  }
}
