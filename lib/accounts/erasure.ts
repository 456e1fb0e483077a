import type { PendingQuery, Row } from 'postgres'

import { lockLines } from '../agenda/seats.ts'
import { PLACEHOLDER } from '../auth/passwords.ts'
import { revokeTokens } from '../auth/revoked-tokens.ts'
import type { Sql } from '../database/pools.ts'
import { untrimmedName } from '../database/columns.ts'
import { enqueueLeftRequests } from '../email/enqueue-clubs.ts'
import { releaseMessages } from '../email/event-messages.ts'
import type { Outbox } from '../email/outbox.ts'
import { tellSeats } from '../email/enqueue-seats.ts'
import { HttpError } from '../http/errors.ts'
import { isKept } from '../pictures/uses.ts'
import { assertFound, idOfEmail } from './accounts.ts'

/** Numbers of rows that an erasure deletes, or would delete. */
export interface Erasure {
  id: string
  registrations: number
  likes: number
  /** Drafts and archived posts. */
  unpublishedBlogs: number
  publishedBlogs: number
  pictures: number
  /** Pictures that stay, because a page or a remaining post shows them. */
  keptPictures: number
  /** Testimonials and mentors do not belong to accounts, so only a human can tell whether they describe this person. */
  testimonialsOfThatName: number
  mentorsOfThatName: number
}

/** The author of erased users' posts. Its email is not an address, so nobody can sign up or sign in as this author. */
export const FORMER_MEMBER = {
  email: 'former-member', password: PLACEHOLDER, first_name: 'Former', last_name: 'member',
}

/** Error message for the last admin. */
export const LAST_ADMIN = 'You are the last admin. Please make another user an admin first'

/** Error message for the erasure of the former member. */
export const IS_FORMER_MEMBER = "This account is the author of erased users' posts"

interface ErasureOptions {
  withBlogs?: boolean
  dryRun?: boolean
  /** Refuses to erase the last admin. */
  keepsAdmin?: boolean
  /** Where to enqueue emails about new seats, and about requests that only admins can decide. */
  outbox?: Pick<Outbox, 'enqueueBatch'>
  /** Who caused these emails, see `enqueueEmails`; nobody by default. */
  cause?: string | null
}

/**
 * Erases the account whose id this query returns, with all its data; `undefined` for an unknown account. `DELETE FROM
 * users` alone would fail: 11 tables refer to an account, and posts and registrations prevent its deletion. It would
 * tell nobody about new seats. Revokes all tokens of the user. With `keepsAdmin`, throws a 409 for the last admin.
 * Published posts stay under the former member, unless `withBlogs` is set; throws a 409 for the former member itself. A
 * dry run only counts.
 */
export function eraseAccount (
  sql: Sql, idQuery: PendingQuery<Row[]>,
  { withBlogs = false, dryRun = false, keepsAdmin = false, outbox, cause = null }: ErasureOptions
): Promise<Erasure | undefined> {
  return sql.begin(async sql => {
    // This lock waits for running writes for this user, and blocks new writes. Admins are locked together, so that
    // their erasures at the same time wait for each other.
    const locked = await sql<{
      id: string, email: string, clubId: string | null, isAdmin: boolean, isTarget: boolean,
    }[]>`
      SELECT
        users.id, users.email, users.club_id AS "clubId", target.role = 'ADMIN' AS "isAdmin",
        users.id = target.id AS "isTarget"
      FROM users AS target JOIN users
        ON users.id = target.id OR (${keepsAdmin} AND target.role = 'ADMIN' AND users.role = 'ADMIN')
      WHERE target.id = ${idQuery} ORDER BY users.id FOR UPDATE OF users
    `
    const user = locked.find(({ isTarget }) => isTarget)
    if (!user) return undefined
    if (keepsAdmin && user.isAdmin && locked.length === 1) throw new HttpError(409, LAST_ADMIN)
    const { id, email, clubId } = user
    const kept = isKept(sql, withBlogs)
    const [erasure] = await sql<[Erasure]>`
      SELECT
        id,
        (SELECT count(*)::int FROM event_registrations WHERE user_id = users.id) AS registrations,
        (SELECT count(*)::int FROM mentor_likes WHERE user_id = users.id) AS likes,
        (SELECT count(*)::int FROM blogs WHERE author_id = users.id AND status <> 'PUBLISHED') AS "unpublishedBlogs",
        (SELECT count(*)::int FROM blogs WHERE author_id = users.id AND status = 'PUBLISHED') AS "publishedBlogs",
        (SELECT count(*)::int FROM pictures WHERE user_id = users.id AND NOT ${kept}) AS pictures,
        (SELECT count(*)::int FROM pictures WHERE user_id = users.id AND ${kept}) AS "keptPictures",
        (SELECT count(*)::int FROM testimonials WHERE name = full_name) AS "testimonialsOfThatName",
        (SELECT count(*)::int FROM mentors WHERE name = full_name) AS "mentorsOfThatName"
      FROM users, ${untrimmedName(sql)} AS full_name WHERE id = ${id}
    `
    if (dryRun) return erasure
    if (email === FORMER_MEMBER.email && erasure.publishedBlogs > 0 && !withBlogs) {
      throw new HttpError(409, IS_FORMER_MEMBER)
    }

    // The same lock order as in the operations that delete an event or a mentor prevents deadlocks.
    const lines = await lockLines(sql, sql`SELECT event_id FROM event_registrations WHERE user_id = ${id}`)
    await sql`
      SELECT FROM mentors WHERE id IN (SELECT mentor_id FROM mentor_likes WHERE user_id = ${id})
      ORDER BY id FOR KEY SHARE
    `
    // The lock order of `npm run database -- retention`.
    await sql`SELECT FROM event_registrations WHERE user_id = ${id} ORDER BY id FOR UPDATE`
    await sql`DELETE FROM event_registrations WHERE user_id = ${id}`
    if (outbox) await tellSeats(sql, outbox, lines, cause)
    // The lock order of a sender.
    await sql`SELECT FROM emails WHERE user_id = ${id} ORDER BY id FOR UPDATE`
    await sql`DELETE FROM blogs WHERE author_id = ${id} AND (${withBlogs} OR status <> 'PUBLISHED')`
    if (!withBlogs && erasure.publishedBlogs > 0) {
      await sql`INSERT INTO users ${sql(FORMER_MEMBER)} ON CONFLICT (email) DO NOTHING`
      await sql`
        UPDATE blogs SET author_id = (SELECT id FROM users WHERE email = ${FORMER_MEMBER.email}) WHERE author_id = ${id}
      `
    }
    await sql`UPDATE clubs SET club_head_id = NULL WHERE club_head_id = ${id}`
    // Only this spelling of the address, because a different spelling may have an account with failed sign-ins.
    await sql`DELETE FROM rate_limits WHERE split_part(key, ' ', 1) IN (${id}::text, ${email})`
    await sql`DELETE FROM pictures WHERE user_id = ${id} AND NOT ${kept}`
    await releaseMessages(sql, id)
    await revokeTokens(sql, sql`SELECT ${id}::uuid AS id`)
    // Also deletes likes, emails, sent messages and the calendar. The row in revoked_tokens stays, so that old tokens
    // remain revoked.
    await sql`DELETE FROM users WHERE id = ${id}`
    if (outbox && clubId) await sql`${enqueueLeftRequests(sql, outbox, clubId, cause)}`
    return erasure
  })
}

/**
 * Erases the account with this email address, ignoring case if necessary, see `eraseAccount`. Throws a StartupError
 * without such an account.
 */
export const eraseUser = async (sql: Sql, email: string, options: Parameters<typeof eraseAccount>[2]) =>
  assertFound(await eraseAccount(sql, idOfEmail(sql, email), options))
