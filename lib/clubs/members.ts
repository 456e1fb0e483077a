import type { PendingQuery, Row } from 'postgres'

import type { AnySql } from '../database/pools.ts'

/** Maximum number of clubs of a person. */
export const MAX_CLUBS = 50

/** Whether a person can join a club at once, must ask, or cannot join. */
export const JOINING = ['open', 'request', 'closed'] as const

/** SQL: who can join `clubs`. */
export const joiningOf = (sql: AnySql) => sql`
  coalesce((SELECT joining FROM club_details WHERE club_id = clubs.id), 'request')
`

/** SQL: the number of members of `clubs`. */
export const memberCount = (sql: AnySql) => sql`
  (SELECT count(*) FROM club_members WHERE club_id = clubs.id AND state = 'member')
`

/** SQL condition: `users` organizes `clubs`, as its head or as a deputy. */
export const isOrganizer = (sql: AnySql) => sql`
  (users.club_id = clubs.id AND users.role IN ('CLUB_HEAD', 'ADMIN')) IS TRUE
`

/** SQL: the office of `users` in `clubs`: `head`, `deputy` or null. */
export const officeOf = (sql: AnySql) => sql`
  CASE WHEN ${isOrganizer(sql)} THEN CASE WHEN users.id = clubs.club_head_id THEN 'head' ELSE 'deputy' END END
`

/** SQL condition: `users` may edit `clubs`, and decide about members. */
export const managesClub = (sql: AnySql) => sql`(users.role = 'ADMIN' OR ${isOrganizer(sql)})`

/** SQL condition: somebody heads `clubs`. Its `club_head_id` may be a former member. */
const hasHead = (sql: AnySql) => sql`
  EXISTS (SELECT FROM users WHERE users.id = clubs.club_head_id AND ${isOrganizer(sql)})
`

/** SQL condition: `users` may give and end offices of `clubs`: admins, its head, and its deputies if it has no head. */
export const leadsClub = (sql: AnySql) => sql`
  (users.role = 'ADMIN' OR ${isOrganizer(sql)} AND (users.id = clubs.club_head_id OR NOT ${hasHead(sql)})) IS TRUE
`

/** For how many days an offer is valid. */
export const OFFER_DAYS = 14

const offerEnd = (sql: AnySql) => sql`members.offered_at + make_interval(days => ${OFFER_DAYS})`

/**
 * SQL condition: `members` has an office offer in `clubs` that is valid at this time. An offer is valid as long as its
 * author is allowed to make it.
 */
export const isOfferValid = (sql: AnySql, time: PendingQuery<Row[]>) => sql`(
  members.offered IS NOT NULL AND ${offerEnd(sql)} > ${time}
  AND EXISTS (SELECT FROM users WHERE users.id = members.offered_by AND ${leadsClub(sql)})
)`

/** SQL columns: the office that is offered to `members`, and until when; null without a valid offer. */
export const offerColumns = (sql: AnySql, time: PendingQuery<Row[]>) => sql`
  CASE WHEN ${isOfferValid(sql, time)} THEN members.offered END AS offered,
  CASE WHEN ${isOfferValid(sql, time)} THEN iso8601(${offerEnd(sql)}) END AS "offeredUntil"
`
