import type { Static } from '@sinclair/typebox'
import type { TransactionSql } from 'postgres'

import { PLACEHOLDER } from '../../lib/auth/passwords.ts'
import { revokeTokens } from '../../lib/auth/revoked-tokens.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Role } from '../../lib/roles.ts'
import { isManagedBy } from '../../lib/accounts/permissions.ts'
import { comingTo } from '../../lib/agenda/seats.ts'
import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import type { Sql } from '../../lib/database/client.ts'
import { type Attempt, createOnce } from '../../lib/database/idempotency.ts'
import { profileColumns, toColumns } from '../../lib/database/columns.ts'
import { isNotified, preferences, reachOf } from '../../lib/email/notifications.ts'
import { emailTo } from '../../lib/email/emails.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import type { CurrentUser, Reach } from '../../lib/schemas.ts'
import { INVALID } from '../../plugins/auth.ts'
import {
  type createCalendar, type EventMessage, type listNotifications, NOTIFICATIONS, type Notifications, type readAccount,
} from './schemas.ts'

type Calendar = Static<typeof createCalendar.response[201]>['calendar']

/**
 * Creates a calendar link, which replaces the previous link. Throws a 401 if the user is unknown, or if the token was
 * revoked since the request arrived, because the link would outlive the token.
 */
export function replaceCalendar (sql: Sql, { id, epoch }: { id: string, epoch?: string }, tokenHash: string) {
  return sql.begin(async transaction => {
    // Waits for a running revocation, so that the next statement sees it. A later revocation waits for this
    // transaction.
    const { count } = await transaction`SELECT FROM users WHERE id = ${id} FOR SHARE`
    if (count === 0) throw new HttpError(401, 'Unauthorized')
    const [calendar] = await transaction<Pick<Calendar, 'createdAt'>[]>`
      INSERT INTO calendar_tokens (user_id, token_hash)
      SELECT ${id}, ${tokenHash}
      WHERE NOT EXISTS (SELECT FROM revoked_tokens WHERE user_id = ${id} AND epoch IS DISTINCT FROM ${epoch ?? null})
      ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, created_at = excluded.created_at
      RETURNING iso8601(created_at) AS "createdAt"
    `
    if (!calendar) throw new HttpError(401, INVALID)
    return calendar
  })
}

/** Revokes the user's calendar link. Returns whether it existed. */
export async function deleteCalendar (sql: Sql, userId: string) {
  const { count } = await sql`DELETE FROM calendar_tokens WHERE user_id = ${userId}`
  return count > 0
}

/** Revokes all tokens of a user. Returns whether the user exists. */
export async function revokeTokensOf (sql: Sql, userId: string) {
  const { count } = await revokeTokens(sql, sql`SELECT id FROM users WHERE id = ${userId} FOR NO KEY UPDATE`)
  return count > 0
}

export interface Account {
  email: string
  /** Whether the account is linked to the identity provider. */
  isLinked: boolean
  /** A hash, or the placeholder. */
  password: string
  /** Whether the email address is verified. */
  isVerified: boolean
}

/** Finds the email address and password of an account; `undefined` for an unknown user. */
export async function findAccount (sql: Sql, userId: string) {
  const [account] = await sql<Account[]>`
    SELECT email, password, idp_id IS NOT NULL AS "isLinked", email_verified_at IS NOT NULL AS "isVerified"
    FROM users WHERE id = ${userId}
  `
  return account
}

/**
 * Replaces the hash of a password, revokes all tokens of the user, and enqueues an email to a verified address. Returns
 * the claims of the next token; `undefined` if the password has changed since, or the user was deleted.
 */
export async function changePassword (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, { id, from, to }: { id: string, from: string, to: string }
) {
  const [user] = await sql<{ id: string, role: Role, epoch: string }[]>`
    WITH changed AS (
      UPDATE users SET password = ${to} WHERE id = ${id} AND password = ${from} RETURNING id, role, email_verified_at
    ), revoked AS (
      ${revokeTokens(sql, sql`SELECT id FROM changed`)}
    ), emailed AS (${outbox.enqueue('password-changed', emailTo(sql, sql`
      SELECT id FROM changed WHERE email_verified_at IS NOT NULL
    `), id)})
    SELECT id, role, epoch FROM changed JOIN revoked ON user_id = id
  `
  return user
}

/** Enqueues a verification email, requested by a client of this network. */
export async function insertVerificationEmail (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, userId: string, network: string
) {
  await outbox.enqueue('email-verification', emailTo(sql, sql`
    SELECT id FROM users WHERE id = ${userId} FOR KEY SHARE
  `), network)
}

/** Enqueues an email with a link to the new address, and an email to the current address if it is verified. */
export async function insertEmailChange (
  sql: Sql, outbox: Pick<Outbox, 'enqueue'>, userId: string, email: string, network: string
) {
  await sql`
    WITH account AS (
      SELECT id, email, email_verified_at FROM users WHERE id = ${userId} FOR KEY SHARE
    ), notice AS (${outbox.enqueue('email-change-notice', sql`
      SELECT id AS user_id, jsonb_build_object('from', email, 'to', ${email}::text) AS data, NULL AS key
      FROM account WHERE email_verified_at IS NOT NULL
    `, network)}) ${outbox.enqueue('email-change', sql`
      SELECT id AS user_id, jsonb_build_object('to', ${email}::text) AS data, NULL AS key FROM account
    `, network)}
  `
}

/**
 * Changes the given fields of a user. Returns the user; `undefined` for an unknown user. `avatar` is the id of a
 * picture that the user has uploaded; throws a 404 for any other id. `null` removes any picture.
 */
export function setProfile (
  sql: Sql, picturesUrl: string | null, id: string,
  { firstName, lastName, avatar }: { firstName?: string, lastName?: string, avatar?: string | null }
) {
  return sql.begin(async transaction => {
    if (typeof avatar === 'string') {
      // The lock order of an erasure prevents a deadlock.
      await transaction`SELECT FROM users WHERE id = ${id} FOR NO KEY UPDATE`
      const { count } = await transaction`
        SELECT FROM pictures WHERE id = ${avatar} AND user_id = ${id} FOR KEY SHARE
      `
      if (count === 0) throw new HttpError(404, 'Picture not found')
    }
    const url = typeof avatar === 'string' ? picturesUrl + avatar : null
    const [user] = await transaction<Static<typeof CurrentUser>[]>`
      WITH changed AS (
        UPDATE users SET
          first_name = coalesce(${firstName ?? null}, first_name),
          last_name = coalesce(${lastName ?? null}, last_name),
          avatar = CASE WHEN ${avatar === undefined} THEN avatar ELSE ${url} END
        WHERE id = ${id} RETURNING *
      )
      SELECT ${profileColumns(sql, picturesUrl)} FROM changed AS users LEFT JOIN clubs ON clubs.id = club_id
    `
    return user
  })
}

/** The state of an account. Without a row for an unknown user. */
export const accountQuery = (sql: Sql, userId: string): CachedQuery<Body<typeof readAccount>> => ({
  fields: sql`
    SELECT json_build_object(
      'isEmailVerified', email_verified_at IS NOT NULL,
      'hasPassword', password <> ${PLACEHOLDER},
      'isLinked', idp_id IS NOT NULL,
      'calendar', (
        SELECT json_build_object('createdAt', iso8601(created_at)) FROM calendar_tokens WHERE user_id = users.id
      )
    ) AS account
    FROM users WHERE id = ${userId}
  `,
})

/**
 * The email preferences of a user. Without a row for an unknown user. `reminderHours` is REMINDER_HOURS, 0 for no
 * reminders.
 */
export const notificationsQuery = (
  sql: Sql, userId: string, reminderHours: number
): CachedQuery<Body<typeof listNotifications>> => ({
  fields: sql`
    SELECT ${preferences(sql)} AS notifications,
    CASE WHEN ${isNotified(sql, 'event-reminder')} THEN nullif(${reminderHours}::int, 0) END AS "reminderHours"
    FROM users LEFT JOIN notifications ON user_id = users.id WHERE users.id = ${userId}
  `,
})

/** Changes the given email preferences. Returns all preferences; `undefined` for an unknown user. */
export function setNotifications (sql: Sql, userId: string, wanted: Partial<Notifications>) {
  const columns = { ...toColumns(wanted, NOTIFICATIONS), user_id: userId }
  return sql.begin(async transaction => {
    const { count } = await transaction`SELECT FROM users WHERE id = ${userId} FOR KEY SHARE`
    if (count === 0) return undefined
    const [{ notifications }] = await transaction<[{ notifications: Notifications }]>`
      INSERT INTO notifications ${sql(columns)} ON CONFLICT (user_id) DO UPDATE SET ${sql(columns)}
      RETURNING ${preferences(sql)} AS notifications
    `
    return notifications
  })
}

/** A message with the number of people whom it reaches. */
interface SentMessage {
  id: string
  reach: Static<typeof Reach>
}

/** Returns messages that were sent, with the number of people whom they would reach now. */
export const readMessages = (sql: Sql | TransactionSql, ids: string[]) => sql<SentMessage[]>`
  SELECT id, ${reachOf(sql, 'event-message', sql`event_messages.event_id`)} AS reach FROM event_messages
  WHERE id = ANY (${`{${ids.join()}}`}::uuid[])
`

/**
 * Enqueues a message to all attendees of an event, and only one if requests have the same key. Returns it with its
 * reach. Throws a 404 if the event does not exist any more or the user may not manage it. Deletes some messages older
 * than 60 days, whose emails no longer exist.
 */
export function insertMessage (
  sql: Sql, outbox: Pick<Outbox, 'enqueueBatch'>,
  { user, eventId, message, attempt }: {
    user: { id: string, role: Role }, eventId: string, message: EventMessage, attempt: Attempt | undefined
  }
) {
  const { subject, text } = message
  return sql.begin(transaction => createOnce(transaction, attempt, async () => {
    const messages = await transaction<SentMessage[]>`
      WITH past AS (
        DELETE FROM event_messages WHERE id IN (
          SELECT id FROM event_messages WHERE created_at < now() - interval '60 days'
          ORDER BY created_at LIMIT 10 FOR UPDATE SKIP LOCKED
        )
      ), sender AS (
        SELECT id FROM users WHERE id = ${user.id} FOR KEY SHARE
      ), message AS (
        INSERT INTO event_messages (event_id, sender_id, subject, text)
        SELECT events.id, sender.id, ${subject}, ${text} FROM events CROSS JOIN sender
        WHERE events.id = ${eventId} AND ${isManagedBy(sql, user)}
        RETURNING id, event_id
      ), emailed AS (${outbox.enqueueBatch('event-message', sql`
        SELECT
          NULL AS key, jsonb_build_object('message', id) AS data, NULL::uuid AS event_id,
          ${comingTo(sql, sql`message.event_id`)} AS user_ids
        FROM message
      `, user.id)})
      SELECT id, ${reachOf(sql, 'event-message', sql`message.event_id`)} AS reach FROM message
    `
    if (messages.length === 0) throw new HttpError(404, 'Event not found')
    return messages
  }, ids => readMessages(transaction, ids)))
}
