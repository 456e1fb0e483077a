import type { FastifyBaseLogger } from 'fastify'
import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { AnySql, Sql } from '../database/pools.ts'
import { retryConflict } from '../database/conflicts.ts'
import { repeat } from '../database/repeat.ts'
import type { AuditEvent } from '../http/audit.ts'
import { answeredAt, inLineSince, lockEvents, withAnswers } from './seats.ts'

// Without draws, thirty seats can be gone within a minute, and the fastest people get them. With a draw, all who
// register until then have the same chance. It is only a different order of the line, so it needs no seats of its own.
// People in line when it is set keep their places. Later people are its entrants, and none of them has a seat until the
// draw. The draw gives them new places in the order of their lots, behind the people in line before them and in front
// of everybody after the draw. So seats, positions and numbers of free seats are derived from the line as without a
// draw, and a seat that was seen is kept for the same reasons.
//
// The lot of a registration is a hash of a secret seed and its id, which the service makes. The hash of the seed is
// public as soon as the draw is set, and the seed itself after the draw. So nobody can choose a lot, and everybody can
// compute all lots. PostgreSQL makes the seed, and no statement contains it: it is in no log and in no error.

/** SQL: a new seed. Each UUID has 122 random bits from a cryptographic source. */
export const newSeed = (sql: AnySql) => sql`
  encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex')
`

/** SQL: the hash of a seed, which commits the service to it. */
export const commitmentOf = (sql: AnySql, seed: PendingQuery<Row[]>) => sql`
  encode(sha256(convert_to(${seed}, 'UTF8')), 'hex')
`

/**
 * Sets or moves the draw of an event with a number of seats. A draw that moves keeps its seed and its entrants. The
 * caller holds the lock of `lockEvents`, or has added the event.
 */
export const setDraw = (sql: TransactionSql, eventId: string, drawAt: Date) => sql`
  UPDATE event_details SET
    draw_at = ${drawAt},
    -- Behind everybody who is in line or has registered
    draw_from = coalesce(draw_from, greatest(
      end_of_line(event_id),
      (SELECT max(registered_at) FROM event_registrations AS registrations WHERE registrations.event_id = ${eventId})
        + interval '1 microsecond'
    )),
    draw_seed = coalesce(draw_seed, ${newSeed(sql)})
  WHERE event_id = ${eventId}
`

/** Removes a draw without entrants. The caller holds the lock of `lockEvents`. */
export const removeDraw = (sql: TransactionSql, eventId: string) => sql`
  UPDATE event_details SET draw_at = NULL, draw_from = NULL, draw_seed = NULL WHERE event_id = ${eventId}
`

/** Tells whether people take part in the draw of an event. */
export async function hasEntrants (sql: TransactionSql, eventId: string) {
  const { count } = await sql`
    SELECT FROM event_registrations AS registrations ${withAnswers(sql)}
    WHERE registrations.event_id = ${eventId}
      AND ${inLineSince(sql)} >= (SELECT draw_from FROM event_details WHERE event_id = ${eventId})
    LIMIT 1
  `
  return count > 0
}

/** Enqueues emails about a draw, in its transaction. */
export type TellDraw = (sql: TransactionSql, eventId: string, userIds: string[]) => Promise<void>

/**
 * Draws the seats of an event if the draw is due and no other instance was faster. Returns the number of its entrants;
 * `undefined` if there was nothing to draw. The lock of the event decides which registrations are part of the draw, not
 * the clock: all others get a place behind it.
 */
export async function drawSeats (sql: TransactionSql, eventId: string, tell: TellDraw) {
  await lockEvents(sql, sql`SELECT ${eventId}::uuid`)
  // Places that differ by a microsecond, from `draw_from` to `drawn_at`, even if the clock was set back.
  const entrants = sql`
    SELECT registrations.id, user_id, ${answeredAt(sql)} AS answered_at,
      row_number() OVER (ORDER BY lot_of(draw_seed, registrations.id), registrations.id) AS nth
    FROM event_details JOIN event_registrations AS registrations USING (event_id) ${withAnswers(sql)}
    WHERE event_details.event_id = ${eventId} AND ${inLineSince(sql)} >= draw_from
  `
  const { count } = await sql`
    UPDATE event_details SET drawn_at = greatest(
      clock_timestamp(),
      draw_from + (SELECT count(*) FROM (${entrants}) AS entrants) * interval '1 microsecond'
    )
    WHERE event_id = ${eventId} AND drawn_at IS NULL AND draw_at <= statement_timestamp()
  `
  if (count === 0) return undefined
  const drawn = await sql<{ user: string }[]>`
    WITH entrants AS (${entrants}), placed AS (
      INSERT INTO event_answers (registration_id, event_id, since, answered_at)
      SELECT id, event_id, drawn_at + (nth - 1 - max(nth) OVER ()) * interval '1 microsecond', answered_at
      FROM entrants CROSS JOIN event_details WHERE event_id = ${eventId}
      ON CONFLICT (registration_id) DO UPDATE SET since = excluded.since
    )
    SELECT user_id AS user FROM entrants ORDER BY nth
  `
  await tell(sql, eventId, drawn.map(({ user }) => user))
  return drawn.length
}

/** Time between two looks for draws that are due. */
const INTERVAL_MS = 5000

const FAILED = 'Cannot draw seats: the service tries again every 5 seconds'

interface Options {
  sql: Sql
  log: Pick<FastifyBaseLogger, 'info' | 'error'>
  tell: TellDraw
}

/**
 * Draws the seats of all events whose draw is due, until the signal aborts. A failure of one draw delays no other. Logs
 * the first failure of each event, whose id is then in `failing`.
 */
export async function drawDue ({ sql, log, tell }: Options, failing = new Set<string>(), signal?: AbortSignal) {
  const due = await sql<{ id: string }[]>`
    SELECT event_id AS id FROM event_details
    WHERE draw_at <= statement_timestamp() AND draw_at IS NOT NULL AND drawn_at IS NULL ORDER BY draw_at
  `
  for (const { id } of due) {
    // A draw that waits for a lock takes up to DATABASE_TIMEOUT, so ten would take longer than a stop may.
    if (signal?.aborted) return
    try {
      const participants = await retryConflict(() => sql.begin(sql => drawSeats(sql, id, tell)))
      if (participants === undefined) continue
      log.info({ event: 'seats-drawn' satisfies AuditEvent, target: id, participants }, 'audit')
    } catch (error) {
      if (!failing.has(id)) log.error({ err: error, target: id }, FAILED)
      failing.add(id)
    }
  }
}

/** Draws seats when they are due until the signal aborts, alongside any number of other instances. */
export function runDraws (options: Options, signal: AbortSignal, intervalMs = INTERVAL_MS) {
  const failing = new Set<string>()
  const complain = (err: unknown) => options.log.error({ err }, FAILED)
  return repeat(() => drawDue(options, failing, signal), intervalMs, signal, complain)
}
