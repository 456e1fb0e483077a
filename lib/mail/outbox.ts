import type { PendingQuery, Row } from 'postgres'

import type { Sql } from '../database/client.ts'
import { type KindName, kinds } from './kinds.ts'
import type { ClaimedMail, Recipient } from './message.ts'
import { isNotification, isNotified, NOTIFICATIONS } from './notifications.ts'

/**
 * A mail is always in one of these states:
 *
 * - pending: it is sent when it is due.
 * - processing: a sender has claimed it. It may be on its way at any time until the claim expires.
 * - sent: the SMTP server has accepted it.
 * - failed: the server has refused it for good, or too often.
 * - unknown: the server has been given all of it, and has not said whether it took it (RFC 1047). It could arrive twice
 *   if it were sent again, so only an operator does that.
 */
export const STATES = ['pending', 'processing', 'sent', 'failed', 'unknown'] as const
export type MailState = typeof STATES[number]

/** Seconds until a claim expires: longer than any batch takes. */
const CLAIM_SECONDS = 300

/** Days for which mails are kept that were sent, have failed, or are unknown. */
const RETENTION_DAYS = 30

/** How an attempt ended. */
export interface Outcome {
  id: string
  claim: string
  /** Obsolete: its facts have changed, so it was not sent. */
  status: Exclude<MailState, 'processing'> | 'obsolete'
  error?: string
  /** The facts that the mail told. */
  told?: object
  /** 0 if it was not tried. */
  attempts: 0 | 1
  /** Seconds until the next attempt. */
  delay: number
}

/** How many mails are claimed at most. */
export interface Batch {
  account: number
  bulk: number
}

/**
 * The statement that writes mails of a kind, for the WITH of the statement that causes them. `mails` is a query with
 * the columns `user_id`, `data` (jsonb) and `key` (text): a user who has a mail of this kind and key gets no other. A
 * null key equals no other. `delay` is in seconds. Notifications are written for those who want them: an erasure that
 * runs is waited for, and a change of the email, too.
 */
export const enqueueMails = (sql: Sql, kind: KindName, mails: PendingQuery<Row[]>, delay = 0) => sql`
  INSERT INTO mails (kind, bulk, due_at, user_id, data, key)
  SELECT ${kind}, ${kinds[kind].bulk}, statement_timestamp() + make_interval(secs => ${delay}), user_id, data, key
  FROM (${mails}) AS caused ${isNotification(kind)
    ? sql`JOIN users ON users.id = user_id WHERE ${isNotified(sql, kind)} FOR KEY SHARE OF users`
    : sql``}
  ON CONFLICT (user_id, kind, key) DO NOTHING
  RETURNING id
`

/** Kinds that this version does not know are left to the instances that do. */
const due = (sql: Sql, bulk: boolean) => sql`
  status = 'pending' AND bulk = ${bulk} AND due_at <= now() AND kind IN ${sql(Object.keys(kinds))}
`

const expired = (sql: Sql) => sql`status = 'processing' AND due_at <= now()`

/** Finds out whether there is something to do for a sender. It only reads. */
export async function findWork (sql: Sql) {
  const [work] = await sql<[{ account: boolean, bulk: boolean, expired: boolean }]>`
    SELECT
      EXISTS (SELECT FROM mails WHERE ${due(sql, false)}) AS account,
      EXISTS (SELECT FROM mails WHERE ${due(sql, true)}) AS bulk,
      EXISTS (SELECT FROM mails WHERE ${expired(sql)}) AS expired
  `
  return work
}

/** The stored form of a column `token`, as `hashSecretToken` makes it. */
const secretTokenHash = (sql: Sql) =>
  sql`translate(encode(sha256(convert_to(token, 'UTF8')), 'base64'), '+/=', '-_')`

/** What a sender has done, and the mails that it claims next. */
interface Settlement {
  outcomes: Outcome[]
  lostClaims: string[]
  claim: string
  batch: Batch
}

/**
 * Records outcomes and claims the next mails, all in one commit, since every commit empties the snapshot cache. An
 * outcome counts once, while its claim is the latest. `lostClaims` are those of statements that failed, whose mails
 * were never seen: they are released. Claims of others that have expired become unknown, since their mails may have
 * been sent. Past mails are removed. A notification has a new token each time that it is claimed, and the one before
 * ends.
 */
export async function settle (
  sql: Sql, { outcomes, lostClaims, claim, batch: { account, bulk } }: Settlement
): Promise<ClaimedMail[]> {
  // Always true, when the mails of the outcomes are locked
  const isRecorded = sql`(SELECT count(*) FROM finished) >= 0`
  return await sql<ClaimedMail[]>`
    WITH outcomes AS (
      SELECT *
      FROM jsonb_to_recordset(${JSON.stringify(outcomes)}::text::jsonb) AS outcome (
        id uuid, claim uuid, status text, error text, told jsonb, attempts integer, delay integer
      )
    ), lost_claims AS (
      SELECT value::uuid AS id
      FROM jsonb_array_elements_text(${JSON.stringify(lostClaims)}::text::jsonb) AS lost (value)
    ), finished AS (
      -- In the order of an erasure, and before the next ones are claimed: it may hold one of these and wait for those
      SELECT mails.id, outcomes.status, outcomes.error, outcomes.told, outcomes.attempts, outcomes.delay
      FROM mails JOIN outcomes ON outcomes.id = mails.id AND outcomes.claim = mails.claim
      ORDER BY mails.id FOR UPDATE OF mails
    ), removed AS (
      DELETE FROM mails USING finished WHERE mails.id = finished.id AND finished.status = 'obsolete'
      RETURNING data, kind
    ), unreminded AS (
      -- The event was moved. When it comes back, those get a reminder who have none.
      DELETE FROM event_reminders WHERE (event_id, date) IN (
        SELECT event_id, date
        FROM removed JOIN event_reminders
          ON event_id = CASE kind WHEN 'event-reminder' THEN (data ->> 'event')::uuid END
          AND date = (data ->> 'date')::timestamptz
        ORDER BY event_id, date FOR UPDATE OF event_reminders
      )
    ), settled AS (
      UPDATE mails SET
        status = finished.status,
        error = finished.error,
        -- Recorded: if the response is lost, the sender records it once more.
        claim = NULL,
        data = CASE WHEN told IS NULL THEN data ELSE data || jsonb_build_object('told', told) END,
        attempts = mails.attempts + finished.attempts,
        -- One that was not tried keeps its place.
        due_at = CASE finished.attempts WHEN 0 THEN created_at ELSE now() + make_interval(secs => finished.delay) END,
        settled_at = CASE WHEN finished.status <> 'pending' THEN now() END
      FROM finished
      WHERE mails.id = finished.id AND finished.status <> 'obsolete'
    ), released AS (
      UPDATE mails SET status = 'pending', due_at = created_at, settled_at = NULL
      WHERE status IN ('processing', 'unknown')
        AND claim IN (SELECT id FROM lost_claims)
    ), expired AS (
      UPDATE mails SET status = 'unknown', error = 'The sender ended', attempts = attempts + 1, settled_at = now()
      WHERE id IN (
        SELECT id FROM mails
        WHERE ${expired(sql)} AND id NOT IN (SELECT id FROM outcomes)
          AND claim NOT IN (SELECT id FROM lost_claims)
        FOR UPDATE SKIP LOCKED
      )
    ), past AS (
      -- With a parameter as its limit, the plan would scan the table.
      DELETE FROM mails WHERE id IN (
        SELECT id FROM mails WHERE settled_at < now() - make_interval(days => ${RETENTION_DAYS})
        ORDER BY settled_at LIMIT 100 FOR UPDATE SKIP LOCKED
      )
    ), account AS (
      SELECT id FROM mails WHERE ${due(sql, false)} AND ${isRecorded}
      ORDER BY due_at LIMIT ${account} FOR UPDATE SKIP LOCKED
    ), bulk AS (
      SELECT id FROM mails WHERE ${due(sql, true)} AND ${isRecorded}
      ORDER BY due_at LIMIT ${bulk} FOR UPDATE SKIP LOCKED
    ), next AS (
      -- 244 random bits
      SELECT id, replace(concat(gen_random_uuid(), gen_random_uuid()), '-', '') AS token
      FROM (SELECT id FROM account UNION ALL SELECT id FROM bulk) AS mails
    ), claimed AS (
      UPDATE mails SET
        status = 'processing', claim = ${claim}, due_at = now() + make_interval(secs => ${CLAIM_SECONDS}),
        claimed_at = now(),
        token_hash = CASE WHEN kind IN ${sql(Object.keys(NOTIFICATIONS))} THEN ${secretTokenHash(sql)} END
      FROM next WHERE mails.id = next.id
      RETURNING mails.*, CASE WHEN token_hash IS NOT NULL THEN token END AS token
    )
    SELECT id, kind, user_id AS "userId", data, attempts, created_at AS "createdAt", token
    FROM claimed ORDER BY bulk, created_at, id
  `
}

/**
 * Finds whom a claimed mail goes to; `undefined` when the account is gone, or the claim is not the latest any more. It
 * may have expired: then the mail is unknown to all but this sender.
 */
export async function findRecipient (sql: Sql, id: string, claim: string): Promise<Recipient | undefined> {
  const [recipient] = await sql<Recipient[]>`
    SELECT email, first_name AS "firstName", last_name AS "lastName"
    FROM mails JOIN users ON users.id = user_id
    WHERE mails.id = ${id} AND claim = ${claim}
  `
  return recipient
}

/**
 * How many mails are not sent, by their state, and the age of the oldest of them in seconds. `mailings` are mails to
 * many that are due and not written yet, with the time since the oldest of them was due.
 */
export type MailCounts = Record<Exclude<MailState, 'sent'> | 'mailings', { count: number, age: number }>

/** Counts the mails that are not sent. */
export async function countMails (sql: Sql): Promise<MailCounts> {
  const rows = await sql<{ name: keyof MailCounts, count: number, age: number }[]>`
    SELECT status AS name, count(*)::int, extract(epoch FROM now() - min(created_at))::float AS age
    FROM mails WHERE status <> 'sent' GROUP BY status
    UNION ALL
    SELECT 'mailings', count(*)::int, coalesce(extract(epoch FROM now() - min(due_at)), 0)::float
    FROM mailings WHERE due_at <= now()
  `
  const none = { count: 0, age: 0 }
  const counts = { pending: none, processing: none, failed: none, unknown: none, mailings: none }
  return { ...counts, ...Object.fromEntries(rows.map(({ name, count, age }) => [name, { count, age }])) }
}

/** A mail as operators see it: without its address. */
export interface ListedMail {
  id: string
  kind: string
  userId: string
  status: MailState
  attempts: number
  error: string | null
  createdAt: string
}

/** Lists the mails in a state, or all that are not sent, the oldest first. */
export function listMails (sql: Sql, state?: MailState) {
  return sql<ListedMail[]>`
    SELECT id, kind, user_id AS "userId", status, attempts, error, iso8601(created_at) AS "createdAt"
    FROM mails
    WHERE ${state ? sql`status = ${state}` : sql`status <> 'sent'`}
    ORDER BY created_at, id
  `
}

/** Has mails sent again that have failed or are unknown: those in one of these states, or the one with this id. */
export async function retryMails (sql: Sql, which: { state: 'failed' | 'unknown' } | { id: string }) {
  const { count } = await sql`
    UPDATE mails SET status = 'pending', due_at = now(), claim = NULL, attempts = 0, settled_at = NULL
    WHERE status IN ('failed', 'unknown') AND ${'id' in which ? sql`id = ${which.id}` : sql`status = ${which.state}`}
  `
  return count
}
