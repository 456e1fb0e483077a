import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { runsUntil, withDetails } from '../agenda/details.ts'
import { firstWaiting, seatsOf } from '../agenda/seats.ts'
import type { Sql } from '../database/client.ts'
import type { Outbox } from './outbox.ts'

/**
 * Runs a change of who comes to these events, or of their seats. Enqueues an email to everybody who waited before the
 * change and has a seat after it. Locks the events: `change` sees everybody who has registered, and changes at the same
 * time follow one another, so that each of these people is told once.
 */
export async function changeSeats<Result> (
  sql: Sql, transaction: TransactionSql, outbox: Pick<Outbox, 'enqueueBatch'> | undefined,
  events: PendingQuery<Row[]>, change: () => Promise<Result>
) {
  await transaction`SELECT FROM events WHERE id IN (${events}) ORDER BY id FOR UPDATE`
  const firsts = await transaction<{ event: string, since: string, id: string }[]>`
    SELECT events.id AS event, first.since::text AS since, first.id
    FROM events ${withDetails(sql)} CROSS JOIN LATERAL (${firstWaiting(sql, sql`events.id`)}) AS first
    WHERE events.id IN (${events}) AND capacity IS NOT NULL
  `
  const result = await change()
  for (const { event, since, id } of outbox ? firsts : []) {
    await transaction`${outbox!.enqueueBatch('seat', sql`
      SELECT
        NULL AS key, ${event}::uuid AS event_id, jsonb_build_object('event', ${event}::uuid) AS data,
        ARRAY(
          SELECT user_id FROM (${seatsOf(sql, sql`${event}::uuid`)}) AS seats
          WHERE state = 'seated' AND (since, id) >= (${since}::text::timestamptz, ${id}::uuid) ORDER BY since, id
        ) AS user_ids
      FROM events ${withDetails(sql)} WHERE events.id = ${event} AND ${runsUntil(sql)} > now()
    `)}`
  }
  return result
}
