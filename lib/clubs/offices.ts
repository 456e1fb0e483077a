import type { TransactionSql } from 'postgres'

import type { AnySql } from '../database/pools.ts'
import { HttpError } from '../http/errors.ts'
import type { Role } from '../values/roles.ts'
import { CLUB_NOT_ALLOWED, type OFFICES } from '../values/schemas.ts'
import { isOfferValid, isOrganizer, leadsClub, managesClub, officeOf } from './members.ts'

// An office ends when `users.club_id` is cleared: every operation reads it, so no token has the rights any more. The
// card of a person is `users.club_id` and `users.role`, which the contract publishes. Memberships are in
// `club_members`. The trigger `follow_club` (migrations/20261129013000000_club-members.sql) keeps both in step.

export type Office = typeof OFFICES[number]

/** A person and their membership in a club. */
export interface Membership {
  role: Role
  isEmailVerified: boolean
  /** The office in this club. */
  office: Office | null
  /** Whether the person organizes a different club. */
  isElsewhere: boolean
  /** Null if the person has nothing to do with the club. */
  state: 'requested' | 'member' | 'refused' | null
  offered: Office | null
  isOfferValid: boolean
}

/**
 * Locks a club with everything that decides about its offices: one or two people, its head, and the authors of offers
 * to them. Operations that change offices follow one another, so that the head stays the same from here to the commit.
 * Without these locks, 7 of 8 acceptances of an office, alongside the erasure of the same person, ended in a 500.
 */
export async function lockOffices (sql: TransactionSql, clubId: string, userId: string, otherId = userId) {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(concat('offices of ', ${clubId}::uuid), 0))`
  const ids = sql`ARRAY[${userId}::uuid, ${otherId}::uuid]`
  await sql`
    SELECT FROM users WHERE id = ANY (
      ${ids} || (SELECT club_head_id FROM clubs WHERE id = ${clubId})
      || ARRAY(SELECT offered_by FROM club_members WHERE user_id = ANY (${ids}) AND club_id = ${clubId})
    )
    ORDER BY id FOR NO KEY UPDATE
  `
  // Also a club that one of them headed before, and the club on a card, see `giveOffice`.
  await sql`
    SELECT FROM clubs
    WHERE id = ${clubId} OR club_head_id = ANY (${ids}) OR id = (SELECT club_id FROM users WHERE id = ${otherId})
    ORDER BY id FOR UPDATE
  `
}

/** Throws a 401 for an unknown user, a 404 for an unknown club, and a 403 if the user does not manage the club. */
export async function findManager (sql: AnySql, userId: string, clubId: string) {
  const [manager] = await sql<{ isClub: boolean, isAdmin: boolean, manages: boolean, leads: boolean }[]>`
    SELECT
      clubs.id IS NOT NULL AS "isClub", users.role = 'ADMIN' AS "isAdmin", ${managesClub(sql)} AS manages,
      ${leadsClub(sql)} AS leads
    FROM users LEFT JOIN clubs ON clubs.id = ${clubId}
    WHERE users.id = ${userId}
  `
  if (!manager) throw new HttpError(401, 'Unauthorized')
  if (!manager.isClub) throw new HttpError(404, 'Club not found')
  if (!manager.manages) throw new HttpError(403, CLUB_NOT_ALLOWED)
  return manager
}

/** Returns a person with their membership; `undefined` for an unknown user or club. */
export async function findMembership (sql: TransactionSql, userId: string, clubId: string) {
  const [membership] = await sql<Membership[]>`
    SELECT
      users.role, email_verified_at IS NOT NULL AS "isEmailVerified", ${officeOf(sql)} AS office,
      (users.role IN ('CLUB_HEAD', 'ADMIN') AND users.club_id <> clubs.id) IS TRUE AS "isElsewhere",
      state, offered, ${isOfferValid(sql, sql`now()`)} AS "isOfferValid"
    FROM users CROSS JOIN clubs
      LEFT JOIN club_members AS members ON members.user_id = users.id AND members.club_id = clubs.id
    WHERE users.id = ${userId} AND clubs.id = ${clubId}
  `
  return membership
}

/** SQL: the values of a membership without an office offer. */
export const withoutOffer = (sql: TransactionSql) => sql`offered = NULL, offered_by = NULL, offered_at = NULL`

/** Removes the office offer of a member. */
export const withdrawOffer = (sql: TransactionSql, userId: string, clubId: string) => sql`
  UPDATE club_members SET ${withoutOffer(sql)}
  WHERE user_id = ${userId} AND club_id = ${clubId}
`

/**
 * Gives a member an office. They also stay a member of the club that was on their card. If they become the head, the
 * former head becomes a deputy: returns the id of that person.
 */
export async function giveOffice (sql: TransactionSql, userId: string, clubId: string, office: Office) {
  // If an admin has moved a head to a different club, `club_head_id` still names this person. They must not become head
  // again by this.
  await sql`
    UPDATE clubs SET club_head_id = NULL FROM users
    WHERE users.id = ${userId} AND club_head_id = users.id AND NOT ${isOrganizer(sql)}
  `
  await keepingMemberships(sql, userId, () => sql`
    UPDATE users SET club_id = ${clubId}, role = CASE role WHEN 'ADMIN' THEN role ELSE 'CLUB_HEAD' END
    WHERE id = ${userId}
  `)
  if (office !== 'head') return undefined
  const [replaced] = await sql<{ id: string }[]>`
    SELECT users.id FROM clubs JOIN users ON users.id = club_head_id
    WHERE clubs.id = ${clubId} AND ${isOrganizer(sql)} AND users.id <> ${userId}
  `
  await sql`UPDATE clubs SET club_head_id = ${userId} WHERE id = ${clubId}`
  return replaced?.id
}

/** Ends the office of a person in a club, and removes the club from their card. A membership stays as it is. */
export async function endOffice (sql: TransactionSql, userId: string, clubId: string) {
  await keepingMemberships(sql, userId, () => sql`
    UPDATE users SET club_id = NULL, role = CASE role WHEN 'ADMIN' THEN role ELSE 'STUDENT' END
    WHERE id = ${userId} AND club_id = ${clubId}
  `)
  await sql`UPDATE clubs SET club_head_id = NULL WHERE id = ${clubId} AND club_head_id = ${userId}`
}

/**
 * Changes the card of a person. The trigger then ends the membership in the club on the old card, so this writes it
 * back. An office offer of that membership is lost, because that club and the author of the offer are not locked.
 */
async function keepingMemberships (sql: TransactionSql, userId: string, change: () => PromiseLike<unknown>) {
  const kept = await sql<{ member: string }[]>`
    SELECT (to_jsonb(members) - ARRAY['offered', 'offered_by', 'offered_at'])::text AS member
    FROM users JOIN club_members AS members USING (club_id)
    WHERE users.id = ${userId} AND members.user_id = ${userId}
  `
  await change()
  for (const { member } of kept) {
    await sql`
      INSERT INTO club_members SELECT * FROM jsonb_populate_record(NULL::club_members, ${member}::text::jsonb)
      ON CONFLICT DO NOTHING
    `
  }
}
