import type { PendingQuery, Row } from 'postgres'

import type { AnySql, Sql } from '../database/pools.ts'
import { BULK, type TemplateName, templates } from './templates.ts'
import type { ClaimedEmail, Recipient } from './content.ts'
import { isNotification, isNotified } from './notifications.ts'

/**
 * An email always has one of these statuses:
 *
 * - pending: it will be sent when it is due. A sender that claims it sets the due time to the end of the lease.
 * - sent: the SMTP server has accepted it.
 * - failed: the SMTP server has refused it permanently, or for five days.
 */
export const STATUSES = ['pending', 'sent', 'failed'] as const
export type EmailStatus = typeof STATUSES[number]

/** Time until another sender may claim an email. The claiming sender stops trying before that. */
export const LEASE_SECONDS = 300

/** Time for which sent and failed emails are kept. */
const RETENTION_DAYS = 30

/** The text of an email that may have arrived: its hash, and which text of this email it is, from 1. */
export interface Version {
  hash: string
  number: number
}

/** The outcome of an attempt. */
export interface Outcome {
  id: string
  /** `obsolete` means that the facts have changed, so the email was not sent. */
  status: EmailStatus | 'obsolete'
  error?: string
  /** The facts that the email announces. The email may have arrived, even if the attempt failed. */
  announced?: object
  /** The text of this attempt. The next attempt compares it with its own. */
  version?: Version
  /** The hash of the unsubscribe token, by which version 1.0.0 finds the email. */
  tokenHash?: string
  /** Attempts so far. */
  attempts: number
  /** Seconds until the next attempt. If missing, the email keeps its place in the queue. */
  delay?: number
}

/** Maximum numbers of emails to claim. */
export interface ClaimLimits {
  account: number
  bulk: number
}

/**
 * SQL statement that enqueues emails. Use it as a CTE of the statement that causes them. The query `emails` has the
 * columns `user_id`, `data` (jsonb) and `key` (text). A user gets one email per template and key; null keys are always
 * different. A trigger deletes waiting emails that a new one replaces (`supersede_emails` in
 * migrations/20261130120000000_superseded-emails.sql). Notifications are written only for users with the switch on: the
 * statement waits for a running erasure and for a change of the email address.
 *
 * `cause` is the account that caused the emails, by its id, or the network of the client if the operation needs no
 * account. Accounts and networks take turns. `cause` is null for operators and the service itself, and can be a column
 * of the query.
 */
export const enqueueEmails = (
  sql: AnySql, template: TemplateName, emails: PendingQuery<Row[]>, cause: string | null | PendingQuery<Row[]>
) => sql`
  INSERT INTO emails (template, bulk, network, user_id, data, key)
  SELECT ${template}, ${BULK.has(template)}, ${cause}, user_id, data, key
  FROM (${emails}) AS caused ${isNotification(template)
    // OFFSET makes PostgreSQL look at the address after the lock. A confirmation also waits for a running verification
    // of the address. Otherwise, a registration that begins between its UPDATE and its commit would not be confirmed:
    // it would see an address that is not verified, and the verification would not see it, see `tellVerified`.
    ? sql`
      CROSS JOIN LATERAL (
        SELECT * FROM users WHERE users.id = caused.user_id
        ${template === 'registration' ? sql`FOR SHARE` : sql`FOR KEY SHARE`} OFFSET 0
      ) AS users
      WHERE ${isNotified(sql, template)}
    `
    : sql``}
  ON CONFLICT (user_id, template, key) DO NOTHING
  RETURNING id
`

/**
 * SQL query for `enqueueEmails`: an email without data to each user of the query `users`, which has the column `id`.
 */
export const emailTo = (sql: AnySql, users: PendingQuery<Row[]>) => sql`
  SELECT id AS user_id, '{}'::jsonb AS data, NULL AS key FROM (${users}) AS addressed
`

/**
 * SQL query: the email of this template to a user about an event, if no sender has tried this email. It will be
 * composed later, so it will include the news.
 */
export const untriedEmail = (
  sql: AnySql, template: TemplateName, userId: PendingQuery<Row[]>, eventId: PendingQuery<Row[]>
) => sql`
  SELECT FROM emails
  WHERE user_id = ${userId} AND template = ${template} AND status = 'pending' AND attempts = 0
    AND emails.data ->> 'event' = ${eventId}
`

/** Emails that are due. Instances of a newer version handle templates that this version does not know. */
export const dueEmails = (sql: AnySql) => sql`
  status = 'pending' AND due_at <= now() AND template IN ${sql(Object.keys(templates))}
`

/**
 * SQL columns: the cause of an email, within its template. The accounts and networks that cause emails take turns. So
 * do templates, so that a seat does not wait behind a message of the same person. The column `network` contains the
 * cause, see `enqueueEmails`.
 */
const causeOfEmail = (sql: AnySql) => sql`template, coalesce(network, '')`

/** SQL columns: the cause of a batch, within its template. */
export const causeOfBatch = (sql: AnySql) => sql`template, coalesce(caused_by, '')`

/** SQL condition: no email of the same cause and template as this batch waits or is being sent. */
export const isCauseIdle = (sql: AnySql) => sql`
  (${causeOfBatch(sql)}) NOT IN (
    SELECT ${causeOfEmail(sql)} FROM emails
    WHERE status = 'pending' AND bulk
      AND (due_at <= now() OR due_at = claimed_at + make_interval(secs => ${LEASE_SECONDS}))
  )
`

/** Advisory lock of the sender that claims emails. */
const CLAIMING = 5_904_417_233

/** SQL: the id of the event or the club that an email is about, or null. */
const subjectOf = (sql: AnySql) => sql`coalesce(data #>> '{event,id}', data ->> 'event', data ->> 'club')`

/**
 * Claims the oldest email of every cause, then the second ones, and so on. Without turns, the email of a person would
 * be late by minutes instead of seconds if one network asks for 1,500 new passwords. If not all of them fit, chance
 * decides, so that nobody is always the last. Emails to one user about one event or club follow one another, because an
 * email decides what is news in the next one. So senders claim one after the other, because a sender does not see which
 * emails another sender has claimed and not committed. To take turns, it sorts all due emails: 35 ms for 10,000.
 */
export async function claimEmails (sql: AnySql, { account, bulk }: ClaimLimits): Promise<ClaimedEmail[]> {
  await sql`SELECT pg_advisory_xact_lock(${CLAIMING})`
  // Updating an email twice in a transaction also locks its user, even if the user stays the same. An erasure locks the
  // user first and the emails then, so both would wait for each other. To prevent that, this locks the user first.
  const lock = sql`FOR UPDATE OF emails SKIP LOCKED FOR KEY SHARE OF users SKIP LOCKED`
  return await sql<ClaimedEmail[]>`
    WITH due AS (
      SELECT id, bulk, row_number() OVER (PARTITION BY bulk, ${causeOfEmail(sql)} ORDER BY due_at, id) AS turn
      FROM (
        SELECT *, row_number() OVER (PARTITION BY user_id, ${subjectOf(sql)} ORDER BY due_at, id) AS nth
        FROM emails WHERE ${dueEmails(sql)}
      ) AS emails
      WHERE ${subjectOf(sql)} IS NULL OR (nth = 1 AND (user_id, ${subjectOf(sql)}) NOT IN (
        SELECT user_id, ${subjectOf(sql)} FROM emails
        WHERE status = 'pending' AND due_at > now() AND due_at = claimed_at + make_interval(secs => ${LEASE_SECONDS})
          AND ${subjectOf(sql)} IS NOT NULL
      ))
    ), ordered AS (
      SELECT id, bulk, row_number() OVER (PARTITION BY bulk ORDER BY turn, random()) AS place FROM due
    ), next AS (
      SELECT emails.id FROM emails JOIN ordered USING (id) JOIN users ON users.id = user_id
      WHERE place <= CASE WHEN ordered.bulk THEN ${bulk}::integer ELSE ${account}::integer END AND ${dueEmails(sql)}
      ${lock}
    ), claimed AS (
      UPDATE emails SET
        -- The last sender was killed, so the email may have arrived with the facts of that time.
        data = CASE WHEN due_at = claimed_at + make_interval(secs => ${LEASE_SECONDS})
          THEN jsonb_build_object('unsureSince', iso8601(claimed_at)) || data ELSE data END,
        due_at = now() + make_interval(secs => ${LEASE_SECONDS}),
        claimed_at = now(),
        attempts = attempts + 1
      FROM next WHERE emails.id = next.id
      RETURNING emails.*
    )
    SELECT id, template, user_id AS "userId", data, key, attempts, created_at AS "createdAt"
    FROM claimed ORDER BY bulk, created_at, id
  `
}

/** Records outcomes once. Ignores emails that another sender has sent in the meantime. */
export async function recordOutcomes (sql: AnySql, outcomes: Outcome[]) {
  await sql`
    WITH outcomes AS (
      SELECT *
      FROM jsonb_to_recordset(${JSON.stringify(outcomes)}::text::jsonb) AS outcome (
        id uuid, status text, error text, announced jsonb, version jsonb, "tokenHash" text, attempts integer,
        delay integer
      )
    ), finished AS (
      -- The lock order of an erasure.
      SELECT emails.id, outcomes.status, outcomes.error, announced, version, "tokenHash", outcomes.attempts, delay
      FROM emails JOIN outcomes ON outcomes.id = emails.id AND emails.status = 'pending'
      ORDER BY emails.id FOR UPDATE OF emails
    ), removed AS (
      DELETE FROM emails USING finished
      WHERE emails.id = finished.id AND finished.status = 'obsolete' AND data -> 'announced' IS NULL
    )
    UPDATE emails SET
      -- An earlier attempt may have arrived, and told the user something.
      status = CASE finished.status WHEN 'obsolete' THEN 'sent' ELSE finished.status END,
      error = CASE WHEN finished.status <> 'sent' THEN coalesce(finished.error, emails.error) END,
      data = data || jsonb_strip_nulls(jsonb_build_object('version', version))
        || CASE WHEN announced IS NULL THEN '{}'
          ELSE jsonb_build_object('announced', announced || jsonb_build_object('at', iso8601(now()))) END,
      token_hash = coalesce("tokenHash", token_hash),
      attempts = finished.attempts,
      due_at = coalesce(now() + make_interval(secs => delay), created_at),
      settled_at = CASE WHEN finished.status <> 'pending' THEN now() END
    FROM finished
    WHERE emails.id = finished.id AND (finished.status <> 'obsolete' OR data -> 'announced' IS NOT NULL)
  `
}

/** Deletes some emails that were settled long ago. */
export async function deleteOldEmails (sql: AnySql) {
  // The limit is a constant, because PostgreSQL would plan a table scan for a parameter.
  await sql`
    DELETE FROM emails WHERE id IN (
      SELECT id FROM emails WHERE settled_at < now() - make_interval(days => ${RETENTION_DAYS})
      ORDER BY settled_at LIMIT 100 FOR UPDATE SKIP LOCKED
    )
  `
}

/** Finds the recipient of an email; `undefined` if the account was deleted. */
export async function findRecipient (sql: Sql, id: string): Promise<Recipient | undefined> {
  const [recipient] = await sql<Recipient[]>`
    SELECT
      email, email_verified_at IS NOT NULL AS "isVerified", first_name AS "firstName", last_name AS "lastName"
    FROM emails JOIN users ON users.id = user_id
    WHERE emails.id = ${id}
  `
  return recipient
}

/**
 * Numbers of unsent emails by status, with the age of the oldest email in seconds. `untried` counts the due emails that
 * no sender has tried; the age of a bulk email is at most the time since one was sent, because MAIL_RATE limits them.
 * `batches` counts the due email batches; its age is the time since the oldest one was due. The age leaves out batches
 * that wait for emails of their own cause, because they are not late.
 */
type EmailCounts =
  Record<Exclude<EmailStatus, 'sent'> | 'untried' | 'batches', { count: number, age: number }>

/** Counts unsent emails. */
export async function countEmails (sql: Sql): Promise<EmailCounts> {
  const rows = await sql<{ name: keyof EmailCounts, count: number, age: number }[]>`
    SELECT status AS name, count(*)::int, extract(epoch FROM now() - min(created_at))::float AS age
    FROM emails WHERE status <> 'sent' GROUP BY status
    UNION ALL
    SELECT 'untried', count(*)::int,
      coalesce(extract(epoch FROM now() - min(greatest(created_at, CASE WHEN bulk THEN sent_at END))), 0)::float
    FROM emails CROSS JOIN (
      SELECT max(settled_at) FILTER (WHERE bulk) AS sent_at FROM (
        SELECT bulk, settled_at FROM emails WHERE settled_at IS NOT NULL ORDER BY settled_at DESC LIMIT 1000
      ) AS settled
    ) AS last
    WHERE status = 'pending' AND due_at <= now() AND attempts = 0
    UNION ALL
    SELECT 'batches', count(*)::int,
      coalesce(extract(epoch FROM now() - min(due_at) FILTER (WHERE ${isCauseIdle(sql)})), 0)::float
    FROM email_batches WHERE due_at <= now()
  `
  const none = { count: 0, age: 0 }
  const counts = { pending: none, failed: none, untried: none, batches: none }
  return { ...counts, ...Object.fromEntries(rows.map(({ name, count, age }) => [name, { count, age }])) }
}

/** An email for operators. */
export interface ListedEmail {
  id: string
  template: string
  userId: string
  /** The address that the email goes to. */
  to: string
  status: EmailStatus
  attempts: number
  error: string | null
  createdAt: string
}

/** Lists the emails with a status, or all unsent emails, oldest first. */
export function listEmails (sql: Sql, status?: EmailStatus) {
  return sql<ListedEmail[]>`
    SELECT
      emails.id, template, user_id AS "userId", status, attempts, error, iso8601(emails.created_at) AS "createdAt",
      CASE template WHEN 'email-change-notice' THEN data ->> 'from' ELSE coalesce(data ->> 'to', email) END AS to
    FROM emails JOIN users ON users.id = user_id
    WHERE ${status ? sql`status = ${status}` : sql`status <> 'sent'`}
    ORDER BY emails.created_at, emails.id
  `
}

/** Makes failed emails pending again: the email with this id, or all. */
export async function retryEmails (sql: Sql, id?: string) {
  const { count } = await sql`
    UPDATE emails SET status = 'pending', due_at = now(), attempts = 0, settled_at = NULL
    WHERE status = 'failed' AND ${id === undefined ? sql`true` : sql`id = ${id}`}
  `
  return count
}

/** Deletes failed emails: the email with this id, or all. Returns their number. */
export async function dismissEmails (sql: Sql, id?: string) {
  const { count } = await sql`
    DELETE FROM emails WHERE status = 'failed' AND ${id === undefined ? sql`true` : sql`id = ${id}`}
  `
  return count
}
