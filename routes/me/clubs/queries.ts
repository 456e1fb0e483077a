import type { Static } from '@sinclair/typebox'
import type { PendingQuery, Row, TransactionSql } from 'postgres'

import type { CachedQuery } from '../../../lib/cache/index.ts'
import { joiningOf, MAX_CLUBS, offerColumns, officeOf } from '../../../lib/clubs/members.ts'
import {
  endOffice, findMembership, giveOffice, lockOffices, withdrawOffer,
} from '../../../lib/clubs/offices.ts'
import type { AnySql, Sql } from '../../../lib/database/pools.ts'
import { enqueueClubDecision, enqueueLeftRequests, enqueueRequests } from '../../../lib/email/enqueue-clubs.ts'
import type { Outbox } from '../../../lib/email/outbox.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { findOwnRole } from '../own-account.ts'
import {
  type answerOffer as answerOfferSchema, CLOSED, ELSEWHERE, type join, NO_OFFER, NOT_VERIFIED, OFFER_ENDED, REFUSED,
  TOO_MANY,
} from './schemas.ts'

type OwnMembership = Static<typeof join.response[200]>['club']

/** SQL query: the memberships of a user, before a WHERE clause continues. */
const membershipsOf = (sql: AnySql, userId: string, time: PendingQuery<Row[]>) => sql`
  SELECT
    clubs.id AS "clubId", clubs.name, clubs.image_url AS "imageUrl", state, ${officeOf(sql)} AS office,
    ${offerColumns(sql, time)}, iso8601(changed_at) AS since, CASE state WHEN 'refused' THEN reason END AS reason, news,
    users.club_id IS NOT DISTINCT FROM clubs.id AS "isListed"
  FROM club_members AS members
    JOIN clubs ON clubs.id = members.club_id
    JOIN users ON users.id = members.user_id
  WHERE members.user_id = ${userId}
`

/** The clubs of a user by name. Without a row for an unknown user. `time` decides which offers are valid. */
export const ownClubsQuery = (sql: Sql, userId: string, time: string): CachedQuery => ({
  list: {
    field: 'clubs',
    rows: sql`${membershipsOf(sql, userId, sql`${time}::text::timestamptz`)} ORDER BY clubs.name`,
  },
  fields: sql`SELECT FROM users WHERE id = ${userId}`,
})

async function readMembership (sql: TransactionSql, userId: string, clubId: string) {
  const [membership] = await sql<[OwnMembership]>`
    ${membershipsOf(sql, userId, sql`now()`)} AND clubs.id = ${clubId}
  `
  return membership
}

/** For how many days a refusal holds. Error messages, emails and the API description say "a week". */
const REFUSAL_DAYS = 7

/**
 * Makes a user a member of a club, or stores the request to become one and enqueues an email about it. A member only
 * changes `news`. Returns the membership, and whether its state changed. Throws an HttpError for an unknown user or
 * club, and if the user cannot join.
 */
export function joinClub (
  sql: Sql, outbox: Outbox,
  { userId, clubId, message, news }: { userId: string, clubId: string } & Static<typeof join.body>
) {
  return sql.begin(async sql => {
    // Two requests of a user follow one another, so none misses a club that counts.
    const { count: users } = await sql`SELECT FROM users WHERE id = ${userId} FOR NO KEY UPDATE`
    if (users === 0) throw new HttpError(401, 'Unauthorized')
    // Waits for a change of `joining` that is running, see `changeClub`. The next statement sees it.
    const { count: clubs } = await sql`SELECT FROM clubs WHERE id = ${clubId} FOR SHARE`
    if (clubs === 0) throw new HttpError(404, 'Club not found')
    const [known] = await sql<[{
      joining: 'open' | 'request' | 'closed', state: OwnMembership['state'] | null, isRefused: boolean, others: number,
    }]>`
      SELECT
        ${joiningOf(sql)} AS joining, state,
        refused_at > now() - make_interval(days => ${REFUSAL_DAYS}) IS TRUE AS "isRefused",
        (SELECT count(*)::int FROM club_members WHERE user_id = ${userId} AND state <> 'refused') AS others
      FROM clubs LEFT JOIN club_members AS members ON club_id = clubs.id AND user_id = ${userId}
      WHERE clubs.id = ${clubId}
    `
    const { joining, state } = known
    if (state !== 'member') {
      if (joining === 'closed') throw new HttpError(409, CLOSED)
      if (state === 'refused' && known.isRefused) throw new HttpError(409, REFUSED)
      if (state !== 'requested' && known.others >= MAX_CLUBS) throw new HttpError(409, TOO_MANY)
      await sql`
        INSERT INTO club_members AS known (user_id, club_id, state, message)
        VALUES (
          ${userId}, ${clubId}, ${joining === 'open' ? 'member' : 'requested'},
          ${joining === 'open' ? null : message ?? null}
        )
        -- After a refusal, an organizer decides, even in an open club.
        ON CONFLICT (user_id, club_id) DO UPDATE SET
          state = CASE WHEN known.refused_at IS NULL THEN excluded.state ELSE 'requested' END,
          message = CASE WHEN excluded.state = 'member' AND known.refused_at IS NULL THEN NULL
            ELSE coalesce(${message ?? null}, known.message) END,
          changed_at = CASE
            WHEN known.state = 'requested' AND (known.refused_at IS NOT NULL OR ${joining !== 'open'})
              THEN known.changed_at
            ELSE excluded.changed_at END
      `
      await deleteOldRefusals(sql)
    }
    if (news !== undefined) {
      await sql`UPDATE club_members SET news = ${news} WHERE user_id = ${userId} AND club_id = ${clubId}`
    }
    const club = await readMembership(sql, userId, clubId)
    const isNew = club.state !== state
    if (isNew && club.state === 'requested') {
      await sql`${enqueueRequests(sql, outbox, clubId, userId)}`
    }
    return { club, isNew }
  })
}

/** Deletes some refusals that are 90 days old. */
const deleteOldRefusals = (sql: TransactionSql) => sql`
  DELETE FROM club_members WHERE (user_id, club_id) IN (
    SELECT user_id, club_id FROM club_members
    WHERE state = 'refused' AND refused_at < now() - interval '90 days'
    ORDER BY refused_at LIMIT 10 FOR UPDATE SKIP LOCKED
  )
`

/**
 * Ends a membership, with an office in the club, or withdraws a request. Returns whether the user had an office, and
 * the new role if it changed. Throws an HttpError if the user is unknown or not in the club.
 */
export function leaveClub (sql: Sql, outbox: Outbox, userId: string, clubId: string) {
  return sql.begin(async sql => {
    await lockOffices(sql, clubId, userId)
    const role = await findOwnRole(sql, userId)
    const before = await findMembership(sql, userId, clubId)
    if (before?.state !== 'member' && before?.state !== 'requested') {
      throw new HttpError(404, 'You are not in this club')
    }
    await endOffice(sql, userId, clubId)
    // A withdrawn request leaves a refusal as it was, so that it cannot be deleted by asking again and leaving.
    await sql`
      UPDATE club_members SET state = 'refused', message = NULL, changed_at = refused_at
      WHERE user_id = ${userId} AND club_id = ${clubId} AND state = 'requested' AND refused_at IS NOT NULL
    `
    await sql`DELETE FROM club_members WHERE user_id = ${userId} AND club_id = ${clubId} AND state <> 'refused'`
    const hadOffice = before.office !== null
    if (hadOffice) await sql`${enqueueLeftRequests(sql, outbox, clubId, userId)}`
    const after = await findOwnRole(sql, userId)
    return { hadOffice, newRole: after === role ? undefined : after }
  })
}

/**
 * Accepts or declines the office that is offered to a user. A head whom the user replaces becomes a deputy, and gets an
 * email. Returns the membership, the current role, whether the role changed, and the id of that head. Throws an
 * HttpError if the user is unknown or has no offer, or if the offer cannot be accepted. If users can verify addresses,
 * only a user who has done so can accept, because the office publishes the address, and anybody can sign up with the
 * address of a different person.
 */
export function answerOffer (
  sql: Sql, outbox: Outbox,
  { userId, clubId, accept, office }: { userId: string, clubId: string } & Static<typeof answerOfferSchema.body>
) {
  return sql.begin(async sql => {
    await lockOffices(sql, clubId, userId)
    const former = await findOwnRole(sql, userId)
    const before = await findMembership(sql, userId, clubId)
    if (!before?.offered) throw new HttpError(404, NO_OFFER)
    let replacedId: string | undefined
    if (accept) {
      // The person has read of a different office, and has not said yes to this one.
      const isDifferent = office !== undefined && office !== before.offered
      if (!before.isOfferValid || isDifferent) throw new HttpError(409, OFFER_ENDED)
      if (before.isElsewhere) throw new HttpError(409, ELSEWHERE)
      if (outbox.canVerify && !before.isEmailVerified) throw new HttpError(409, NOT_VERIFIED)
      replacedId = await giveOffice(sql, userId, clubId, before.offered)
    }
    await withdrawOffer(sql, userId, clubId)
    if (replacedId) {
      const decision = { userId: replacedId, clubId, kind: 'demoted' as const }
      await sql`${enqueueClubDecision(sql, outbox, decision, userId)}`
    }
    const role = await findOwnRole(sql, userId)
    const club = await readMembership(sql, userId, clubId)
    return { club, role, isNewRole: role !== former, replacedId }
  })
}
