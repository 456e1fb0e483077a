import type { Static } from '@sinclair/typebox'
import type { TransactionSql } from 'postgres'

import type { CachedQuery } from '../../lib/cache/index.ts'
import {
  isOrganizer, joiningOf, leadsClub, managesClub, memberCount, offerColumns, officeOf,
} from '../../lib/clubs/members.ts'
import {
  endOffice, findManager, findMembership, lockOffices, type Membership, type Office, withdrawOffer,
  withoutOffer,
} from '../../lib/clubs/offices.ts'
import type { AnySql, Sql } from '../../lib/database/pools.ts'
import { assignments, avatarOf, shortName } from '../../lib/database/columns.ts'
import { EXCLUSION_VIOLATION } from '../../lib/database/conflicts.ts'
import { enqueueClubDecision, enqueueLeftRequests } from '../../lib/email/enqueue-clubs.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { Role } from '../../lib/values/roles.ts'
import { CLUB_NOT_ALLOWED } from '../../lib/values/schemas.ts'
import {
  type changeMember as changeMemberSchema, type get, MAX_LISTED, NAME_TAKEN, NOT_LEADING, NOT_RENAMED,
  ORGANIZES_ELSEWHERE, type update,
} from './schemas.ts'

type ClubPage = Static<typeof get.response[200]>['club']

const columns = (sql: AnySql) => sql`
  clubs.id, clubs.name, clubs.description, clubs.image_url AS "imageUrl", ${joiningOf(sql)} AS joining,
  ${memberCount(sql)} AS "memberCount"
`

/** All clubs by name. */
export const clubPagesQuery = (sql: Sql): CachedQuery => ({
  list: { field: 'clubs', rows: sql`SELECT ${columns(sql)} FROM clubs ORDER BY clubs.name` },
})

/** SQL query: a club with its organizers as JSON in the column `club`, the head first. */
const clubPage = (sql: AnySql, id: string, picturesUrl: string | null) => sql`
  SELECT row_to_json(page) AS club FROM (
    SELECT ${columns(sql)}, (
      SELECT coalesce(json_agg(json_build_object(
        'firstName', first_name, 'lastName', last_name, 'avatar', ${avatarOf(sql, picturesUrl)},
        'isHead', users.id IS NOT DISTINCT FROM club_head_id
      ) ORDER BY users.id IS DISTINCT FROM club_head_id, first_name, last_name, users.id), '[]')
      FROM users WHERE club_id = clubs.id AND ${isOrganizer(sql)}
    ) AS organizers
    FROM clubs WHERE clubs.id = ${id}
  ) AS page
`

/** A club with its organizers. Without a row for an unknown club. */
export const clubPageQuery = (sql: Sql, id: string, picturesUrl: string | null): CachedQuery => ({
  fields: clubPage(sql, id, picturesUrl),
})

/**
 * Changes the given fields of a club, and returns its page. Throws an HttpError if the user or the club is unknown, the
 * user may not do this, or a different club has the name.
 */
export async function changeClub (
  sql: Sql, picturesUrl: string | null,
  { userId, id, changes }: { userId: string, id: string, changes: Static<typeof update.body> }
): Promise<ClubPage> {
  const { name, joining } = changes
  return sql.begin(async sql => {
    // One rename at a time: two of the same name would be a deadlock, and three a 500.
    if (name !== undefined) await sql`SELECT pg_advisory_xact_lock(hashtextextended('names of clubs', 0))`
    // Waits for an end of the office that is running.
    await sql`SELECT FROM users WHERE id = ${userId} FOR SHARE`
    // Waits for running requests to join, see `joinClub`.
    const [club] = await sql<{ name: string }[]>`
      SELECT name FROM clubs WHERE id = ${id} FOR NO KEY UPDATE
    `
    const { isAdmin } = await findManager(sql, userId, id)
    if (name !== undefined && name !== club!.name && !isAdmin) throw new HttpError(403, NOT_RENAMED)
    await sql`UPDATE clubs SET ${assignments(sql, changes, ['name', 'description', 'imageUrl'])} WHERE id = ${id}`
    if (joining !== undefined) {
      await sql`
        INSERT INTO club_details (club_id, joining) VALUES (${id}, ${joining})
        ON CONFLICT (club_id) DO UPDATE SET joining = excluded.joining
      `
    }
    const [page] = await sql<[{ club: ClubPage }]>`${clubPage(sql, id, picturesUrl)}`
    return page.club
  }).catch((error: { code?: string }) => {
    // A different club has the name.
    throw error.code === EXCLUSION_VIOLATION ? new HttpError(409, NAME_TAKEN) : error
  })
}

/**
 * The members of a club and its requests. Without a row if the user does not manage the club. `time` decides which
 * offers are valid.
 */
export const membersQuery = (sql: Sql, userId: string, clubId: string, time: string): CachedQuery => {
  // The fields have no row for other users, so no body is sent to them. PostgreSQL need not read the list.
  const isManaged = sql`
    EXISTS (
      SELECT FROM users CROSS JOIN clubs WHERE users.id = ${userId} AND clubs.id = ${clubId} AND ${managesClub(sql)}
    )
  `
  const people = sql`club_members AS members JOIN users ON users.id = user_id`
  return {
    list: {
      field: 'members',
      rows: sql`
        SELECT
          users.id AS "userId", ${shortName(sql)} AS name, email, email_verified_at IS NOT NULL AS "isEmailVerified",
          ${officeOf(sql)} AS office,
          ${offerColumns(sql, sql`${time}::text::timestamptz`)}, iso8601(changed_at) AS since
        FROM ${people} JOIN clubs ON clubs.id = members.club_id
        WHERE members.club_id = ${clubId} AND state = 'member' AND ${isManaged}
        ORDER BY ${officeOf(sql)} DESC NULLS LAST, first_name, last_name, users.id
      `,
    },
    fields: sql`
      SELECT
        json_build_object('id', clubs.id, 'name', clubs.name, 'joining', ${joiningOf(sql)}) AS club,
        ${leadsClub(sql)} AS leads,
        (SELECT count(*) FROM club_members WHERE club_id = clubs.id AND state = 'requested') AS "requestCount",
        (
          SELECT coalesce(json_agg(json_build_object(
            'userId', id, 'name', name, 'email', email, 'isEmailVerified', verified, 'message', message,
            'askedAt', iso8601(changed_at)
          ) ORDER BY changed_at, id), '[]')
          FROM (
            SELECT
              users.id, ${shortName(sql)} AS name, email, email_verified_at IS NOT NULL AS verified, message, changed_at
            FROM ${people}
            WHERE members.club_id = ${clubId} AND state = 'requested'
            ORDER BY changed_at, user_id LIMIT ${MAX_LISTED}
          ) AS requests
        ) AS requests
      FROM users CROSS JOIN clubs
      WHERE users.id = ${userId} AND clubs.id = ${clubId} AND ${managesClub(sql)}
    `,
  }
}

/** Throws the error for a user without a row of `membersQuery`. */
export async function refuseMembers (sql: Sql, userId: string, clubId: string): Promise<never> {
  await findManager(sql, userId, clubId)
  // The user got the right to manage the club after the list was read.
  throw new HttpError(403, CLUB_NOT_ALLOWED)
}

type MemberDecision = { state: 'member' | 'refused', reason?: string } | { office: Office | null }

/** What a decision has changed; the audit log needs it. */
interface MemberChange { state?: 'member' | 'refused', office?: Office | null, role?: Role }

type ChangedMember = Static<typeof changeMemberSchema.response[200]>['member']

/**
 * Decides about a request, a membership or an office. Returns the membership, and what has changed. Throws an HttpError
 * if a user or the club is unknown, or if the actor may not do this.
 */
export function changeMember (
  sql: Sql, outbox: Outbox, { actorId, clubId, userId, decision }:
  { actorId: string, clubId: string, userId: string, decision: MemberDecision }
) {
  return sql.begin(async sql => {
    await lockOffices(sql, clubId, actorId, userId)
    const { leads } = await findManager(sql, actorId, clubId)
    const before = await findMembership(sql, userId, clubId)
    if (!before?.state) throw new HttpError(404, 'Member not found')
    const target = { ...before, userId, clubId, actorId, isActor: actorId === userId, leads }
    await ('office' in decision
      ? changeOffice(sql, target, decision.office)
      : changeState(sql, target, decision))
    const after = (await findMembership(sql, userId, clubId))!
    const [member] = await sql<[ChangedMember]>`
      SELECT users.id AS "userId", state, ${officeOf(sql)} AS office, ${offerColumns(sql, sql`now()`)}
      FROM club_members AS members JOIN users ON users.id = user_id JOIN clubs ON clubs.id = members.club_id
      WHERE users.id = ${userId} AND clubs.id = ${clubId}
    `
    const kind = kindOf(before, after)
    if (kind && actorId !== userId) {
      await sql`${enqueueClubDecision(sql, outbox, { userId, clubId, kind }, actorId)}`
    }
    if (before.office && !after.office) {
      await sql`${enqueueLeftRequests(sql, outbox, clubId, actorId)}`
    }
    const changed: MemberChange = {
      ...after.state !== before.state && { state: member.state },
      ...after.office !== before.office && { office: after.office },
      ...after.role !== before.role && { role: after.role },
    }
    return { member, changed }
  })
}

/** What the person is told; `undefined` if nothing has changed for them. */
function kindOf (before: Membership, after: Membership) {
  if (before.state !== after.state) {
    if (after.state === 'member') return 'accepted'
    return before.state === 'member' ? 'removed' : 'refused'
  }
  if (before.office && !after.office) return 'ended'
  if (before.office === 'head' && after.office === 'deputy') return 'demoted'
  return after.offered && (after.offered !== before.offered || !before.isOfferValid) ? 'offered' : undefined
}

/** A person whose membership changes, and what the actor may do. */
interface Target extends Membership {
  userId: string
  clubId: string
  actorId: string
  isActor: boolean
  leads: boolean
}

/** Accepts a request, refuses it, or removes a member. A second decision changes nothing. */
async function changeState (
  sql: TransactionSql, { userId, clubId, state: before, office, isOfferValid, leads }: Target,
  { state, reason }: { state: 'member' | 'refused', reason?: string }
) {
  if (state === before) return
  if (state === 'member') {
    // A refused person must ask again first.
    if (before === 'refused') throw new HttpError(404, 'Member not found')
    await sql`
      UPDATE club_members SET
        state = 'member', message = NULL, reason = NULL, refused_at = NULL, changed_at = clock_timestamp()
      WHERE user_id = ${userId} AND club_id = ${clubId}
    `
    return
  }
  // Otherwise a deputy could undo a decision about offices.
  if ((office || isOfferValid) && !leads) throw new HttpError(403, NOT_LEADING)
  await endOffice(sql, userId, clubId)
  await sql`
    UPDATE club_members SET
      state = 'refused', message = NULL, reason = ${reason ?? null}, changed_at = now, refused_at = now,
      ${withoutOffer(sql)}
    FROM clock_timestamp() AS now WHERE user_id = ${userId} AND club_id = ${clubId}
  `
}

/** Offers an office, withdraws an offer, or ends an office. */
async function changeOffice (
  sql: TransactionSql, { userId, clubId, state, actorId, isActor, leads, ...target }: Target, office: Office | null
) {
  const isResignation = isActor && office === null && target.office !== null
  if (!leads && !isResignation) throw new HttpError(403, NOT_LEADING)
  if (state !== 'member') throw new HttpError(404, 'Member not found')
  if (target.isElsewhere && office !== null) throw new HttpError(409, ORGANIZES_ELSEWHERE)
  if (office !== null && office === target.offered && target.isOfferValid) return
  await withdrawOffer(sql, userId, clubId)
  if (office === target.office) return
  if (office === null) return endOffice(sql, userId, clubId)
  // A head becomes a deputy.
  if (target.office === 'head') {
    await sql`UPDATE clubs SET club_head_id = NULL WHERE id = ${clubId}`
    return
  }
  // One person at most is asked to become the head.
  if (office === 'head') {
    await sql`
      UPDATE club_members SET ${withoutOffer(sql)}
      WHERE club_id = ${clubId} AND offered = 'head'
    `
  }
  await sql`
    UPDATE club_members SET offered = ${office}, offered_by = ${actorId}, offered_at = clock_timestamp()
    WHERE user_id = ${userId} AND club_id = ${clubId}
  `
}
